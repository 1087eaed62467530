"""Match URIs against URI templates (RFC 6570), in time linear in the URI for each expression."""

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
"""Characters that an expression's value cannot contain unencoded, by operator; the server checks the rest."""

_PREFIX_OPERATORS: Final = frozenset("#./;?&")
_MAX_EXPRESSIONS: Final = 16


def literal_characters(template: str) -> int:
    """Return the number of characters of a template outside its expressions."""
    return len(_EXPRESSION.sub("", template))


def template_matches(template: str, uri: str) -> bool:
    """Return whether some values of the template's variables produce this URI.

    Templates come from servers, so they are not compiled to regular expressions: the set of reachable positions in
    the URI is carried from piece to piece. A template with more than 16 expressions matches nothing.
    """
    reached = {0}
    position = 0
    expressions = list(_EXPRESSION.finditer(template))
    if len(expressions) > _MAX_EXPRESSIONS:
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
    """Return where a value can end: anywhere before a forbidden character, or where it begins (undefined)."""
    forbidden = _FORBIDDEN[operator]
    ends = set(reached)
    running = False
    for place in range(min(reached, default=len(uri)), len(uri)):
        if place in reached:
            if operator not in _PREFIX_OPERATORS:
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
