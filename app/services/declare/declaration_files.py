"""Read the declarative file, JSON or YAML, and report every fault with its line."""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from app.core.catalog.servers import MCPServerSettings
from app.core.declarative_file import Declaration, DeclarationError, DeclarationFault, Pointer
from app.core.errors import ServiceError
from app.core.strictjson import loads
from app.services.data_files import JSON_SCALARS

MAX_BYTES: Final = 4 * 1024 * 1024
_SECTIONS: Final = frozenset(Declaration.model_fields)
_OF_SERVERS: Final = frozenset({*MCPServerSettings.model_fields, "timeoutS", "transport"}) - {"timeout_s"}
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SIMILAR: Final = 0.75


class FileError(Exception):
    """A file that cannot be applied; each of ``lines`` names the file, the line and the reason."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class DeclarationFile:
    """A file that was read: what it declares, and warnings with line numbers about ignored parts."""

    declaration: Declaration
    warnings: list[str] = field(default_factory=list)
    paused: frozenset[str] = frozenset()
    """Servers that the file marks ``disabled``, as some hosts do."""
    name: str = ""
    lines: Mapping[Pointer, int] = field(default_factory=dict)

    def locate(self, pointer: str, message: str) -> str:
        """Return a fault that was found after reading, at a JSON pointer, with its place in the file."""
        steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
        at = tuple(int(step) if step.isdecimal() else step for step in steps)
        return _with_place(self.name, self.lines, DeclarationFault(at, message))


def read_file(path: Path, environment: Mapping[str, str] = os.environ) -> DeclarationFile:
    """Read ``path``; raise FileNotFoundError, or FileError with every fault."""
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise FileError([f"{path}: the file has more than {MAX_BYTES} bytes."])
    return read_text(data, str(path), environment)


def read_text(data: bytes, name: str, environment: Mapping[str, str] = os.environ) -> DeclarationFile:
    """Read a declaration from ``data``; ``name`` begins each fault, its suffix distinguishes YAML from JSON."""
    value, lines = _parsed(data, name)
    reading = _Reading(name, lines, environment)
    try:
        declaration = Declaration.read(reading.prepared(value))
    except DeclarationError as error:
        raise FileError([*reading.faults, *(reading.with_place(fault) for fault in error.faults)]) from None
    if reading.faults:
        raise FileError(reading.faults)
    return DeclarationFile(declaration, reading.warnings, frozenset(reading.paused), name, lines)


def filled(
    document: dict[str, Any], name: str, environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return a document with the variables in its strings filled in; raise FileError for those that are missing."""
    reading = _Reading(name, {}, environment)
    complete: dict[str, Any] = reading.filled(document, ())
    if reading.faults:
        raise FileError(reading.faults)
    return complete


def _with_place(name: str, lines: Mapping[Pointer, int], fault: DeclarationFault) -> str:
    """Return a fault with its place; if the place has no line of its own, with the line of what encloses it."""
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

    def with_place(self, fault: DeclarationFault) -> str:
        """Return a fault with its place."""
        return _with_place(self.name, self.lines, fault)

    def prepared(self, value: Any) -> Any:
        """Return ``value`` without members that only hosts use, with variables filled in."""
        if not isinstance(value, Mapping):
            return value
        members = self._known_members(value, _SECTIONS, ())
        servers = members.get("mcpServers")
        if isinstance(servers, Mapping):
            members["mcpServers"] = {name: self._server(name, server) for name, server in servers.items()}
        if "providers" in members:
            members["providers"] = self.filled(members["providers"], ("providers",))
        return members

    def _server(self, name: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if value.get("disabled") is True:
            self.paused.add(name)
        at: Pointer = ("mcpServers", name)
        rest = {key: member_value for key, member_value in value.items() if key != "disabled"}
        return {
            key: self.filled(member_value, (*at, key))
            for key, member_value in self._known_members(rest, _OF_SERVERS, at).items()
        }

    def _known_members(self, value: Mapping[str, Any], names: frozenset[str], at: Pointer) -> dict[str, Any]:
        """Return the known members; a name that resembles a known one is a fault, others are ignored with a warning."""
        kept = {}
        for key, member_value in value.items():
            if key in names:
                kept[key] = member_value
                continue
            likely = difflib.get_close_matches(key, names, 1, _SIMILAR)
            if likely:
                self.faults.append(
                    self.with_place(
                        DeclarationFault((*at, key), f"There is no such member; is {likely[0]} meant?")
                    )
                )
            elif key != "$schema":
                self.warnings.append(
                    self.with_place(
                        DeclarationFault((*at, key), "This member belongs to another program; it is ignored.")
                    )
                )
        return kept

    def filled(self, value: Any, at: Pointer) -> Any:
        """Return ``value`` with the variables in its strings filled in; a missing one is a fault."""
        if isinstance(value, str):
            return _VARIABLE.sub(lambda match: self._variable(match, at), value)
        if isinstance(value, list):
            return [self.filled(part, (*at, number)) for number, part in enumerate(value)]
        if isinstance(value, Mapping):
            return {key: self.filled(part, (*at, key)) for key, part in value.items()}
        return value

    def _variable(self, match: re.Match[str], at: Pointer) -> str:
        name, default = match[1], match[2]
        value = self.environment.get(name) or default
        if value is None:
            self.faults.append(
                self.with_place(DeclarationFault(at, f"The environment has no variable {name}."))
            )
            return ""
        return value


class _Loader(yaml.SafeLoader):
    """YAML with only JSON's types: no dates, and ``yes`` and ``on`` are strings."""

    yaml_implicit_resolvers = JSON_SCALARS

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Refuse aliases: a few lines of them could stand for billions of members."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) are not allowed in this file", problem_mark=mark
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
    # JSON is YAML except for tabs between tokens; replaced by spaces, they leave all positions as they are.
    source = (
        re.sub(r'"(?:[^"\\]|\\.)*"|\t', lambda match: " " if match[0] == "\t" else match[0], text)
        if is_json
        else text
    )
    try:
        node = yaml.compose(source, _Loader)
    except yaml.MarkedYAMLError as error:
        if is_json:
            return value, {}
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise FileError([f"{name}:{line}: The file is not valid YAML: {error.problem}."]) from None
    except (yaml.YAMLError, RecursionError):
        raise FileError([f"{name}:1: The file is not valid YAML, or it is nested too deeply."]) from None
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
            fault = None if plain and step not in seen else "A member's name occurs twice, or is not text."
            seen.add(step)
            yield (*at, step), line, fault
            yield from _places(value, (*at, step))
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*at, number), value.start_mark.line + 1, None
            yield from _places(value, (*at, number))
