"""Find keys that have the prefix of a provider and another length: older, newer, or cut off."""

import re
from dataclasses import dataclass
from typing import Final

from app.engines.secrets.assignments import is_key
from app.engines.secrets.checks import is_placeholder
from app.engines.secrets.formats import ALPHABETS, PREFIX_ENDS, SecretFormat
from app.engines.secrets.placeholders import is_filled_in
from app.engines.secrets.rules import FORMATS
from app.engines.secrets.spotting import SecretRule, Spot, compiled, stands_alone

_LEAST, _MOST_LEAST, _LONGEST = 16, 24, 400
_SHARE: Final = 0.45
"""A key has at least this share of its documented length, within the two bounds above."""
_SEPARATORS: Final = re.compile("[-_.]")
_DRAWN: Final = 0.65


def least_of(form: SecretFormat) -> int:
    """Return how many characters a key must have behind its prefix."""
    documented = sum(len(piece.literal) or piece.least for piece in form.pieces[1:])
    return min(max(_LEAST, round(_SHARE * documented)), _MOST_LEAST)


@dataclass(slots=True, eq=False)
class LooseFinder:
    """Searches for keys of a prefix at any length; they must look drawn, which a name with that prefix does not.

    A text with one of the ``longer`` prefixes, which begin with this one, is for the finder of that one.
    """

    provider: str
    prefix: bytes
    longer: tuple[bytes, ...]
    pattern: str
    least: int

    def __call__(self, data: bytes, at: int) -> Spot | None:
        """Return the key whose prefix begins at ``at``, or None."""
        if (
            not data.startswith(self.prefix, at)
            or data.startswith(self.longer, at)
            or not stands_alone(data, at)
        ):
            return None
        start = at + len(self.prefix)
        run = compiled(self.pattern).match(data, start, start + _LONGEST)
        if run is None or data[run.end() : run.end() + 1].isalnum():
            return None
        key = run[0].rstrip(PREFIX_ENDS.encode())
        if len(key) < self.least or not _is_drawn(key.decode("ascii")):
            return None
        return Spot(at, start + len(key), f"SECRET_{self.provider.upper()}", 0.7)


def _is_drawn(key: str) -> bool:
    """Return whether a key, or one of its parts, has digits and letters that change often."""
    alphanumeric = sum(map(str.isalnum, key))
    filled_in = is_filled_in(key) and not is_placeholder(key)
    return (
        filled_in and alphanumeric >= _DRAWN * len(key) and any(map(is_key, (key, *_SEPARATORS.split(key))))
    )


def _loose() -> tuple[SecretRule, ...]:
    """Return one rule for each prefix, with the letters of all its formats."""
    formats: dict[str, list[SecretFormat]] = {}
    for form in FORMATS:
        if prefix := form.prefix:
            formats.setdefault(prefix, []).append(form)
    rules = []
    for prefix, alike in formats.items():
        alphabets = {piece.alphabet for form in alike for piece in form.pieces} - {"", "g"}
        letters = {ALPHABETS[alphabet][1] for alphabet in alphabets}
        between = {
            char
            for form in alike
            for piece in form.pieces[1:]
            for char in piece.literal
            if char in PREFIX_ENDS
        }
        extra = "".join(f"\\{char}" for char in sorted(between))
        pattern = f"[{''.join(sorted(letters))}{extra}]+"
        least = min(least_of(form) for form in alike)
        longer = tuple(other.encode() for other in formats if other.startswith(prefix) and other != prefix)
        finder = LooseFinder(alike[0].provider, prefix.encode(), longer, pattern, least)
        rules.append(SecretRule(alike[0].provider, prefix.lower(), finder))
    return tuple(rules)


LOOSE: Final = _loose()
"""The rules for keys of other lengths."""
