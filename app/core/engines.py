"""Contracts of the heavy skills that middlewares use; engines implement them, main hands them over."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Span:
    """A finding in a text: character offsets ``[start, end)``, the public label (``PERSON``), a score 0..1."""

    start: int
    end: int
    label: str
    score: float


@dataclass(frozen=True, slots=True)
class DetectionOptions:
    """What to look for.

    ``strict`` takes every entity at low thresholds; ``entities`` (labels) limits, ``exclude`` removes;
    ``allow_list`` are texts that are never a finding, ``deny_list`` texts that always are (label ``CUSTOM``).
    """

    strict: bool = False
    language: str = "auto"
    entities: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    allow_list: tuple[str, ...] = ()
    deny_list: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Detection:
    """The findings of one call: for each text its spans, sorted and free of overlaps; warnings for metadata."""

    spans: list[list[Span]]
    engine: str
    warnings: list[str] = field(default_factory=list)


class Detector(Protocol):
    """Finds personal data; never blocks the event loop and never passes a text that it could not scan."""

    async def detect(self, texts: Sequence[str], options: DetectionOptions) -> Detection:
        """Scan ``texts`` (all leaves of one context) or raise; a time-out raises DeadlineExceededError."""

    def labels(self) -> frozenset[str]:
        """Return every label that this detector can give."""

    def label_of(self, name: str) -> str | None:
        """Return the label that ``name`` stands for: itself, or the engine's own name of a type; None: unknown."""


class Masker(Protocol):
    """Replaces originals irreversibly."""

    async def apply_operator(
        self, mode: str, items: Sequence[tuple[str, str]], key: bytes | None = None
    ) -> list[str]:
        """Return what stands for each ``(label, text)``: ``mask`` (stars), ``hash`` (under ``key``), ``remove``."""


@dataclass(frozen=True, slots=True)
class Engines:
    """The bundle that each middleware receives; a test replaces single members."""

    detector: Detector
    now: Callable[[], datetime]
