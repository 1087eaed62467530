"""Read the declarative file, JSON or YAML, so that every fault has its line."""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from app.core.catalog.servers import MCPServerSettings
from app.core.errors import ServiceError
from app.core.strictjson import loads
from app.core.tools.declaration import Declaration, DeclarationError, DeclarationFault, Pointer
from app.services.data_files import JSON_SCALARS

MAX_BYTES: Final = 4 * 1024 * 1024
_SECTIONS: Final = frozenset(Declaration.model_fields)
_OF_SERVERS: Final = frozenset({*MCPServerSettings.model_fields, "timeoutS", "transport"}) - {"timeout_s"}
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SIMILAR: Final = 0.75


class FileError(Exception):
    """A file that is not applied; each of ``lines`` names the file, the line and the reason."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class DeclarationFile:
    """A file that was read: what it declares, and what of it was passed over, in words with line numbers."""

    declaration: Declaration
    warnings: list[str] = field(default_factory=list)
    paused: frozenset[str] = frozenset()
    """Servers that the file marks ``disabled``, as some hosts do."""
    name: str = ""
    lines: Mapping[Pointer, int] = field(default_factory=dict)

    def told(self, pointer: str, message: str) -> str:
        """Return a fault that was found after reading, at a JSON pointer, with its place in the file."""
        steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
        at = tuple(int(step) if step.isdecimal() else step for step in steps)
        return _told(self.name, self.lines, DeclarationFault(at, message))


def read_file(path: Path, environment: Mapping[str, str] = os.environ) -> DeclarationFile:
    """Read ``path``; raise FileNotFoundError, or FileError with every fault."""
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise FileError([f"{path}: the file has more than {MAX_BYTES} bytes."])
    return read_text(data, str(path), environment)


def read_text(data: bytes, name: str, environment: Mapping[str, str] = os.environ) -> DeclarationFile:
    """Read a declaration from ``data``; ``name`` stands in front of each fault, and its ending tells YAML from JSON."""
    value, lines = _parsed(data, name)
    reading = _Reading(name, lines, environment)
    try:
        declaration = Declaration.read(reading.prepared(value))
    except DeclarationError as error:
        raise FileError([*reading.faults, *(reading.told(fault) for fault in error.faults)]) from None
    if reading.faults:
        raise FileError(reading.faults)
    return DeclarationFile(declaration, reading.warnings, frozenset(reading.paused), name, lines)


def _told(name: str, lines: Mapping[Pointer, int], fault: DeclarationFault) -> str:
    """Return a fault with its place; where the place itself has no line, that of what is around it."""
    at = fault.at
    while at and at not in lines:
        at = at[:-1]
    where = "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in at).lstrip(".")
    return f"{name}:{lines.get(at, 1)}: {f'{where}: ' if where else ''}{fault.message}"


@dataclass(slots=True)
class _Reading:
    name: str
    lines: Mapping[Pointer, int]
    environment: Mapping[str, str]
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)

    def told(self, fault: DeclarationFault) -> str:
        """Return a fault with its place."""
        return _told(self.name, self.lines, fault)

    def prepared(self, value: Any) -> Any:
        """Return ``value`` without what belongs to hosts only, variables filled in."""
        if not isinstance(value, Mapping):
            return value
        known = self._known(value, _SECTIONS, ())
        servers = known.get("mcpServers")
        if isinstance(servers, Mapping):
            known["mcpServers"] = {name: self._server(name, one) for name, one in servers.items()}
        return known

    def _server(self, name: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if value.get("disabled") is True:
            self.paused.add(name)
        at: Pointer = ("mcpServers", name)
        rest = {key: one for key, one in value.items() if key != "disabled"}
        return {key: self._filled(one, (*at, key)) for key, one in self._known(rest, _OF_SERVERS, at).items()}

    def _known(self, value: Mapping[str, Any], known: frozenset[str], at: Pointer) -> dict[str, Any]:
        """Return the known members; a name that only resembles one is a fault, a host's own is passed over."""
        kept = {}
        for key, one in value.items():
            if key in known:
                kept[key] = one
                continue
            likely = difflib.get_close_matches(key, known, 1, _SIMILAR)
            if likely:
                self.faults.append(
                    self.told(DeclarationFault((*at, key), f"There is no such member; is {likely[0]} meant?"))
                )
            elif key != "$schema":
                self.warnings.append(
                    self.told(
                        DeclarationFault((*at, key), "This member is another program's; it is ignored.")
                    )
                )
        return kept

    def _filled(self, value: Any, at: Pointer) -> Any:
        if isinstance(value, str):
            return _VARIABLE.sub(lambda found: self._variable(found, at), value)
        if isinstance(value, list):
            return [self._filled(one, (*at, number)) for number, one in enumerate(value)]
        if isinstance(value, Mapping):
            return {key: self._filled(one, (*at, key)) for key, one in value.items()}
        return value

    def _variable(self, found: re.Match[str], at: Pointer) -> str:
        name, default = found[1], found[2]
        value = self.environment.get(name) or default
        if value is None:
            self.faults.append(self.told(DeclarationFault(at, f"The environment has no variable {name}.")))
            return ""
        return value


class _Loader(yaml.SafeLoader):
    """YAML with JSON's types only: no dates, and ``yes`` and ``on`` are words."""

    yaml_implicit_resolvers = JSON_SCALARS

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Refuse aliases: a few lines of them could stand for billions of members."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) have no place in this file", problem_mark=mark
            )
        return super().compose_node(parent, index)


def _parsed(data: bytes, name: str) -> tuple[Any, dict[Pointer, int]]:
    """Return the value and the line of each of its places."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError([f"{name}:1: The file is not UTF-8."]) from None
    is_json = not name.endswith((".yaml", ".yml")) and text.lstrip()[:1] in {"{", "["}
    value = _json(data.removeprefix(b"\xef\xbb\xbf"), text, name) if is_json else None
    # JSON is YAML but for tabs between its tokens, and for them a space has the same place.
    source = (
        re.sub(r'"(?:[^"\\]|\\.)*"|\t', lambda found: " " if found[0] == "\t" else found[0], text)
        if is_json
        else text
    )
    try:
        node = yaml.compose(source, _Loader)
    except yaml.MarkedYAMLError as error:
        if is_json:
            return value, {}
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise FileError([f"{name}:{line}: The file is no valid YAML: {error.problem}."]) from None
    except (yaml.YAMLError, RecursionError):
        raise FileError([f"{name}:1: The file is no valid YAML, or nested too deep."]) from None
    lines: dict[Pointer, int] = {}
    faults: list[str] = []
    for at, line, fault in _places(node, ()):
        lines.setdefault(at, line)
        if fault:
            faults.append(f"{name}:{line}: {fault}")
    if faults:
        raise FileError(faults)
    if not is_json:
        value = _Loader("").construct_document(node) if node is not None else None
    return value, lines


def _json(data: bytes, text: str, name: str) -> Any:
    try:
        return loads(data)
    except ServiceError as error:
        position = error.details.get("position")
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        raise FileError([f"{name}:{line}: {error.message.replace('The body', 'The file')}"]) from None


def _places(node: yaml.Node | None, at: Pointer) -> Iterator[tuple[Pointer, int, str | None]]:
    """Yield path, line and fault of every place below ``node``."""
    if node is None:
        return
    if not at:
        yield at, node.start_mark.line + 1, None
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            plain = isinstance(key, yaml.ScalarNode)
            step = key.value if plain else "?"
            fault = None if plain and step not in seen else "A member's name stands twice, or is no text."
            seen.add(step)
            yield (*at, step), line, fault
            yield from _places(value, (*at, step))
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*at, number), value.start_mark.line + 1, None
            yield from _places(value, (*at, number))
