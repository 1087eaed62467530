"""Fakes of the contracts of content moderation."""

import re
from collections.abc import Mapping, Sequence

from app.core.contracts.engines import EngineReport, InvalidPatternError, Moderation, TermList


class FakeModerator:
    """Scores a text by the words in it: the highest score that one of them has for a policy."""

    def __init__(self, words: Mapping[str, Mapping[str, float]] | None = None) -> None:
        self.words = words or {
            "hurt": {"harassment": 0.7},
            "kill you": {"violence": 0.95},
            "end my life": {"self_harm": 0.9},
            "slur": {"hate": 0.6},
            "doubtful": {"illicit": 0.4},
        }

    async def moderate(self, texts: Sequence[str], policies: Sequence[str]) -> Moderation:
        scores = [
            {
                policy: max(
                    (by.get(policy, 0.0) for word, by in self.words.items() if word in text), default=0.0
                )
                for policy in policies
            }
            for text in texts
        ]
        return Moderation(scores, EngineReport("fake", "1"))


class FakeTermMatcher:
    """Matches with the standard library."""

    async def match(self, texts: Sequence[str], lists: Sequence[TermList]) -> list[frozenset[int]]:
        patterns: list[list[re.Pattern[str]]] = []
        for position, one in enumerate(lists):
            patterns.append([re.compile(rf"(?i)(?<!\w){re.escape(term)}(?!\w)") for term in one.terms])
            for number, pattern in enumerate(one.patterns):
                try:
                    patterns[-1].append(re.compile(pattern, re.IGNORECASE))
                except re.error:
                    raise InvalidPatternError(position, number) from None
        return [
            frozenset(i for i, found in enumerate(patterns) if any(one.search(text) for one in found))
            for text in texts
        ]
