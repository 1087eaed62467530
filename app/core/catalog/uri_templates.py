"""Whether a URI may have come from a URI template (RFC 6570), in time linear in the URI for each expression."""

import re
from typing import Final

_EXPRESSION: Final = re.compile(r"\{([+#./;?&]?)[^{}]*\}")
_STRUCTURE: Final = frozenset("/?#")
_FORBIDDEN: Final = {
    "": _STRUCTURE,
    "+": frozenset(),
    "#": frozenset(),
    ".": _STRUCTURE,
    "/": frozenset("?#"),
    ";": _STRUCTURE,
    "?": frozenset("#"),
    "&": frozenset("#"),
}
"""Characters that an expression's value cannot hold unencoded, by operator; the rest is left to the server."""

_PREFIXED: Final = frozenset("#./;?&")
_MOST_EXPRESSIONS: Final = 16


def literal_characters(template: str) -> int:
    """Return how many characters of a template stand outside its expressions."""
    return len(_EXPRESSION.sub("", template))


def template_matches(template: str, uri: str) -> bool:
    """Return whether some values of the template's variables give this URI.

    No regular expression is made of a template, since servers write them: the set of places in the URI that can be
    reached is carried from piece to piece. A template of more than 16 expressions matches nothing.
    """
    reached = {0}
    position = 0
    expressions = list(_EXPRESSION.finditer(template))
    if len(expressions) > _MOST_EXPRESSIONS:
        return False
    for expression in expressions:
        reached = _after_literal(template[position : expression.start()], uri, reached)
        reached = _after_value(expression[1], uri, reached)
        position = expression.end()
        if not reached:
            return False
    return len(uri) in _after_literal(template[position:], uri, reached)


def _after_literal(literal: str, uri: str, reached: set[int]) -> set[int]:
    return {place + len(literal) for place in reached if uri.startswith(literal, place)}


def _after_value(operator: str, uri: str, reached: set[int]) -> set[int]:
    """Return where a value can end: anywhere until a character that it cannot hold, or where it began (undefined)."""
    forbidden = _FORBIDDEN[operator]
    ends = set(reached)
    running = False
    for place in range(min(reached, default=len(uri)), len(uri)):
        if place in reached:
            if operator not in _PREFIXED:
                running = True
            elif uri[place] == operator:
                running = True
                ends.add(place + 1)
                continue
        if running and uri[place] not in forbidden:
            ends.add(place + 1)
        else:
            running = False
    return ends
