"""Run a pipeline: its steps in order on one text; handles are assigned once, at the end, with a single audit event."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.content.context import Context
from app.core.content.handles import Handle
from app.core.contracts.middleware import Invocation, Middleware, Outcome, VaultOptions
from app.core.contracts.policy import Policy
from app.core.deadlines import TimeLimit
from app.core.errors import DeadlineExceededError, InvalidArgumentsError, ServiceError
from app.core.offload import LIGHT, off_loop
from app.core.redaction.pipeline_handles import Additions, PipelineHandles
from app.core.redaction.plan import INSTRUCTING_ROLES
from app.core.strictjson import dumps
from app.services.invoke.calls import MiddlewareCall, weight_of
from app.services.invoke.outcomes import InvokeAnswer, OutcomeRecorder, add_engine, redactions, require_role
from app.services.invoke.pipeline_steps import (
    FINAL,
    ReadyStep,
    StepReport,
    audited,
    changes,
    engines_of,
    failure_of,
    overall,
    ready,
)
from app.services.invoke.pipelines import PipelineVersion
from app.services.vault.vault import VaultReceipt, VaultWrite

log = logging.getLogger("sluice.pipelines")


@dataclass(slots=True)
class PipelineRun:
    """One call of a pipeline; ``invocation`` makes the invocation of a step that must end by a given time."""

    outcomes: OutcomeRecorder
    middlewares: Mapping[str, Middleware[Any]]
    version: PipelineVersion
    policy: Policy
    call: MiddlewareCall
    until: float
    invocation: Callable[[float], Invocation]
    own_event: bool = True
    """Whether the run is on record by itself; else whoever runs it records it, from ``reports`` and ``counts``."""
    table: PipelineHandles = field(default_factory=PipelineHandles)
    reports: list[StepReport] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    items: list[Any] = field(default_factory=list)
    strict: bool = False
    vault: VaultOptions | None = None
    restored_from: str | None = None
    _concealing: list[ReadyStep] = field(default_factory=list)
    _parsed: Context | None = None
    """The items as they were parsed last."""

    async def answered(
        self,
        arguments: Mapping[str, Any],
        items: Any,
        progress: Callable[[int, int], Awaitable[None]] | None,
    ) -> InvokeAnswer:
        """Return what the steps made of ``items``, after recording it."""
        pipeline, call = self.version.pipeline, self.call
        own, steps = ready(pipeline, self.middlewares, self.policy, arguments)
        call.action = "middleware.dry_run" if own.dry_run else call.action
        call.details = {"pipeline_version": self.version.version}
        call.input_json = await off_loop(weight_of(items) // LIGHT, dumps, items)
        self.strict = own.strict or any(step.arguments.strict for step in steps)
        self.items = items
        first = await self._parse_items()
        call.blocks = first.blocks
        try:
            for number, step in enumerate(steps, 1):
                await self._report_step(step, dry_run=own.dry_run)
                if progress is not None:
                    await progress(number, len(steps) + 1)
        finally:
            call.counts = dict(self.counts)
            call.details = {**call.details, **audited(self.reports)}
            call.engines = engines_of(self.reports)
        result = await (self._dry_run_answer() if own.dry_run else self._store())
        if self.own_event:
            call.recorded()
        if progress is not None:
            await progress(len(steps) + 1, len(steps) + 1)
        return result

    async def _report_step(self, ready_step: ReadyStep, *, dry_run: bool) -> None:
        step, before = ready_step.step, self.items
        report = StepReport(step.name)
        self.reports.append(report)
        started = time.perf_counter_ns()
        try:
            await self._run_step(ready_step, report)
        except Exception as error:
            report.outcome = failure_of(error)
            late = asyncio.get_running_loop().time() >= self.until
            if step.on_error == "fail" or late or isinstance(error, FINAL):
                if isinstance(error, ServiceError):
                    error.details.setdefault("step", step.name)
                raise
            report.metadata = {}
            log.warning("a step of a pipeline failed and is skipped: %s", type(error).__name__)
        finally:
            report.duration_us = (time.perf_counter_ns() - started) // 1000
        if dry_run:
            report.changes = changes(before, self.items)

    async def _run_step(self, ready_step: ReadyStep, report: StepReport) -> None:
        """Run one step on the text; if it fails, the text and everything known about it stay as they are."""
        context = await self._parse_items()
        until = self._end_of(ready_step)
        outcome = await self._invoke(ready_step, context, until)
        require_role(self.call.acting, outcome.vault)
        metadata, report.engine = dict(outcome.metadata), outcome.engine
        if outcome.engine is not None:
            add_engine(metadata, outcome.engine)
        if outcome.context.skipped:
            metadata["skipped"] = sum(outcome.context.skipped.values())
        transformed = await self.outcomes.masked(outcome.context, self.call.acting)
        if outcome.vault.conceals:
            transformed = await self._conceal(ready_step, transformed, outcome.vault)
        elif outcome.vault.restores:
            transformed = await self._restore(transformed, outcome.vault.scope or "", metadata)
        elif self._concealing:
            transformed = await self._redact_additions(transformed, context, until)
        items = await off_loop(self._weight, transformed.to_json)
        if outcome.keep_content and self.policy.audit_content:
            self.call.sealed = await self.outcomes.audit.seal(self.call.caller.tenant, dumps(self.items))
        self.table.moved(len(transformed.added))
        self.counts.update(outcome.counts)
        self.items, report.metadata, report.details = items, metadata, outcome.audit_details

    async def _invoke(self, ready_step: ReadyStep, context: Context, until: float) -> Outcome:
        try:
            async with TimeLimit(until):
                return await ready_step.middleware.invoke(
                    context, ready_step.arguments, self.invocation(until)
                )
        except TimeoutError as error:
            raise DeadlineExceededError(
                "A step of the pipeline did not end within its time limit; nothing was passed on."
            ) from error

    async def _conceal(self, ready_step: ReadyStep, context: Context, options: VaultOptions) -> Context:
        scope = options.scope
        vault_options = self.vault
        if vault_options is not None and scope is not None and vault_options.scope not in (None, scope):
            raise InvalidArgumentsError(
                "The steps of one pipeline share one vault scope.", details={"pointer": "/arguments/scope"}
            )
        pending = await off_loop(self._weight, lambda: context.conceals)
        kept = await self.outcomes.kept(
            [conceal for conceal in pending if conceal.keep not in self.table.originals],
            scope,
            self.call.acting,
        )
        self.table.reserve(context, INSTRUCTING_ROLES)
        concealed = await off_loop(self._weight, lambda: self.table.conceal(context, kept=kept))
        self._concealing.append(ready_step)
        self.vault = options if vault_options is None else _merged_options(vault_options, options)
        return concealed

    async def _restore(self, context: Context, scope: str, metadata: dict[str, Any]) -> Context:
        if self._concealing:
            raise InvalidArgumentsError(
                "A pipeline that redacts must not restore after that; make two pipelines."
            )
        restored, number = await self.outcomes.revealed(
            context, scope, metadata, self.call.acting, self.policy.secrets
        )
        self.restored_from = scope
        self.counts.update({"restored": number, "unresolved": metadata["unresolved"]})
        return restored

    async def _redact_additions(self, context: Context, input_context: Context, until: float) -> Context:
        """Return a step's context after the redaction steps have processed what this step added."""
        if context.items is not input_context.items:
            # The step returned a text of its own; which part is new is unknown, so all of it is redacted again.
            whole = await off_loop(self._weight, context.to_json)
            return self._parse(await self._redact(whole, None, until))
        additions = Additions(context)
        if not additions.items:
            return context
        return additions.replaced(await self._redact(additions.items, additions.moved, until))

    async def _redact(self, items: list[Any], ours: frozenset[Handle] | None, until: float) -> list[Any]:
        for step in self._concealing:
            outcome = await self._invoke(step, self._parse(items), until)
            self.counts.update(outcome.counts)
            masked = await self.outcomes.masked(outcome.context, self.call.acting)
            items = self.table.conceal(masked, temporary=ours).to_json()
            ours = (
                None  # whatever looked like a handle is concealed now, so the handles that are left are ours
            )
        return items

    async def _parse_items(self) -> Context:
        """Return the items as a context; parsed once, until a step changes them."""
        if self._parsed is None or self._parsed.items is not self.items:
            self._parsed = await off_loop(weight_of(self.items) // LIGHT, self._parse, self.items)
        return self._parsed

    def _parse(self, items: Any) -> Context:
        limits = self.policy.limits
        return Context.parse(
            items, max_blocks=limits.max_blocks, max_depth=limits.max_depth, strict=self.strict
        )

    @property
    def _weight(self) -> int:
        return len(self.call.input_json) // LIGHT

    def _end_of(self, ready_step: ReadyStep) -> float:
        limits = (ready_step.step.timeout_ms, self.policy.timeouts_ms.get(ready_step.step.name))
        now = asyncio.get_running_loop().time()
        return min([self.until, *(now + limit / 1000 for limit in limits if limit is not None)])

    def _metadata(self) -> dict[str, Any]:
        return {
            **overall(self.reports),
            "pipeline": self.version.pipeline.name,
            "version": self.version.version,
            "steps": [report.shown() for report in self.reports],
        }

    async def _store(self) -> InvokeAnswer:
        """Store the handles in the text together with the audit event, or the event alone if there are none."""
        if self.vault is None:
            await self._record()
            return InvokeAnswer(self.items, self._metadata())
        options, call, context = self.vault, self.call, await self._parse_items()
        wanted = await off_loop(self._weight, self.table.present, context)
        originals = [(handle.label, self.table.originals[handle]) for handle in wanted]
        metadata, final = self._metadata(), list[InvokeAnswer]()

        def events(receipt: VaultReceipt) -> Sequence[AuditEvent]:
            handles = dict(zip(wanted, receipt.handles, strict=True))
            content = self.table.with_vault_handles(context, handles).to_json()
            named = [(handles[handle], self.table.originals[handle].text) for handle in wanted]
            full_metadata = self.table.metadata_with_vault_handles(metadata, handles) | redactions(
                named, receipt.scope, options
            )
            final[:] = [InvokeAnswer(content, full_metadata)]
            return [call.event(OUTCOME_OK, out=content, scope=receipt.scope)] if self._has_event else []

        call.details = {**call.details, "mapping_returned": options.return_mapping}
        ttl_s = options.ttl_s or self.policy.scope_ttl_s
        write = VaultWrite(options.scope, originals, options, events, ttl_s, self._weight)
        await self.outcomes.vault.commit(call.acting, write)
        return final[0]

    async def _dry_run_answer(self) -> InvokeAnswer:
        """Return what would be answered, with handles that are not stored; only the audit event is stored."""
        metadata = {**self._metadata(), "dryRun": True}
        if self.vault is not None:
            wanted = self.table.present(await self._parse_items())
            metadata["redactions"] = [
                {"handle": handle.name, "type": handle.label.lower()} for handle in wanted
            ]
        await self._record()
        return InvokeAnswer(self.items, metadata)

    @property
    def _has_event(self) -> bool:
        return (
            self.own_event or self.call.sealed is not None
        )  # what is sealed has its place in an event of the run

    async def _record(self) -> None:
        if self._has_event:
            event = self.call.event(OUTCOME_OK, out=self.items, scope=self.restored_from)
            await self.outcomes.audit.record(event)


def _merged_options(first: VaultOptions, more: VaultOptions) -> VaultOptions:
    """Return the options for the handles of two steps: the first step's, extended by the second's, in one scope."""
    return replace(
        first,
        scope=first.scope or more.scope,
        return_mapping=first.return_mapping or more.return_mapping,
        tagged=first.tagged or more.tagged,
        ttl_s=first.ttl_s or more.ttl_s,
    )
