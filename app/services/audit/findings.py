"""What the verification of the audit log says: how much was compared, and what does not hold."""

from dataclasses import dataclass, field
from typing import Literal

from app.core.transparency.notes import VerifierKey

FindingKind = Literal[
    "changed",
    "missing",
    "inserted",
    "reordered",
    "gap",
    "rolled_back",
    "fork",
    "bad_signature",
    "bad_tile",
    "bad_checkpoint",
    "miscounted",
]


@dataclass(frozen=True, slots=True)
class LogFinding:
    """Something that does not hold: what kind, in whose log (None: the log of heads), where, and what it means."""

    kind: FindingKind
    tenant: str | None
    place: str
    meaning: str


@dataclass(slots=True)
class Verification:
    """What was compared with what ``keys`` signed, and what was found wrong.

    ``unnumbered`` events are from before events were numbered: they were sealed as they were found. ``pruned`` ones are
    gone because their retention was over, as a sealed statement says. ``waiting`` ones are authentic and not
    sealed yet, as where the service was stopped just after it stored them. ``unsigned`` is how many entries the log of
    heads has beyond its newest checkpoint. ``keyless`` are tenants whose digests have no key any more, as
    after an erasure: nobody can say of what they are, or confirm a guess.
    """

    keys: tuple[VerifierKey, ...]
    tenants: int = 0
    events: int = 0
    unnumbered: int = 0
    pruned: int = 0
    waiting: int = 0
    unsigned: int = 0
    checkpoints: int = 0
    anchors: int = 0
    findings: list[LogFinding] = field(default_factory=list)
    keyless: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Return whether nothing was found wrong."""
        return not self.findings

    def add(self, kind: FindingKind, tenant: str | None, place: str, meaning: str) -> None:
        """Note something that does not hold."""
        self.findings.append(LogFinding(kind, tenant, place, meaning))

    def join(self, part: "Verification") -> None:
        """Add what was compared and found in a part, with the same keys."""
        for name in ("tenants", "events", "unnumbered", "pruned", "waiting", "checkpoints", "anchors"):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.findings += part.findings
