"""Split a request that asks for several things into steps."""

import re
from typing import Final

from app.engines.ranking.words import terms

MAX_STEPS: Final = 8
_WORDS: Final = 2
"""Least number of different terms of a step; less is an aside."""

_ENDS: Final = re.compile(r"(?<=[.!?;])\s+|\n+|(?:^|\s)(?:[-*\u2022]|\d{1,2}[.)])\s+")
_JOINTS: Final = re.compile(
    r"[,;]?\s+(?:and (?:then|also|finally)|after that|as well as|afterwards?|in addition|additionally|furthermore|"
    r"then|plus|also|followed by)\b[,\s]*|,\s+and\s+",
    re.IGNORECASE,
)


def steps(text: str) -> list[str]:
    """Return the parts of ``text`` that may each need their own tool; none where it asks for one thing.

    Parts are sentences, list items and clauses after words such as "then". Of too many parts the last ones are
    kept, because the subject of a request comes before what it asks.
    """
    parts = (part.strip(" ,.;:-\"'") for sentence in _ENDS.split(text) for part in _JOINTS.split(sentence))
    different = list(dict.fromkeys(part for part in parts if len(set(terms(part))) >= _WORDS))
    return different[-MAX_STEPS:] if len(different) > 1 else []
