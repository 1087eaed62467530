"""Which arguments of a redaction hide at least as much as others; what is not proved here may hide less."""

from collections.abc import Mapping
from typing import Any, Final, Literal

CHECKS: Final = frozenset({"pii_redaction", "secret_redaction", "content_moderation", "prompt_injection"})
"""Middlewares whose arguments decide what is hidden or blocked."""
UNSET: Final = object()
"""In the place of an argument that is not set."""

_ORDERS: Final[Mapping[str, tuple[Any, ...]]] = {
    "aggressiveness": ("standard", "strict"),
    "names": ("fast", "accurate"),
    "entropy": (False, True),
    "handles_in_input": ("keep", "escape"),
    "unscanned": ("report", "block"),
    "numbers": ("report", "string", "block"),
    "uris": ("report", "change"),
    "member_names": ("report", "change"),
    "return_mapping": (True, False),
    "returnMapping": (True, False),
}
"""Values from that which hides least to that which hides most."""
_USUAL: Final[Mapping[str, Any]] = {
    "entropy": True,
    "numbers": "string",
    "return_mapping": False,
    "returnMapping": False,
    "exclude": [],
    "allow_list": [],
    "deny_list": [],
    "entities": None,
    "providers": None,
    "mode": "handle",
}
_BY_DOOR: Final = frozenset({"uris", "member_names"})
"""Without a value these depend on the way of the text, so that setting and unsetting them proves little."""
_OF_NO_MATTER: Final = frozenset({"canonical", "strict"})


def hides_as_much(middleware: str, name: str, before: Any, after: Any) -> bool:
    """Return whether ``after`` is proved to hide whatever ``before`` hides; UNSET stands for no value."""
    if name in _OF_NO_MATTER:
        return True
    if middleware not in {"pii_redaction", "secret_redaction"}:
        return False
    old, new = _value(name, before, "most"), _value(name, after, "least")
    order = _ORDERS.get(name, ())
    in_order = old in order and new in order and order.index(new) >= order.index(old)
    return in_order or any(
        (
            name == "mode" and (old in (new, "report") or new == "block"),
            name in {"exclude", "allow_list"} and _is_part(new, old),
            name == "deny_list" and _is_part(old, new),
            name in {"entities", "providers"} and (new is None or _is_part(old, new)),
        )
    )


def _value(name: str, value: Any, extreme: Literal["least", "most"]) -> Any:
    if value is not UNSET:
        return value
    if name in _BY_DOOR:
        return _ORDERS[name][0 if extreme == "least" else -1]
    return _USUAL[name] if name in _USUAL else _ORDERS[name][0] if name in _ORDERS else None


def _is_part(inner: Any, outer: Any) -> bool:
    """Return whether all words of one list stand in the other, whatever their case."""
    if not isinstance(inner, list) or not isinstance(outer, list):
        return False
    return {str(word).lower() for word in inner} <= {str(word).lower() for word in outer}
