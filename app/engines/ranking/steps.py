"""The steps of a request that asks for several things."""

import re
from typing import Final

MAX_STEPS: Final = 8
_SHORTEST: Final = 12
_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?;])\s+|\n+|(?:^|\s)(?:[-*\u2022]|\d{1,2}[.)])\s+")
_JOINTS: Final = re.compile(
    r",?\s+(?:and\s+then|and\s+also|after\s+that|as\s+well\s+as|afterwards?|in\s+addition|additionally|furthermore|"
    r"next|finally|lastly|then|plus)\b[,\s]*|,\s+and\s+(?=[a-z])|\s+and\s+(?=(?:[a-z]+\s+){2})",
    re.IGNORECASE,
)


def steps(text: str) -> list[str]:
    """Return the parts of ``text`` that may each want a tool of their own; one or none where it asks for one thing."""
    found: list[str] = []
    for sentence in _SENTENCE_ENDS.split(text):
        for part in _JOINTS.split(sentence):
            bare = part.strip(" ,.;:-\"'")
            if len(bare) >= _SHORTEST:
                found.append(bare)
    return found
