"""Contracts of the heavy skills that middlewares use; engines implement them, main hands them over."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from app.core.contracts.grounding import AnswerChecker, LinkProbe


@dataclass(frozen=True, slots=True)
class Span:
    """A finding in a text: character offsets ``[start, end)``, the public label (``PERSON``), a score 0..1."""

    start: int
    end: int
    label: str
    score: float


NameEngine = Literal["fast", "accurate"]


@dataclass(frozen=True, slots=True)
class DetectionOptions:
    """What to look for.

    ``strict`` takes every entity at low thresholds; ``entities`` (labels) limits, ``exclude`` removes;
    ``allow_list`` are texts that are never a finding, ``deny_list`` texts that always are (label ``CUSTOM``).
    ``names``: the tagger that looks for names, ``fast`` or, several times slower, ``accurate``.
    """

    strict: bool = False
    language: str = "auto"
    names: NameEngine = "fast"
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

    async def detect(
        self,
        texts: Sequence[str],
        options: DetectionOptions,
        *,
        tenant: str = "",
        joined: Sequence[Sequence[int]] = (),
    ) -> Detection:
        """Scan ``texts`` (all leaves of one context) or raise; a time-out raises DeadlineExceededError.

        ``joined`` are runs of adjacent texts, by position, that are read as one text too, so that what is split over
        them is found; each text gets the part that lies in it. Nothing remembered of one ``tenant`` serves another.
        """

    def labels(self) -> frozenset[str]:
        """Return every label that this detector can give."""

    def label_of(self, name: str) -> str | None:
        """Return the label that ``name`` stands for: itself, or the engine's own name of a type; None: unknown."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one recognizer found in a text, and what became of it.

    ``entity`` is Presidio's name of the type, ``base`` the score before ``context`` (the words nearby that changed it),
    ``view`` how the text was read (``text``, ``plain``, ``base64`` and so on), ``reason`` why it won or lost.
    ``threshold`` is the score from which on this type counts (None: not at all here), ``missing`` the words of which
    one nearby would have raised the score of a loser.
    """

    span: Span
    entity: str
    recognizer: str
    pattern: str
    base: float
    context: str
    view: str
    won: bool
    reason: str
    threshold: float | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The findings of one text, and every candidate for one, in the order of the text."""

    spans: list[Span]
    candidates: list[Candidate]
    engine: str
    language: str
    warnings: list[str] = field(default_factory=list)


class Explainer(Protocol):
    """Says why something is a finding or is not."""

    async def explain(self, text: str, options: DetectionOptions, *, tenant: str = "") -> Explanation:
        """Scan ``text`` as `Detector.detect` does and keep what was considered."""


class Masker(Protocol):
    """Replaces originals irreversibly."""

    async def apply_operator(
        self, mode: str, items: Sequence[tuple[str, str]], key: bytes | None = None
    ) -> list[str]:
        """Return what stands for each ``(label, text)``: ``mask`` (stars), ``hash`` (under ``key``), ``remove``."""


@dataclass(frozen=True, slots=True)
class EngineReport:
    """Which engine gave a result; ``degraded``: a configured engine failed and the embedded one served."""

    name: str
    version: str
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector for each text: unit length, float32 in little-endian bytes, equal lengths."""

    vectors: list[bytes]
    report: EngineReport


class Embedder(Protocol):
    """Turns texts into vectors whose dot product says how alike they are."""

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return a vector for each of ``texts`` or raise UpstreamUnavailableError."""


@dataclass(frozen=True, slots=True)
class ToolCandidate:
    """A tool as a ranker sees it; ``parameters`` are names and descriptions of its arguments."""

    name: str
    description: str = ""
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolRanking:
    """For each query the scores of all tools, in the order of the tools: 0..1, comparable between requests."""

    scores: list[list[float]]
    order: list[list[int]]
    """For each query the positions of the tools, best first: the fused rank, which ``scores`` alone do not give."""
    report: EngineReport


class ToolRanker(Protocol):
    """Says which tools help with a request."""

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        """Rank all ``tools`` for each of ``queries``."""


@dataclass(frozen=True, slots=True)
class Moderation:
    """For each text its score 0..1 by policy: 0.5 is where the engine itself would flag, see ``Moderator``.

    ``windows``: for each text where its score of a policy comes from, as offsets ``[start, end)``; a policy that is
    not in the mapping was judged on the whole text, and so is everything where the list is empty.
    """

    scores: list[Mapping[str, float]]
    report: EngineReport
    windows: list[Mapping[str, tuple[int, int]]] = field(default_factory=list)


class Moderator(Protocol):
    """Says how much a text goes against each policy.

    Scores mean the same whatever the engine: from 0.5 on a usual service would flag the text, and from 0.85 on it is
    so plain that refusing it is defensible.
    """

    async def moderate(self, texts: Sequence[str], policies: Sequence[str]) -> Moderation:
        """Score each of ``texts`` for each of ``policies`` (violence, harassment, hate, sexual, self_harm, illicit)."""


@dataclass(frozen=True, slots=True)
class TermList:
    """What a custom policy looks for: whole words or phrases in any case, and patterns in RE2's syntax."""

    terms: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


class InvalidPatternError(ValueError):
    """A pattern is no RE2 pattern or too large; ``position`` is the list's and ``pattern`` the pattern's in it."""

    def __init__(self, position: int, pattern: int) -> None:
        super().__init__(f"pattern {pattern} of list {position}")
        self.position = position
        self.pattern = pattern


class TermMatcher(Protocol):
    """Looks for the terms and patterns that callers give; in time linear in the text, whatever they give."""

    async def match(self, texts: Sequence[str], lists: Sequence[TermList]) -> list[frozenset[int]]:
        """Return for each of ``texts`` the positions of the lists that occur in it, or raise InvalidPatternError."""


@dataclass(frozen=True, slots=True)
class InjectionFinding:
    """Why a text is suspected: a kind such as ``override``, its offsets ``[start, end)`` and a score 0..1."""

    kind: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class InjectionJudgement:
    """For each text a score 0..1 that it tries to take over the model, and what speaks for it."""

    scores: list[float]
    findings: list[list[InjectionFinding]]
    report: EngineReport


class InjectionDetector(Protocol):
    """Finds texts that give orders to the model against its host."""

    async def judge(self, texts: Sequence[str], *, documents: bool = False) -> InjectionJudgement:
        """Judge each of ``texts`` by itself.

        ``documents``: they are what tools returned or files hold, so only what no honest document says counts, and not
        whether they read like somebody's request.
        """


@dataclass(frozen=True, slots=True)
class SecretOptions:
    """Which secrets to look for.

    ``allow_list`` are texts that are never a secret; ``providers`` (None: all) limits the rules; ``entropy`` adds
    random-looking values in the context of a name such as ``password``.
    """

    allow_list: tuple[str, ...] = ()
    providers: frozenset[str] | None = None
    entropy: bool = True


@dataclass(frozen=True, slots=True)
class SecretFindings:
    """For each text its secrets, sorted and free of overlaps, labelled ``SECRET_AWS`` and so on."""

    spans: list[list[Span]]
    report: EngineReport


class SecretScanner(Protocol):
    """Finds credentials."""

    async def scan(self, texts: Sequence[str], options: SecretOptions) -> SecretFindings:
        """Scan each of ``texts`` or raise; a text that could not be scanned is never passed."""

    def providers(self) -> frozenset[str]:
        """Return the providers whose formats are known, in lower case."""


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """What to look for and who asks; only what ``tenant`` and ``principals`` may read is ranked at all.

    ``sources`` are names of collections or sources (None: all). ``limit`` counts documents.
    """

    tenant: str
    principals: frozenset[str]
    text: str
    sources: tuple[str, ...] | None = None
    limit: int = 5
    min_relevance: float = 0.0


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A part of a document, with where it comes from; ``relevance`` is 0..1, ``written`` its date, in any words."""

    document: str
    title: str
    collection: str
    source: str
    text: str
    relevance: float
    uri: str | None = None
    written: str | None = None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """For each query its passages, best first."""

    passages: list[list[RetrievedPassage]]
    report: EngineReport


@dataclass(frozen=True, slots=True)
class ChunkProposals:
    """Chunks, by number, that an index outside of the database proposes out of ``parts``; none where it was not asked.

    ``matches`` says how many chunks of these parts have each asked word.
    """

    parts: frozenset[int]
    matches: Mapping[str, int]
    numbers: Sequence[int]
    report: EngineReport


class Retriever(Protocol):
    """Finds passages of a tenant's documents."""

    async def retrieve(self, queries: Sequence[RetrievalQuery]) -> Retrieval:
        """Return the best passages for each of ``queries``."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement and the texts that should support it."""

    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grounding:
    """For each claim a score 0..1 that its evidence does not support it."""

    scores: list[float]
    report: EngineReport


class GroundingJudge(Protocol):
    """Says whether statements follow from their evidence."""

    async def judge(self, claims: Sequence[Claim]) -> Grounding:
        """Judge each of ``claims`` by itself."""


@dataclass(frozen=True, slots=True)
class Engines:
    """The bundle that each middleware receives; a test replaces single members."""

    detector: Detector
    now: Callable[[], datetime]
    embedder: Embedder
    tools: ToolRanker
    moderator: Moderator
    terms: TermMatcher
    injection: InjectionDetector
    grounding: GroundingJudge
    answers: AnswerChecker
    links: LinkProbe | None
    secrets: SecretScanner
    retriever: Retriever
