"""Repeat arguments of a tool in headers: ``Mcp-Param-`` and the declared token, and values as the tool's schema says.

Proxies log headers, and no redaction reads them. An operator approves which arguments a tool repeats; here a value that
does not fit the schema, would end the header's line or is longer than a header may be is refused.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

from app.core.catalog.header_parameters import value_at
from app.core.errors import InvalidArgumentsError

LONGEST_VALUE: Final = 4096
"""The longest text that is repeated, in bytes: servers refuse longer headers in ways that explain nothing."""

_LINE_ENDS: Final = re.compile(r"[\r\n\0]")

HeaderMap = Mapping[tuple[str, ...], str]

_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_TIME: Final = r"\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})?"
_FORMATS: Final[Mapping[str, re.Pattern[str]]] = {
    "date": re.compile(_DATE),
    "time": re.compile(_TIME),
    "date-time": re.compile(rf"{_DATE}[Tt ]{_TIME}"),
    "duration": re.compile(r"P(?=[\dT])(\d+[YMWD])*(T(\d+[HMS])+)?"),
    "ipv4": re.compile(r"\d{1,3}(\.\d{1,3}){3}"),
    "ipv6": re.compile(r"(?=.*:.*:)[0-9A-Fa-f:.]{2,45}"),
    "uuid": re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
}


def header_map(schema: Mapping[str, Any]) -> HeaderMap:
    """Return which arguments a tool wants repeated, by their path; none where it declares that wrongly."""
    return {} if find_invalid_x_mcp_header(schema) else x_mcp_header_map(schema)


def param_headers(
    schema: Mapping[str, Any], mirrored: HeaderMap, arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Return the headers; raises InvalidArgumentsError rather than send headers that differ from the body."""
    for path in mirrored:
        value, part = value_at(arguments, path), _part(schema, path)
        if value is not None and not _fits(value, part):
            pointer = "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path)
            raise InvalidArgumentsError(
                "The tool wants this argument repeated in a header, but its value does not fit its schema, has several "
                f"lines or is longer than {LONGEST_VALUE} bytes.",
                details={"pointer": f"/arguments{pointer}"},
            )
    return mcp_param_headers(mirrored, arguments)


def _part(schema: Any, path: tuple[str, ...]) -> Mapping[str, Any]:
    for step in path:
        schema = schema["properties"][step]
    part: Mapping[str, Any] = schema
    return part


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = schema["type"]
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "integer":
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return whole and not isinstance(value, bool)
    if not isinstance(value, str) or _LINE_ENDS.search(value) or len(value.encode()) > LONGEST_VALUE:
        return False
    if "enum" in schema:
        return value in schema["enum"]
    if "const" in schema:
        return bool(value == schema["const"])
    form = _FORMATS.get(schema.get("format", ""))
    return form is None or form.fullmatch(value) is not None
