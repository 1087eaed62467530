"""Decide which arguments of a tool are repeated in headers: only values as bounded as the tool's schema says.

Proxies log headers, and no redaction reads them. A tool that marks free text for headers is not served at all; here
an argument that is not a number, a boolean or one of the values that its schema allows is kept out of them as well.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

from app.core.errors import InvalidArgumentsError

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
        value, part = _at(arguments, path), _part(schema, path)
        if value is not None and not _fits(value, part):
            pointer = "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path)
            raise InvalidArgumentsError(
                "The tool wants this argument repeated in a header, but its value does not fit its schema.",
                details={"pointer": f"/arguments{pointer}"},
            )
    return mcp_param_headers(mirrored, arguments)


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        arguments = arguments.get(step) if isinstance(arguments, Mapping) else None
    return arguments


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
    if not isinstance(value, str):
        return False
    if "enum" in schema:
        return value in schema["enum"]
    if "const" in schema:
        return bool(value == schema["const"])
    form = _FORMATS.get(schema.get("format", ""))
    return form is None or form.fullmatch(value) is not None
