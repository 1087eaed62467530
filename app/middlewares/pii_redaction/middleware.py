"""Replace personal data by handles before a context goes to a model."""

from typing import Literal

from pydantic import Field

from app.core.content.context import Context
from app.core.contracts.engines import DetectionOptions, NameEngine
from app.core.contracts.middleware import Invocation, Middleware, Outcome
from app.core.contracts.settled_texts import SettledTexts
from app.core.errors import InvalidArgumentsError
from app.core.redaction.member_names import NamedTexts, personal_frame
from app.core.redaction.plan import Mode, RedactionArguments, RedactionPlan, Term
from app.middlewares.pii_redaction.adjacency import adjacent_runs


class PiiRedactionArguments(RedactionArguments):
    """What to detect and what to do about it; a tenant's policy may fix any of them."""

    aggressiveness: Literal["standard", "strict"] = Field(
        default="standard",
        description="standard keeps organizations, places, plain dates and URLs; strict redacts every entity.",
    )
    entities: list[Term] | None = Field(default=None, description="Detect only these types, such as person.")
    exclude: list[Term] = Field(default=[], description="Types that are not detected.")
    deny_list: list[Term] = Field(
        default=[], max_length=1000, description="Texts that are always a finding (custom)."
    )
    language: str = Field(default="auto", pattern=r"^(auto|[a-z]{2})$", description="Language code, or auto.")
    names: NameEngine = Field(
        default="fast",
        description="Tagger for names: fast, or accurate, which finds more and takes several times longer.",
    )


class PiiRedaction(Middleware[PiiRedactionArguments]):
    """Replace personal data in every text of a context by handles."""

    name = "pii_redaction"
    title = "PII redaction"
    description = "Remove PII from context before sending to LLM"
    phase = "outbound"
    conceals = True
    arguments = PiiRedactionArguments

    async def apply(self, context: Context, arguments: PiiRedactionArguments) -> Outcome:
        """Redact without a caller."""
        return await self._redacted(context, arguments, "", SettledTexts())

    async def invoke(
        self, context: Context, arguments: PiiRedactionArguments, invocation: Invocation
    ) -> Outcome:
        """Redact for a caller, for whose tenant detections may be cached."""
        return await self._redacted(context, arguments, invocation.caller.tenant, invocation.settled)

    async def _redacted(
        self, context: Context, arguments: PiiRedactionArguments, tenant: str, settled: SettledTexts
    ) -> Outcome:
        """Scan every leaf; report findings that may not be changed, and never pass a text that was not scanned."""
        options = self.options(arguments)
        modes = self._modes(arguments.mode)
        arguments.refuse_unscanned(context)
        named_texts = NamedTexts(context.leaves, personal_frame)
        runs = named_texts.nameless(adjacent_runs(context.leaves))
        joined = settled.beside(runs, context.leaves)
        texts = [*settled.texts, *named_texts.texts]
        detection = await self.engines.detector.detect(texts, options, tenant=tenant, joined=joined)
        spans = settled.new(detection.spans)
        settled.of_new.update(named_texts.alone(spans, {place for run in runs for place in run}))
        plan = RedactionPlan(arguments, modes, "personal data", digests_users=True)
        edited = await plan.edited(context, named_texts.spans_in_values(spans))
        settled.count(plan.item_counts)
        metadata = plan.metadata(context)
        if detection.warnings:
            metadata["warnings"] = detection.warnings
        return Outcome(edited, metadata, dict(plan.counts), arguments.vault())

    def options(self, arguments: PiiRedactionArguments) -> DetectionOptions:
        """Return the options for the engine; raise InvalidArgumentsError for a type that it does not know."""
        return DetectionOptions(
            strict=arguments.aggressiveness == "strict",
            language=arguments.language,
            names=arguments.names,
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
            known_types = sorted(label.lower() for label in self.engines.detector.labels())
            raise InvalidArgumentsError(
                "Unknown type of personal data; details list the known ones.",
                details={"pointer": pointer, "known": known_types},
            )
        return label

    def _modes(self, mode: Mode | dict[str, Mode]) -> dict[str, Mode]:
        if isinstance(mode, str):
            return {"": mode}
        return {self._label(name, "/arguments/mode"): type_mode for name, type_mode in mode.items()}
