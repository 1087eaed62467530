"""Replace personal data by handles before a context goes to a model."""

from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from app.core.content import Context, Edit, Mask
from app.core.engines import Detection, DetectionOptions, Span
from app.core.errors import BlockedByPolicyError, InvalidArgumentsError, UnscannableContentError
from app.core.leaves import REPORTED_PLACES, Leaf, Place
from app.core.middleware import Arguments, Middleware, Outcome, ScopeName, VaultOptions
from app.core.offload import off_loop
from app.core.redaction import conceal_edits

Mode = Literal["handle", "mask", "hash", "remove", "block", "report"]
Term = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class PiiRedactionArguments(Arguments):
    """What is looked for and what becomes of it; a tenant's policy may fix any of them."""

    aggressiveness: Literal["standard", "strict"] = Field(
        default="standard",
        description="standard keeps organizations, places, plain dates and URLs; strict takes every entity.",
    )
    entities: list[Term] | None = Field(
        default=None, description="Look only for these types, such as person."
    )
    exclude: list[Term] = Field(default=[], description="Types that are left alone.")
    allow_list: list[Term] = Field(default=[], max_length=1000, description="Texts that are never a finding.")
    deny_list: list[Term] = Field(default=[], max_length=1000, description="Texts that always are (custom).")
    language: str = Field(default="auto", pattern=r"^(auto|[a-z]{2})$", description="Language code, or auto.")
    scope: ScopeName | None = Field(
        default=None,
        description="Vault scope, usually one per conversation: equal values get equal handles. "
        "Without it a new random one is made and returned.",
    )
    mode: Mode | dict[str, Mode] = Field(
        default="handle",
        description="handle (restorable), mask, hash (keyed), remove, block (refuse the call), report (leave it); "
        "one for all or one per type.",
    )
    handles_in_input: Literal["escape", "keep"] = Field(
        default="escape",
        description="Text that already looks like a handle is escaped; keep leaves the handles of this scope.",
    )
    numbers: Literal["report", "block", "string"] = Field(
        default="report",
        description="Personal data given as a JSON number: report, refuse, or make it a string.",
    )
    uris: Literal["report", "change"] = Field(default="report", description="Personal data inside URIs.")
    unscanned: Literal["report", "block"] = Field(
        default="report", description="What cannot be scanned or changed: count it, or refuse the call."
    )
    canonical: bool = Field(
        default=False, description="Spellings that differ in case or space share a handle."
    )
    tagged: bool = Field(
        default=False, description="Handles carry a tag bound to the value: [PERSON_1~k3fq]."
    )
    ttl_s: int | None = Field(default=None, gt=0, description="Life of a new scope, in seconds.")
    return_mapping: bool = Field(
        default=False,
        alias="returnMapping",
        description="Answer with the map from handle to original; needs the role restorer and is audited.",
    )


class PiiRedaction(Middleware[PiiRedactionArguments]):
    """Find personal data in every text of a context and put handles in its place."""

    name = "pii_redaction"
    title = "PII redaction"
    description = "Remove PII from context before sending to LLM"
    phase = "outbound"
    conceals = True
    arguments = PiiRedactionArguments

    async def apply(self, context: Context, arguments: PiiRedactionArguments) -> Outcome:
        """Scan every leaf; what may not be changed is reported, and nothing is passed that was not scanned."""
        options = self._options(arguments)
        modes = self._modes(arguments.mode)
        if arguments.unscanned == "block" and context.unscanned:
            raise UnscannableContentError(
                "The context holds something that cannot be scanned, and unscanned: block refuses that.",
                details={"unscanned": dict(context.unscanned)},
            )
        texts = [leaf.scannable for leaf in context.leaves]
        detection = await self.engines.detector.detect(texts, options)
        plan = _Plan(arguments, modes)
        edited = await off_loop(context.characters, plan.edited, context, detection)
        plan.refuse()
        metadata: dict[str, Any] = plan.metadata()
        if context.unscanned:
            metadata["unscanned"] = dict(context.unscanned)
        if detection.warnings:
            metadata["warnings"] = detection.warnings
        vault = VaultOptions(
            scope=arguments.scope,
            conceals=True,
            return_mapping=arguments.return_mapping,
            canonical=arguments.canonical,
            tagged=arguments.tagged,
            ttl_s=arguments.ttl_s,
        )
        return Outcome(edited, metadata, dict(plan.counts), vault)

    def _options(self, arguments: PiiRedactionArguments) -> DetectionOptions:
        return DetectionOptions(
            strict=arguments.aggressiveness == "strict",
            language=arguments.language,
            entities=None
            if arguments.entities is None
            else self._labels(arguments.entities, "/arguments/entities"),
            exclude=self._labels(arguments.exclude, "/arguments/exclude"),
            allow_list=tuple(arguments.allow_list),
            deny_list=tuple(arguments.deny_list),
        )

    def _labels(self, names: list[str], pointer: str) -> frozenset[str]:
        return frozenset(self._label(name, f"{pointer}/{index}") for index, name in enumerate(names))

    def _label(self, name: str, pointer: str) -> str:
        label = self.engines.detector.label_of(name.upper())
        if label is None:
            known = sorted(one.lower() for one in self.engines.detector.labels())
            raise InvalidArgumentsError(
                "Unknown type of personal data; details list the known ones.",
                details={"pointer": pointer, "known": known},
            )
        return label

    def _modes(self, mode: Mode | dict[str, Mode]) -> dict[str, Mode]:
        if isinstance(mode, str):
            return {"": mode}
        return {self._label(name, "/arguments/mode"): one for name, one in mode.items()}


class _Plan:
    """Decides for each finding what becomes of it, and counts."""

    def __init__(self, arguments: PiiRedactionArguments, modes: dict[str, Mode]) -> None:
        self.arguments = arguments
        self.modes = modes
        self.counts: Counter[str] = Counter()
        self.blocked: Counter[str] = Counter()
        self.fixed: Counter[str] = Counter()
        self.reported: Counter[tuple[str, str, int]] = Counter()
        self.masked: Counter[tuple[str, str]] = Counter()

    def edited(self, context: Context, detection: Detection) -> Context:
        """Return ``context`` with the edits of all leaves planned."""
        pairs = zip(context.leaves, detection.spans, strict=True)
        return context.edited(edit for leaf, spans in pairs for edit in self.leaf(leaf, spans))

    def leaf(self, leaf: Leaf, spans: list[Span]) -> list[Edit]:
        """Return the edits of one leaf."""
        changes = self._may_change(leaf.place)
        concealed: list[Span] = []
        masked: list[Span] = []
        edits: list[Edit] = []
        for span in self._whole_numbers(leaf, spans):
            label = span.label
            self.counts[label] += 1
            mode = self.modes.get(label, self.modes.get("", "handle"))
            if mode == "block":
                self.blocked[label] += 1
            elif mode == "report" or not changes:
                self.reported[label, leaf.place, int(leaf.slot.path[0])] += 1
                self.fixed[leaf.place] += mode != "report"
            elif mode == "handle":
                concealed.append(span)
            else:
                masked.append(span)
                self.masked[label, mode] += 1
                edits.append(Edit(leaf, span.start, span.end, Mask(label, mode)))
        if changes:
            keep = self.arguments.handles_in_input == "keep"
            edits += conceal_edits(leaf, concealed, masked=masked, keep_handles=keep)
        return edits

    def _may_change(self, place: Place) -> bool:
        if place is Place.NUMBER:
            return self.arguments.numbers == "string"
        if place is Place.URI:
            return self.arguments.uris == "change"
        return place not in REPORTED_PLACES

    @staticmethod
    def _whole_numbers(leaf: Leaf, spans: list[Span]) -> list[Span]:
        """Half a number cannot become a string: the whole one does."""
        if leaf.place is not Place.NUMBER or not spans:
            return spans
        best = max(spans, key=lambda span: span.end - span.start)
        return [Span(0, len(leaf.text), best.label, best.score)]

    def refuse(self) -> None:
        """Raise where the arguments refuse what was found."""
        if self.blocked:
            raise BlockedByPolicyError(
                "The context holds personal data of a type that this call blocks.",
                details={"types": {label.lower(): count for label, count in sorted(self.blocked.items())}},
            )
        if self.arguments.numbers == "block" and self.fixed[Place.NUMBER]:
            raise UnscannableContentError(
                "The context holds personal data as a number, and numbers: block refuses that.",
                details={"numbers": self.fixed[Place.NUMBER]},
            )
        if self.arguments.unscanned == "block" and self.fixed.total():
            raise UnscannableContentError(
                "Personal data stands where it cannot be changed, and unscanned: block refuses that.",
                details={"places": {place: count for place, count in self.fixed.items() if count}},
            )

    def metadata(self) -> dict[str, Any]:
        """Return what was reported and masked, without content."""
        found: dict[str, Any] = {}
        if self.reported:
            found["reported"] = [
                {"type": label.lower(), "place": str(place), "item": item, "count": count}
                for (label, place, item), count in sorted(self.reported.items())
            ]
        if self.masked:
            found["masked"] = [
                {"type": label.lower(), "mode": mode, "count": count}
                for (label, mode), count in sorted(self.masked.items())
            ]
        return found
