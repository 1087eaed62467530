"""The steps of a request that asks for several things."""

import re
from typing import Final

from app.engines.ranking.words import terms

MAX_STEPS: Final = 8
_WORDS: Final = 2
"""A step says at least so many things; less is an aside."""

_ENDS: Final = re.compile(r"(?<=[.!?;])\s+|\n+|(?:^|\s)(?:[-*\u2022]|\d{1,2}[.)])\s+")
_JOINTS: Final = re.compile(
    r"[,;]?\s+(?:and (?:then|also|finally)|after that|as well as|afterwards?|in addition|additionally|furthermore|"
    r"then|plus|also|followed by)\b[,\s]*|,\s+and\s+",
    re.IGNORECASE,
)


def steps(text: str) -> list[str]:
    """Return the parts of ``text`` that may each want a tool of their own; none where it asks for one thing.

    Parts are sentences, list items and clauses behind words such as "then". Of a longer list the last ones are
    kept: what a request is about comes before what it asks.
    """
    parts = (part.strip(" ,.;:-\"'") for sentence in _ENDS.split(text) for part in _JOINTS.split(sentence))
    found = list(dict.fromkeys(part for part in parts if len(set(terms(part))) >= _WORDS))
    return found[-MAX_STEPS:] if len(found) > 1 else []
