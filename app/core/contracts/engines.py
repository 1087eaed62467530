"""Contracts of the costly skills that middlewares use; engines implement them, and ``app.assembly`` wires them."""

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
    """What to detect.

    ``strict`` detects every entity at low thresholds; ``entities`` limits the labels, ``exclude`` removes labels.
    ``allow_list`` are texts that are never a finding, ``deny_list`` texts that always are (label ``CUSTOM``).
    ``names`` is the tagger for names: ``fast`` or, several times slower, ``accurate``.
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
    """The findings of one call: for each text its spans, sorted and without overlaps; warnings for metadata."""

    spans: list[list[Span]]
    engine: str
    warnings: list[str] = field(default_factory=list)


class Detector(Protocol):
    """Detect personal data; never block the event loop, and never pass a text that could not be scanned."""

    async def detect(
        self,
        texts: Sequence[str],
        options: DetectionOptions,
        *,
        tenant: str = "",
        joined: Sequence[Sequence[int]] = (),
    ) -> Detection:
        """Scan ``texts`` (all leaves of one context) or raise; a time-out raises DeadlineExceededError.

        ``joined`` are runs of adjacent texts, by position, that are also scanned as one text, so that findings split
        over them are detected; each text gets its part of the span. Nothing cached for one ``tenant`` serves another.
        """

    def labels(self) -> frozenset[str]:
        """Return every label that this detector can assign."""

    def label_of(self, name: str) -> str | None:
        """Return the label for ``name``, which is a label or the engine's own name of a type; None if unknown."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible finding of one recognizer, and whether it became a finding.

    ``entity`` is Presidio's name of the type, ``base`` the score before ``context`` (nearby words that changed it),
    ``view`` how the text was read (``text``, ``plain``, ``base64`` and so on), ``reason`` why it won or lost.
    ``threshold`` is the lowest score at which this type counts (None: it does not count here), ``missing`` words of
    which one nearby would have raised the score of a loser.
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
    """The findings of one text and all candidates, in the order of the text."""

    spans: list[Span]
    candidates: list[Candidate]
    engine: str
    language: str
    warnings: list[str] = field(default_factory=list)


class Explainer(Protocol):
    """Explain why something is a finding or not."""

    async def explain(
        self, texts: Sequence[str], options: DetectionOptions, *, tenant: str = ""
    ) -> list[Explanation]:
        """Scan ``texts``, all of one context, as `Detector.detect` does, and keep all candidates of each."""


class Masker(Protocol):
    """Replace originals irreversibly."""

    async def apply_operator(
        self, mode: str, items: Sequence[tuple[str, str]], key: bytes | None = None
    ) -> list[str]:
        """Return the replacement of each ``(label, text)``: ``mask`` (stars), ``hash`` (with ``key``), ``remove``."""


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The engine that returned a result; ``degraded``: a configured engine failed and the embedded one took over."""

    name: str
    version: str
    degraded: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector per text: unit length, float32 in little-endian bytes, all with the same number of dimensions."""

    vectors: list[bytes]
    report: EngineReport


class Embedder(Protocol):
    """Convert texts to vectors whose dot product measures their similarity."""

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return one vector per text, or raise UpstreamUnavailableError."""


@dataclass(frozen=True, slots=True)
class ToolCandidate:
    """A tool for a ranker; ``parameters`` are names and descriptions of its arguments."""

    name: str
    description: str = ""
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolRanking:
    """For each query the scores of all tools, in the order of the tools, 0..1 and comparable between requests."""

    scores: list[list[float]]
    order: list[list[int]]
    """For each query the positions of the tools, best first: the fused rank, which ``scores`` alone do not show."""
    report: EngineReport


class ToolRanker(Protocol):
    """Rank tools by how much they help with a request."""

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        """Rank all ``tools`` for each of ``queries``."""


@dataclass(frozen=True, slots=True)
class Moderation:
    """For each text its score 0..1 by policy; an engine would flag from 0.5 on, see ``Moderator``.

    ``windows`` has for each text the offsets ``[start, end)`` that produced the score of a policy. A policy that is
    not in the mapping was judged on the whole text; an empty list means that for all texts.
    """

    scores: list[Mapping[str, float]]
    report: EngineReport
    windows: list[Mapping[str, tuple[int, int]]] = field(default_factory=list)


class Moderator(Protocol):
    """Score how much a text violates each policy.

    Scores mean the same for every engine: from 0.5 on, a usual service would flag the text; from 0.85 on, the
    violation is so clear that refusing the text is defensible.
    """

    async def moderate(self, texts: Sequence[str], policies: Sequence[str]) -> Moderation:
        """Score each of ``texts`` for each of ``policies`` (violence, harassment, hate, sexual, self_harm, illicit)."""


@dataclass(frozen=True, slots=True)
class TermList:
    """What a custom policy searches: whole words or phrases in any case, and patterns in RE2 syntax."""

    terms: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


class InvalidPatternError(ValueError):
    """A pattern is not valid RE2 or too large; ``position`` is the index of the list, ``pattern`` the index in it."""

    def __init__(self, position: int, pattern: int) -> None:
        super().__init__(f"pattern {pattern} of list {position}")
        self.position = position
        self.pattern = pattern


class TermMatcher(Protocol):
    """Search for callers' terms and patterns, in time linear in the text for any pattern."""

    async def match(self, texts: Sequence[str], lists: Sequence[TermList]) -> list[frozenset[int]]:
        """Return for each of ``texts`` the positions of the lists that occur in it, or raise InvalidPatternError."""


@dataclass(frozen=True, slots=True)
class InjectionFinding:
    """A reason to suspect a text: a kind such as ``override``, its offsets ``[start, end)`` and a score 0..1."""

    kind: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class InjectionJudgement:
    """For each text a score 0..1 that it tries to take over the model, and the findings behind it."""

    scores: list[float]
    findings: list[list[InjectionFinding]]
    report: EngineReport


class InjectionDetector(Protocol):
    """Detect texts that give instructions to the model against its host."""

    async def judge(self, texts: Sequence[str], *, documents: bool = False) -> InjectionJudgement:
        """Judge each of ``texts`` by itself.

        ``documents``: the texts come from tools or files, so only phrases that no honest document contains count, and
        not whether a text reads like a request.
        """


@dataclass(frozen=True, slots=True)
class SecretOptions:
    """Which secrets to detect.

    ``allow_list`` are texts that are never a secret; ``providers`` (None: all) limits the rules; ``entropy`` adds
    random-looking values near a name such as ``password``.
    """

    allow_list: tuple[str, ...] = ()
    providers: frozenset[str] | None = None
    entropy: bool = True


@dataclass(frozen=True, slots=True)
class SecretFindings:
    """For each text its secrets, sorted and without overlaps, labelled ``SECRET_AWS`` and so on."""

    spans: list[list[Span]]
    report: EngineReport


class SecretScanner(Protocol):
    """Detect credentials."""

    async def scan(self, texts: Sequence[str], options: SecretOptions) -> SecretFindings:
        """Scan each of ``texts`` or raise; never pass a text that could not be scanned."""

    def providers(self) -> frozenset[str]:
        """Return the providers whose formats are known, in lower case."""


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """What to search and for whom; only documents that ``tenant`` and ``principals`` may read are ranked.

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
    """A part of a document and its origin; ``relevance`` is 0..1, ``written`` the document's date in any format."""

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
    """Chunks, by number, that an index outside the database proposes from ``parts``; none if it was not queried.

    ``matches`` maps each word of the query to the number of chunks in these parts that contain it.
    """

    parts: frozenset[int]
    matches: Mapping[str, int]
    numbers: Sequence[int]
    report: EngineReport


class Retriever(Protocol):
    """Find passages in a tenant's documents."""

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
    """Judge whether statements follow from their evidence."""

    async def judge(self, claims: Sequence[Claim]) -> Grounding:
        """Judge each of ``claims`` by itself."""


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines that each middleware receives; tests replace single members."""

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
