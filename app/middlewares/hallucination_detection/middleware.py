"""Say what in a model's answer its context does not bear out, and mend what can be mended without judgement."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from app.core.content.context import Context, Edit
from app.core.content.leaves import Leaf
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

Check = Literal["sentences", "urls", "code", "packages", "quotes", "numbers", "names", "handles"]
PackageName = Annotated[str, StringConstraints(min_length=1, max_length=214)]

MOST_FINDINGS = 200
MOST_SENTENCES = 100
MOST_PROBED = 20
SURE = 0.9

_TOLD: Final = 16
"""What telling of one finding weighs beside one character, for the decision to leave the event loop."""
_TOOL_CHECKS = frozenset({"urls", "handles"})
_WIDE_CHECKS = frozenset({"urls", "packages", "handles"})
"""Checks for which the context counts even where evidence is given: the user's own address is not made up."""

_ADVICE = {
    "sentence": "state only what the context says, and say so where it does not tell",
    "url": "give only addresses that stand in the context, letter by letter",
    "code": "check that each block of code is complete and parses",
    "package": "name only packages that exist",
    "quote": "quote word by word, or use no quotation marks",
    "number": "take numbers and dates from the context",
    "name": "spell names as the context does, and add no others",
    "handle": "repeat placeholders in square brackets exactly as they stand in the context, and make up none",
    "identifier": "call tools only with identifiers that stand in the context",
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
    "identifier": "identifiers",
}
_ALONE = "Nothing stands before the answer and no evidence was given: only code and packages are checked."


class HallucinationDetectionArguments(Arguments):
    """What is held against what, and what becomes of the findings."""

    evidence: list[str | dict[str, Any]] | None = Field(
        default=None,
        max_length=4096,
        description="Texts or context items that statements, quotes, numbers and names are held against instead of "
        "everything before the answer.",
    )
    checks: list[Check] | None = Field(default=None, description="What to check; default: everything.")
    action: Literal["annotate", "fix", "report"] = Field(
        default="annotate",
        description="annotate puts a short note behind an answer that is not supported; fix mends broken addresses, "
        "misquotations and misspelt names in the answer and changes nothing else; report changes nothing.",
    )
    threshold: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Score from which on the answer, or a sentence, counts as unsupported.",
    )
    packages: dict[Literal["pypi", "npm"], list[PackageName]] = Field(
        default={},
        description="Names of the packages that exist, by index; without an index none is checked.",
    )
    check_urls: bool = Field(
        default=False,
        alias="checkUrls",
        description="Ask the network whether something answers at the answer's addresses, where the service may.",
    )


class HallucinationDetection(Middleware[HallucinationDetectionArguments]):
    """Hold the last answer against everything before it."""

    name = "hallucination_detection"
    title = "Hallucination detection"
    description = (
        "Find what a model's answer makes up: statements, quotes, numbers and names without support in the context, "
        "links and packages that do not exist, code that does not parse; mend links and quotes on request"
    )
    phase = "inbound"
    arguments = HallucinationDetectionArguments

    async def apply(self, context: Context, arguments: HallucinationDetectionArguments) -> Outcome:
        """Judge the answer; only ``annotate`` and ``fix`` change it."""
        if arguments.check_urls and self.engines.links is None:
            raise InvalidArgumentsError(
                "This service asks no network about addresses; whoever runs it may allow that with "
                "SLUICE_GROUNDING__CHECK_URLS.",
                details={"pointer": "/arguments/checkUrls"},
            )
        answer = answer_of(context)
        if answer is None:
            return Outcome(context, _nothing("There is no answer of an assistant in this context."))
        judging = _Judging(self.engines, arguments, answer)
        await judging.run()
        return await off_loop(_TOLD * len(judging.found), judging.outcome, context)


def _nothing(warning: str) -> dict[str, Any]:
    return {"supported": True, "score": 0.0, "findings": [], "warnings": [warning]}


@dataclass(frozen=True, slots=True)
class _Found:
    """A finding, the text of the answer that it is in, and the source that it was held against."""

    leaf: Leaf
    finding: AnswerFinding
    source: Source | None


@dataclass(slots=True)
class _Judging:
    """One answer on its way through the checks."""

    engines: Engines
    arguments: HallucinationDetectionArguments
    answer: AnswerTexts
    found: list[_Found] = field(default_factory=list)
    judged: float = 0.0
    engine: EngineReport | None = None

    @property
    def checks(self) -> frozenset[str]:
        """Return the names of the checks that were asked for."""
        return frozenset(self.arguments.checks or ("sentences", *RULES))

    async def run(self) -> None:
        """Run every check on all texts of the answer."""
        given = _evidence(self.arguments)
        known = (*given, *self.answer.sources)
        support = given or known
        texts, inputs = self.answer.texts, self.answer.tool_inputs
        if given:
            await self._rules(texts, support, self.checks - _WIDE_CHECKS)
            await self._rules(texts, known, self.checks & _WIDE_CHECKS)
        else:
            await self._rules(texts, known, self.checks)
        await self._rules(inputs, known, self.checks & _TOOL_CHECKS)
        if "sentences" in self.checks and support:
            await self._sentences(support)
        if "handles" in self.checks and known:
            for leaf in invented_identifiers(inputs, known):
                message = "A tool is called with an identifier that is not in the context."
                self._add(leaf, AnswerFinding("identifier", 0, len(leaf.text), "low", 0.3, message), known)
        if self.arguments.check_urls:
            await self._probe()

    async def _rules(self, leaves: Sequence[Leaf], sources: Sequence[Source], checks: frozenset[str]) -> None:
        if not checks or not leaves:
            return
        packages = {str(index): frozenset(names) for index, names in self.arguments.packages.items()}
        texts = [leaf.scannable for leaf in leaves]
        known = [one.text for one in sources]
        found = await self.engines.answers.check(texts, known, CheckOptions(checks, packages))
        for leaf, findings in zip(leaves, found, strict=True):
            for finding in findings:
                self._add(leaf, finding, sources)

    async def _sentences(self, support: Sequence[Source]) -> None:
        leaves = self.answer.texts
        stated = await self.engines.answers.statements([leaf.scannable for leaf in leaves])
        evidence = tuple(one.text for one in support)
        told = [(leaf, one.prose) for leaf, one in zip(leaves, stated, strict=True) if one.prose is not None]
        places = [(leaf, *place) for leaf, one in zip(leaves, stated, strict=True) for place in one.sentences]
        places = places[:MOST_SENTENCES]
        claims = [Claim(leaf.scannable[start:end], evidence) for leaf, start, end in places]
        if not told:
            return
        grounding = await self.engines.grounding.judge(
            [*(Claim(text, evidence) for _, text in told), *claims]
        )
        self.engine = grounding.report
        scored = list(zip(places, claims, grounding.scores[len(told) :], strict=True))
        for (leaf, _), whole in zip(told, grounding.scores, strict=False):
            worst = max((score for (other, _, _), _, score in scored if other is leaf), default=whole)
            # Measured on answers of many sentences: the mean tells more than either does.
            self.judged = max(self.judged, (whole + worst) / 2)
        weak = [(place, claim, score) for place, claim, score in scored if score >= self.arguments.threshold]
        if not weak:
            return
        nearest = await self.engines.answers.nearest([claim.text for _, claim, _ in weak], evidence)
        for ((leaf, start, end), _, score), near in zip(weak, nearest, strict=True):
            severity: Literal["low", "medium"] = "medium" if score >= SURE else "low"
            message = "The wording of the context does not bear out this sentence."
            self._add(leaf, AnswerFinding("sentence", start, end, severity, score, message, near), support)

    async def _probe(self) -> None:
        if self.engines.links is None:
            return
        places = [
            (leaf, start, end)
            for leaf in self.answer.texts
            for start, end in self.engines.answers.links(leaf.text)
        ][:MOST_PROBED]
        urls = [leaf.text[start:end] for leaf, start, end in places]
        states = await self.engines.links.probe(urls)
        for (leaf, start, end), state in zip(places, states, strict=True):
            if state.reachable is False:
                message = "Nothing answers at this address."
                self._add(leaf, AnswerFinding("url", start, end, "high", 0.8, message), ())

    def _add(self, leaf: Leaf, finding: AnswerFinding, sources: Sequence[Source]) -> None:
        source = sources[finding.place.source] if finding.place is not None else None
        self.found.append(_Found(leaf, finding, source))

    @property
    def score(self) -> float:
        """Return how likely something is unsupported: the judge's word, or what the findings make together."""
        spared = 1.0
        for one in self.found:
            if one.finding.kind != "sentence":
                spared *= 1 - one.finding.score
        return max(self.judged, 1 - spared)

    def outcome(self, context: Context) -> Outcome:
        """Return the context as the action wants it, and what was found."""
        action = self.arguments.action
        supported = self.score < self.arguments.threshold
        leaves = (*self.answer.texts, *self.answer.tool_inputs)
        order = {id(leaf): number for number, leaf in enumerate(leaves)}
        self.found.sort(key=lambda one: (order[id(one.leaf)], one.finding.start, one.finding.end))
        fixed = self._fixed() if action == "fix" else []
        edits = [Edit(one.leaf, one.finding.start, one.finding.end, one.finding.fix or "") for one in fixed]
        if action == "annotate" and not supported:
            edits += self._note()
        kinds = Counter(one.finding.kind for one in self.found)
        metadata = self._metadata(supported, {id(one) for one in fixed})
        details = {"supported": supported, "fixed": len(fixed)}
        return Outcome(context.edited(edits), metadata, kinds, audit_details=details, engine=self.engine)

    def _fixed(self) -> list[_Found]:
        """Return what is mended: only in the answer's own text, and no text twice."""
        ends: dict[int, int] = {}
        chosen = []
        for one in self.found:
            finding = one.finding
            if finding.fix is None or one.leaf not in self.answer.texts:
                continue
            if finding.start >= ends.get(id(one.leaf), 0):
                ends[id(one.leaf)] = finding.end
                chosen.append(one)
        return chosen

    def _note(self) -> list[Edit]:
        """Return the note behind the answer's last text; none where that is data that a note would break."""
        plain = [leaf for leaf in self.answer.texts if not leaf.depth and leaf.value.is_plain_text]
        if not plain:
            return []
        leaf = plain[-1]
        kinds = dict.fromkeys(
            one.finding.kind for one in self.found if one.finding.score >= self.arguments.threshold
        )
        what = ", ".join(_NOUNS[kind] for kind in kinds) or "statements"
        note = f"\n\n[Note: the context does not support parts of this answer ({what}).]"
        return [Edit(leaf, len(leaf.text), len(leaf.text), note)]

    def _metadata(self, supported: bool, fixed: set[int]) -> dict[str, Any]:
        shown = self.found[:MOST_FINDINGS]
        metadata: dict[str, Any] = {
            "supported": supported,
            "score": round(self.score, 4),
            "findings": [_described(one, fixed=id(one) in fixed) for one in shown],
        }
        if len(self.found) > len(shown):
            metadata["moreFindings"] = len(self.found) - len(shown)
        if not (self.answer.sources or self.arguments.evidence):
            metadata["warnings"] = [_ALONE]
        kinds = {one.finding.kind for one in self.found if one.finding.severity != "low"}
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


def _described(one: _Found, *, fixed: bool) -> dict[str, Any]:
    finding = one.finding
    made: dict[str, Any] = {
        "kind": finding.kind,
        "item": int(one.leaf.value.path[0]),
        "pointer": one.leaf.pointer,
        "start": finding.start,
        "end": finding.end,
        "evidence": _place(one),
        "severity": finding.severity,
        "score": round(finding.score, 4),
        "message": finding.message,
        "fix": finding.fix,
    }
    if finding.suggestions:
        made["suggestions"] = list(finding.suggestions)
    if fixed:
        made["fixed"] = True
    return made


def _place(one: _Found) -> dict[str, Any] | None:
    """Return where the support would have to stand; written-out data has no offsets of its own."""
    if one.source is None or one.finding.place is None:
        return None
    place: dict[str, Any] = {"source": one.source.origin, "item": one.source.item}
    if one.source.leaf is not None:
        place |= {
            "pointer": one.source.leaf.pointer,
            "start": one.finding.place.start,
            "end": one.finding.place.end,
        }
    return place
