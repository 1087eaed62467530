"""Find what in a model's answer the context does not support, and fix what needs no judgement."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from app.core.content.context import Context
from app.core.content.leaves import Leaf
from app.core.content.text_edits import Edit
from app.core.contracts.engines import Claim, EngineReport, Engines
from app.core.contracts.grounding import RULES, AnswerFinding, CheckOptions
from app.core.contracts.middleware import Arguments, Middleware, Outcome
from app.core.errors import InvalidArgumentsError
from app.core.offload import off_loop
from app.middlewares.hallucination_detection.answers import (
    AnswerTexts,
    Source,
    answer_of,
    evidence_of,
    invented_identifiers,
)

Check = Literal[
    "sentences", "urls", "code", "packages", "quotes", "numbers", "names", "handles", "contradictions"
]
PackageName = Annotated[str, StringConstraints(min_length=1, max_length=214)]

MAX_FINDINGS = 200
MAX_SENTENCES = 100
MAX_PROBED = 20
MEDIUM_FROM = 0.9

_FINDING_WEIGHT: Final = 16
"""Cost of reporting one finding, in characters, for the decision to leave the event loop."""
_TOOL_CHECKS = frozenset({"urls", "handles"})
_WIDE_CHECKS = frozenset({"urls", "packages", "handles"})
"""Checks that use the context even if there is evidence, since a URL from the user is not invented."""

_ADVICE = {
    "sentence": "state only what the context states, and say so if it does not contain the answer",
    "url": "use only addresses from the context, letter by letter",
    "code": "check that each block of code is complete and parses",
    "package": "name only packages that exist",
    "quote": "quote word by word, or use no quotation marks",
    "number": "take numbers and dates from the context",
    "name": "spell names as the context does, and add no others",
    "handle": "repeat placeholders in square brackets exactly as in the context, and invent none",
    "contradiction": "do not turn what the context says into its opposite, nor exchange who, when, where or how much",
    "identifier": "call tools only with identifiers from the context",
}


_NOUNS = {
    "sentence": "statements",
    "url": "links",
    "code": "code",
    "package": "packages",
    "quote": "quotations",
    "number": "numbers",
    "name": "names",
    "handle": "placeholders",
    "contradiction": "contradictions",
    "identifier": "identifiers",
}
_NO_SOURCES = "There is no context before the answer and no evidence: only code and packages are checked."


class HallucinationDetectionArguments(Arguments):
    """What to compare with what, and what to do about findings."""

    evidence: list[str | dict[str, Any]] | None = Field(
        default=None,
        max_length=4096,
        description="Texts or context items with which statements, quotes, numbers and names are compared, instead "
        "of everything before the answer.",
    )
    checks: list[Check] | None = Field(default=None, description="What to check; default: everything.")
    action: Literal["annotate", "fix", "report"] = Field(
        default="annotate",
        description="annotate adds a short note after an unsupported answer; fix corrects broken addresses, "
        "misquotations and misspelt names in the answer and changes nothing else; report changes nothing.",
    )
    threshold: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Minimum score at which the answer, or a sentence, counts as unsupported.",
    )
    packages: dict[Literal["pypi", "npm"], list[PackageName]] = Field(
        default={},
        description="Names of existing packages, by index; packages of an index that is missing are not checked.",
    )
    check_urls: bool = Field(
        default=False,
        alias="checkUrls",
        description="Check over the network whether the answer's addresses respond, if the service allows it.",
    )


class HallucinationDetection(Middleware[HallucinationDetectionArguments]):
    """Compare the last answer with everything before it."""

    name = "hallucination_detection"
    title = "Hallucination detection"
    description = (
        "Find what a model's answer invents: statements, quotes, numbers and names without support in the context, "
        "links and packages that do not exist, code that does not parse; fix links and quotes on request"
    )
    phase = "inbound"
    evidence = "evidence"
    arguments = HallucinationDetectionArguments

    async def apply(self, context: Context, arguments: HallucinationDetectionArguments) -> Outcome:
        """Judge the answer; only ``annotate`` and ``fix`` change it."""
        if arguments.check_urls and self.engines.links is None:
            raise InvalidArgumentsError(
                "This service does not check addresses over the network; its operator can allow that with "
                "SLUICE_GROUNDING__CHECK_URLS.",
                details={"pointer": "/arguments/checkUrls"},
            )
        answer = answer_of(context)
        if answer is None:
            return Outcome(context, _no_answer("There is no assistant's answer in this context."))
        check = _AnswerCheck(self.engines, arguments, answer)
        await check.run()
        return await off_loop(_FINDING_WEIGHT * len(check.findings), check.outcome, context)


def _no_answer(warning: str) -> dict[str, Any]:
    return {"supported": True, "score": 0.0, "findings": [], "warnings": [warning]}


@dataclass(frozen=True, slots=True)
class _LocatedFinding:
    """A finding, its text in the answer, and the source it was compared with."""

    leaf: Leaf
    finding: AnswerFinding
    source: Source | None


@dataclass(slots=True)
class _AnswerCheck:
    """The checks of one answer."""

    engines: Engines
    arguments: HallucinationDetectionArguments
    answer: AnswerTexts
    findings: list[_LocatedFinding] = field(default_factory=list)
    sentence_score: float = 0.0
    engine: EngineReport | None = None

    @property
    def checks(self) -> frozenset[str]:
        """Return the names of the requested checks."""
        return frozenset(self.arguments.checks or ("sentences", *RULES))

    async def run(self) -> None:
        """Run every check on all texts of the answer."""
        evidence = _evidence(self.arguments)
        all_sources = (*evidence, *self.answer.sources)
        support = evidence or all_sources
        texts, inputs = self.answer.texts, self.answer.tool_inputs
        if evidence:
            await self._check_rules(texts, support, self.checks - _WIDE_CHECKS)
            await self._check_rules(texts, all_sources, self.checks & _WIDE_CHECKS)
        else:
            await self._check_rules(texts, all_sources, self.checks)
        await self._check_rules(inputs, all_sources, self.checks & _TOOL_CHECKS)
        if "sentences" in self.checks and support:
            await self._check_sentences(support)
        if "handles" in self.checks and all_sources:
            for leaf in invented_identifiers(inputs, all_sources):
                message = "A tool is called with an identifier that is not in the context."
                self._add(
                    leaf, AnswerFinding("identifier", 0, len(leaf.text), "low", 0.3, message), all_sources
                )
        if self.arguments.check_urls:
            await self._probe_links()

    async def _check_rules(
        self, leaves: Sequence[Leaf], sources: Sequence[Source], checks: frozenset[str]
    ) -> None:
        if not checks or not leaves:
            return
        packages = {str(index): frozenset(names) for index, names in self.arguments.packages.items()}
        texts = [leaf.scannable for leaf in leaves]
        known_texts = [source.text for source in sources]
        findings_by_text = await self.engines.answers.check(
            texts, known_texts, CheckOptions(checks, packages)
        )
        for leaf, findings in zip(leaves, findings_by_text, strict=True):
            for finding in findings:
                self._add(leaf, finding, sources)

    async def _check_sentences(self, support: Sequence[Source]) -> None:
        leaves = self.answer.texts
        stated = await self.engines.answers.statements([leaf.scannable for leaf in leaves])
        evidence = tuple(source.text for source in support)
        prose = [
            (leaf, statements.prose)
            for leaf, statements in zip(leaves, stated, strict=True)
            if statements.prose is not None
        ]
        places = [
            (leaf, *place)
            for leaf, statements in zip(leaves, stated, strict=True)
            for place in statements.sentences
        ]
        places = places[:MAX_SENTENCES]
        claims = [Claim(leaf.scannable[start:end], evidence) for leaf, start, end in places]
        if not prose:
            return
        grounding = await self.engines.grounding.judge(
            [*(Claim(text, evidence) for _, text in prose), *claims]
        )
        self.engine = grounding.report
        scored = list(zip(places, claims, grounding.scores[len(prose) :], strict=True))
        for (leaf, _), whole in zip(prose, grounding.scores, strict=False):
            worst = max((score for (other, _, _), _, score in scored if other is leaf), default=whole)
            # Measured on answers with many sentences: the mean is a better score than either value.
            self.sentence_score = max(self.sentence_score, (whole + worst) / 2)
        weak = [(place, claim, score) for place, claim, score in scored if score >= self.arguments.threshold]
        if not weak:
            return
        nearest = await self.engines.answers.nearest([claim.text for _, claim, _ in weak], evidence)
        for ((leaf, start, end), _, score), nearest_place in zip(weak, nearest, strict=True):
            severity: Literal["low", "medium"] = "medium" if score >= MEDIUM_FROM else "low"
            message = "The wording of the context does not support this sentence."
            self._add(
                leaf, AnswerFinding("sentence", start, end, severity, score, message, nearest_place), support
            )

    async def _probe_links(self) -> None:
        if self.engines.links is None:
            return
        places = [
            (leaf, start, end)
            for leaf in self.answer.texts
            for start, end in self.engines.answers.links(leaf.text)
        ][:MAX_PROBED]
        urls = [leaf.text[start:end] for leaf, start, end in places]
        states = await self.engines.links.probe(urls)
        for (leaf, start, end), state in zip(places, states, strict=True):
            if state.reachable is False:
                message = "Nothing answers at this address."
                self._add(leaf, AnswerFinding("url", start, end, "high", 0.8, message), ())

    def _add(self, leaf: Leaf, finding: AnswerFinding, sources: Sequence[Source]) -> None:
        source = sources[finding.place.source] if finding.place is not None else None
        self.findings.append(_LocatedFinding(leaf, finding, source))

    @property
    def score(self) -> float:
        """Return the likelihood that something is unsupported: the judge's score, or that of all others combined."""
        supported_share = 1.0
        for located in self.findings:
            if located.finding.kind != "sentence":
                supported_share *= 1 - located.finding.score
        return max(self.sentence_score, 1 - supported_share)

    def outcome(self, context: Context) -> Outcome:
        """Return the context, changed if the action requires it, and the result of the checks."""
        action = self.arguments.action
        supported = self.score < self.arguments.threshold
        leaves = (*self.answer.texts, *self.answer.tool_inputs)
        order = {id(leaf): number for number, leaf in enumerate(leaves)}
        self.findings.sort(
            key=lambda located: (
                order[id(located.leaf)],
                located.finding.start,
                located.finding.end,
            )
        )
        fixed = self._fixable() if action == "fix" else []
        edits = [
            Edit(
                located.leaf,
                located.finding.start,
                located.finding.end,
                located.finding.fix or "",
            )
            for located in fixed
        ]
        if action == "annotate" and not supported:
            edits += self._note_edits()
        kinds = Counter(located.finding.kind for located in self.findings)
        metadata = self._metadata(supported, {id(located) for located in fixed})
        details = {"supported": supported, "fixed": len(fixed)}
        return Outcome(context.edited(edits), metadata, kinds, audit_details=details, engine=self.engine)

    def _fixable(self) -> list[_LocatedFinding]:
        """Return what to fix: only in the answer's own text, and without overlaps."""
        ends: dict[int, int] = {}
        chosen = []
        for located in self.findings:
            finding = located.finding
            if finding.fix is None or located.leaf not in self.answer.texts:
                continue
            if finding.start >= ends.get(id(located.leaf), 0):
                ends[id(located.leaf)] = finding.end
                chosen.append(located)
        return chosen

    def _note_edits(self) -> list[Edit]:
        """Return the note after the answer's last text; none if the text is data that a note would break."""
        plain = [leaf for leaf in self.answer.texts if not leaf.depth and leaf.value.is_plain_text]
        if not plain:
            return []
        leaf = plain[-1]
        kinds = dict.fromkeys(
            located.finding.kind
            for located in self.findings
            if located.finding.score >= self.arguments.threshold
        )
        what = ", ".join(_NOUNS[kind] for kind in kinds) or "statements"
        note = f"\n\n[Note: the context does not support parts of this answer ({what}).]"
        return [Edit(leaf, len(leaf.text), len(leaf.text), note)]

    def _metadata(self, supported: bool, fixed: set[int]) -> dict[str, Any]:
        shown = self.findings[:MAX_FINDINGS]
        metadata: dict[str, Any] = {
            "supported": supported,
            "score": round(self.score, 4),
            "findings": [_finding_metadata(located, fixed=id(located) in fixed) for located in shown],
        }
        if len(self.findings) > len(shown):
            metadata["moreFindings"] = len(self.findings) - len(shown)
        if not (self.answer.sources or self.arguments.evidence):
            metadata["warnings"] = [_NO_SOURCES]
        kinds = {located.finding.kind for located in self.findings if located.finding.severity != "low"}
        if not supported:
            advice = [text for kind, text in _ADVICE.items() if kind in kinds] or [_ADVICE["sentence"]]
            metadata["rerunHint"] = (
                "Parts of your last answer have no support. Answer again: " + "; ".join(advice) + "."
            )
        return metadata


def _evidence(arguments: HallucinationDetectionArguments) -> tuple[Source, ...]:
    if arguments.evidence is None:
        return ()
    try:
        return evidence_of(Context.parse(list(arguments.evidence), strict=arguments.strict))
    except InvalidArgumentsError as error:
        pointer = error.details.get("pointer", "/context").replace("/context", "/arguments/evidence", 1)
        raise InvalidArgumentsError(str(error), details={"pointer": pointer}) from None


def _finding_metadata(located: _LocatedFinding, *, fixed: bool) -> dict[str, Any]:
    finding = located.finding
    metadata: dict[str, Any] = {
        "kind": finding.kind,
        "item": int(located.leaf.value.path[0]),
        "pointer": located.leaf.pointer,
        "start": finding.start,
        "end": finding.end,
        "evidence": _place_metadata(located),
        "severity": finding.severity,
        "score": round(finding.score, 4),
        "message": finding.message,
        "fix": finding.fix,
    }
    if finding.suggestions:
        metadata["suggestions"] = list(finding.suggestions)
    if fixed:
        metadata["fixed"] = True
    return metadata


def _place_metadata(located: _LocatedFinding) -> dict[str, Any] | None:
    """Return the place in the sources that was compared; written-out data has no offsets of its own."""
    if located.source is None or located.finding.place is None:
        return None
    place: dict[str, Any] = {"source": located.source.origin, "item": located.source.item}
    if located.source.leaf is not None:
        place |= {
            "pointer": located.source.leaf.pointer,
            "start": located.finding.place.start,
            "end": located.finding.place.end,
        }
    return place
