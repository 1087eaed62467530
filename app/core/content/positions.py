"""Where an original may be restored in a text from a model: never in a URL, a link or image target, or an HTML tag."""

import re

LEFT_CONTEXT = 4_096
"""How many characters before a handle decide whether its position is safe.

A longer run without spaces counts as a URL, so padding cannot hide an address, only a tag's other attributes.
"""

_URL_RUN = re.compile(
    r"://|(?:^|[(\[=,;])(?:mailto|tel|sms|data|javascript|file|cid):|www\.|(?:^|[(\[=])//|[\w-]\.[a-z]{2,}[/?#]",
    re.IGNORECASE,
)
_TAG_OPEN = re.compile(r"<[A-Za-z/!?]")
_QUOTED_BRACKET = re.compile(r"""=\s*+(?>"[^"<>]*+[<>]|'[^'<>]*+[<>])""")
_TAG = re.compile(r"""<[A-Za-z/!?](?>=\s*+(?>"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+""")
"""Match a tag up to its end; a > inside a quoted attribute value does not end it."""

_TARGET = re.compile(r"\]\((?>\\[()]|[^()]|\((?>\\[()]|[^()]|\((?>\\[()]|[^()])*+(?:\)|\Z))*+(?:\)|\Z))*+")
"""Match a Markdown target up to its end; parentheses inside it nest."""

_MANY_TARGETS = 8
"""How many targets without a space between them to read; ordinary text has fewer."""


def in_active_position(left: str) -> bool:
    """Return whether the text after ``left`` is in a URL, a link or image target, or an HTML tag.

    Text from a model is not trusted: an original in such a place would be sent out by the next click or image.
    Only ``left`` decides (the last ``LEFT_CONTEXT`` characters), so that streaming gives the same result.
    """
    target = left.rfind("](")
    if target >= 0 and left.find(")", target) < 0 and left.find("\n\n", target) < 0:
        return True
    if _in_tag(left):
        return True
    run = left[left.rfind(" ") + 1 :]
    for mark in '\n\t\r<>"':
        run = run[run.rfind(mark) + 1 :]
    return len(run) >= LEFT_CONTEXT or _URL_RUN.search(run) is not None or _in_nested_target(run)


def _in_tag(left: str) -> bool:
    last = left.rfind("<")
    if last < 0:
        return False
    if left.find(">", last) < 0 and _TAG_OPEN.match(left, last):
        return True
    if _QUOTED_BRACKET.search(left) is None:
        return False
    return any(tag.end() == len(left) for tag in _TAG.finditer(left))


def _in_nested_target(run: str) -> bool:
    """Return whether a target with parentheses in it is still open; it has no spaces, so ``run`` contains all of it."""
    position = run.find("](")
    for _ in range(_MANY_TARGETS):
        if position < 0:
            return False
        match = _TARGET.match(run, position)
        if match is None or run[match.end() : match.end() + 1] != ")":
            return True
        position = run.find("](", match.end())
    return True
