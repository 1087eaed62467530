"""A secret scanner small enough to be read."""

import re
from collections.abc import Sequence

from app.core.contracts.engines import EngineReport, SecretFindings, SecretOptions, Span


class FakeSecretScanner:
    """Finds ``aws!`` and ``github!`` with what stands behind them; the contract's options hold."""

    def providers(self) -> frozenset[str]:
        return frozenset({"aws", "github"})

    async def scan(self, texts: Sequence[str], options: SecretOptions) -> SecretFindings:
        return SecretFindings([self._one(text, options) for text in texts], EngineReport("fake", "1"))

    def _one(self, text: str, options: SecretOptions) -> list[Span]:
        wanted = self.providers() if options.providers is None else options.providers
        return [
            Span(found.start(), found.end(), f"SECRET_{found[1].upper()}", 1.0)
            for found in re.finditer(r"(aws|github)!\w+", text)
            if found[1] in wanted and found[0] not in options.allow_list
        ]
