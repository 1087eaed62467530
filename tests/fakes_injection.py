"""The fake of the detector of injections: one order is suspected, everything else is not."""

import re
from collections.abc import Sequence

from app.core.contracts.engines import EngineReport, InjectionFinding, InjectionJudgement

ORDER = re.compile(r"ignore (?:all )?previous instructions", re.IGNORECASE)


class FakeInjectionDetector:
    """Suspects what its pattern finds; ``asked`` remembers the texts and whether they were documents."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []

    async def judge(self, texts: Sequence[str], *, documents: bool = False) -> InjectionJudgement:
        self.asked += [(text, documents) for text in texts]
        findings = [
            [InjectionFinding("override", match.start(), match.end(), 0.9) for match in ORDER.finditer(text)]
            for text in texts
        ]
        scores = [max((one.score for one in found), default=0.02) for found in findings]
        return InjectionJudgement(scores, findings, EngineReport("fake-injection", "1"))
