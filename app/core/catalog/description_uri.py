"""The resource with full tool descriptions: its URI, and the bodies whose exact wording the proposal defines."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

from app.core.errors import InvalidArgumentsError

DESCRIPTIONS_URI: Final = "resource:///tool_descriptions"
DESCRIPTIONS_TEMPLATE: Final = DESCRIPTIONS_URI + "{?tools}"
MAX_URI: Final = 16_384
MAX_SELECTED: Final = 200
_MAX_AVAILABLE: Final = 100
_MAX_NAMES_LISTED: Final = 2000

MISSING_SELECTION: Final[Mapping[str, Any]] = {
    "error": {
        "code": "MISSING_TOOL_SELECTION",
        "message": "You must specify one or more tool names in the 'tools' parameter.",
        "examples": [
            f"{DESCRIPTIONS_URI}?tools=tool_name",
            f"{DESCRIPTIONS_URI}?tools=tool1,tool2",
        ],
    }
}


def is_descriptions_uri(uri: str) -> bool:
    """Return whether a URI is the resource's, with or without a selection."""
    return uri == DESCRIPTIONS_URI or uri.startswith(DESCRIPTIONS_URI + "?")


def selected_tools(uri: str) -> tuple[str, ...]:
    """Return the names that the parameter ``tools`` selects, in their order, without duplicates and empty names.

    Names are split at commas first and percent-decoded after that, so that a name may contain a comma (``%2C``); a
    plus sign is a plus sign. If ``tools`` occurs more than once, its values are joined. Other parameters and the part
    after a ``#`` are ignored. Raise InvalidArgumentsError if the URI is too long or selects too many tools.
    """
    if len(uri) > MAX_URI:
        raise _too_long("characters", MAX_URI)
    query = uri.partition("#")[0].partition("?")[2]
    selected: dict[str, None] = {}
    for parameter in query.split("&"):
        key, _, value = parameter.partition("=")
        if unquote(key) == "tools":
            selected |= {name: None for part in value.split(",") if (name := unquote(part))}
    if len(selected) > MAX_SELECTED:
        raise _too_long("names", MAX_SELECTED)
    return tuple(selected)


def selection_uri(name: str) -> str:
    """Return the URI of one tool's description."""
    return f"{DESCRIPTIONS_URI}?tools={quote(name, safe='')}"


def description_required(name: str) -> dict[str, Any]:
    """Return the body that answers a call before the tool's description was read."""
    return {
        "error": {
            "code": "TOOL_DESCRIPTION_REQUIRED",
            "message": f"Tool '{name}' requires fetching its description before use.",
            "resource_uri": selection_uri(name),
        }
    }


def not_found(names: Sequence[str], visible: Iterable[str]) -> dict[str, Any]:
    """Return an error entry for each of ``names``, which no tool has; it lists a bounded number of ``visible`` ones."""
    listed = list(visible)[: max(1, min(_MAX_AVAILABLE, _MAX_NAMES_LISTED // max(1, len(names))))]
    return {name: {"error": f"Tool '{name}' not found", "available_tools": listed} for name in names}


def _too_long(unit: str, maximum: int) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"The URI selects too many tools: at most {maximum} {unit} are allowed. Read them in several requests.",
        details={"pointer": "/uri", "maximum": maximum},
    )
