"""Match the rules with RE2, which is loaded and compiles them on first use, so that start-up does not wait for it."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.engines.injection.rules import RULES, SPELLED
from app.engines.injection.wording import OVERRIDE, InjectionRule

_MEMORY = 64 << 20
_MOST_MATCHES = 16
"""Most matches of one rule in one view; more of the same add nothing."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where a rule matched."""

    rule: InjectionRule
    start: int
    end: int


class RuleMatcher:
    """Finds matches of the rules, in time linear in the length of the text."""

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
        """Return the matches of all rules, or only of those that apply to documents."""
        matches = []
        for number in self._set.Match(text) or ():
            rule, pattern = self._patterns[number]
            if documents and not rule.documents:
                continue
            for count, match in enumerate(pattern.finditer(text)):
                if count >= _MOST_MATCHES:
                    break
                matches.append(Match(rule, match.start(), match.end()))
        return matches

    def find_spelled(self, text: str) -> bool:
        """Return whether a text without blanks contains an instruction."""
        return self._spelled.search(text) is not None


SPELLED_RULE = InjectionRule(OVERRIDE, 0.9, SPELLED, documents=True)


def rules_digest() -> str:
    """Return a short digest of the rules."""
    written = "\n".join(
        f"{rule.kind} {rule.score} {rule.documents} {rule.alone} {rule.pattern}" for rule in RULES
    )
    return hashlib.sha256(f"{written}\n{SPELLED}".encode()).hexdigest()[:8]
