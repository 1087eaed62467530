"""Documents that people keep in files: read strictly from JSON or YAML, written in a readable form."""

import json
import math
import re
from typing import Any, Final, Literal

import yaml

from app.core.errors import InvalidRequestError, TooLargeError
from app.core.strictjson import loads

DocumentFormat = Literal["json", "yaml"]

MAX_YAML_BYTES: Final = 1024 * 1024
_MAX_DEPTH: Final = 64
_PLAIN = (str, bool, int, type(None))


_SCALARS: Final = (
    ("tag:yaml.org,2002:bool", re.compile(r"(?:true|false)$"), "tf"),
    ("tag:yaml.org,2002:null", re.compile(r"(?:null|~)?$"), ["n", "~", ""]),
    ("tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9][0-9]*)$"), "-0123456789"),
    (
        "tag:yaml.org,2002:float",
        re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)$"),
        "-0123456789",
    ),
)
JSON_SCALARS: Final = {
    start: [(tag, pattern) for tag, pattern, starts in _SCALARS if start in starts]
    for start in sorted({start for _, _, starts in _SCALARS for start in starts})
}
"""For a YAML loader: unquoted words have only JSON's types, so dates, ``yes`` and ``on`` are strings."""


class _Loader(yaml.CSafeLoader):
    """JSON's types; a name that occurs twice in one mapping is an error; the later value does not win."""

    yaml_implicit_resolvers = JSON_SCALARS

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Refuse what a JSON object cannot have."""
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value) or not all(isinstance(name, str) for name in mapping):
            raise _at(node.start_mark, "names in a mapping must be text and occur once")
        return mapping


class _Dumper(yaml.SafeDumper):
    """Quotes strings that would be read as another type, here or under YAML's older rules."""


for _tag, _pattern, _first in _SCALARS:
    _Dumper.add_implicit_resolver(_tag, _pattern, _first)


def read_document(body: bytes, form: DocumentFormat) -> Any:
    """Return the JSON value that ``body`` holds, or raise InvalidRequestError or TooLargeError.

    YAML may have no aliases and no tags: whatever could not be written as JSON is refused.
    """
    if form == "json":
        return loads(body, max_depth=_MAX_DEPTH)
    if len(body) > MAX_YAML_BYTES:
        raise TooLargeError(
            f"The YAML document is larger than {MAX_YAML_BYTES} bytes.",
            details={"limit": "yaml_bytes", "maximum": MAX_YAML_BYTES},
        )
    try:
        text = body.decode()
        _check_events(text)
        value = yaml.load(text, _Loader)  # noqa: S506 - a subclass of the safe loader
    except UnicodeDecodeError:
        raise InvalidRequestError("The document is not UTF-8.") from None
    except yaml.MarkedYAMLError as error:
        raise _at(error.problem_mark, "this is not valid YAML") from None
    except (yaml.YAMLError, ValueError):
        raise InvalidRequestError("The document is not valid YAML.") from None
    _check_plain(value)
    return value


def write_document(value: Any, form: DocumentFormat) -> str:
    """Return ``value`` as text with a final newline; names keep their order."""
    if form == "json":
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))


def _check_events(text: str) -> None:
    """Refuse aliases, which make a small text huge, and nesting that no document needs."""
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise _at(event.start_mark, "aliases are not supported; write the value again")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH:
            raise TooLargeError(
                "The document is nested too deeply.", details={"limit": "depth", "maximum": _MAX_DEPTH}
            )


def _check_plain(value: Any) -> None:
    waiting = [value]
    while waiting:
        value_inside = waiting.pop()
        if isinstance(value_inside, dict):
            waiting.extend(value_inside.values())
        elif isinstance(value_inside, list):
            waiting.extend(value_inside)
        elif not (
            isinstance(value_inside, _PLAIN)
            or (isinstance(value_inside, float) and math.isfinite(value_inside))
        ):
            raise InvalidRequestError("The document has a value that JSON cannot represent.")


def _at(mark: Any, fault: str) -> InvalidRequestError:
    place = {} if mark is None else {"line": mark.line + 1, "column": mark.column + 1}
    where = f"Line {place['line']}: " if place else ""
    return InvalidRequestError(f"{where}{fault}." if where else f"{fault.capitalize()}.", details=place)
