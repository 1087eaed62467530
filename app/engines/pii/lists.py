"""What a caller allows, which is never a finding, and what it denies, which always is one."""

import re
from collections.abc import Sequence
from functools import lru_cache

from app.core.engines import Span
from app.engines.pii.labels import CUSTOM
from app.engines.pii.spans import trimmed


def folded(items: Sequence[str]) -> frozenset[str]:
    """Return ``items`` without differences of case and white space."""
    return frozenset(" ".join(item.casefold().split()) for item in items)


def is_allowed(text: str, span: Span, allowed: frozenset[str]) -> bool:
    """Say whether what ``span`` covers in ``text`` is on the list."""
    kept = trimmed(text, span)
    return kept is not None and " ".join(text[kept.start : kept.end].casefold().split()) in allowed


def denied(text: str, items: tuple[str, ...]) -> list[Span]:
    """Return where ``text`` holds one of ``items``."""
    pattern = _deny_pattern(items)
    return [Span(*match.span(), CUSTOM, 1.0) for match in pattern.finditer(text)] if pattern else []


@lru_cache(maxsize=64)
def _deny_pattern(items: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return one pattern for a deny list: letter case aside, whole words, any white space between them."""
    spellings = sorted({" ".join(item.split()) for item in items} - {""}, key=lambda item: (-len(item), item))
    if not spellings:
        return None
    alternatives = (
        ("(?<!\\w)" if item[0].isalnum() else "")
        + r"\s{1,8}".join(map(re.escape, item.split()))
        + ("(?!\\w)" if item[-1].isalnum() else "")
        for item in spellings
    )
    return re.compile("|".join(alternatives), re.IGNORECASE)
