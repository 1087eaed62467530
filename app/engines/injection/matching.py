"""The rules, compiled on first use for RE2, which is loaded then: start-up does not wait for it."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.engines.injection.rules import RULES, SPELLED
from app.engines.injection.wording import OVERRIDE, InjectionRule

_MEMORY = 64 << 20
_MOST_MATCHES = 16
"""Matches of one rule in one view; more of the same add nothing."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where a rule matched."""

    rule: InjectionRule
    start: int
    end: int


class RuleMatcher:
    """Finds what the rules describe, in time that grows with the length of the text."""

    def __init__(self) -> None:
        import re2  # noqa: PLC0415 - heavy, and only needed once something is judged

        options = re2.Options()
        options.case_sensitive = False
        options.max_mem = _MEMORY
        options.log_errors = False
        self._patterns: list[tuple[InjectionRule, Any]] = [
            (rule, re2.compile(rule.pattern, options)) for rule in RULES
        ]
        self._set = re2.Set.SearchSet(options)
        for rule in RULES:
            self._set.Add(rule.pattern)
        self._set.Compile()
        self._spelled = re2.compile(SPELLED, options)

    @staticmethod
    @lru_cache(maxsize=1)
    def shared() -> "RuleMatcher":
        """Return the matcher of this process."""
        return RuleMatcher()

    def find(self, text: str, *, documents: bool) -> list[Match]:
        """Return the matches of all rules, or of those that hold for documents."""
        found = []
        for number in self._set.Match(text) or ():
            rule, pattern = self._patterns[number]
            if documents and not rule.documents:
                continue
            for count, match in enumerate(pattern.finditer(text)):
                if count >= _MOST_MATCHES:
                    break
                found.append(Match(rule, match.start(), match.end()))
        return found

    def find_spelled(self, text: str) -> bool:
        """Tell whether a text without blanks gives an order."""
        return self._spelled.search(text) is not None


SPELLED_RULE = InjectionRule(OVERRIDE, 0.9, SPELLED, documents=True)


def rules_digest() -> str:
    """Return a short digest of the rules."""
    written = "\n".join(
        f"{rule.kind} {rule.score} {rule.documents} {rule.alone} {rule.pattern}" for rule in RULES
    )
    return hashlib.sha256(f"{written}\n{SPELLED}".encode()).hexdigest()[:8]
