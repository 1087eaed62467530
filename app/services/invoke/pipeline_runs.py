"""Run a pipeline: its steps in order on one text, handles given once, at the end, with the one record of all."""

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
from app.core.deadlines import time_limit
from app.core.errors import DeadlineExceededError, InvalidArgumentsError, ServiceError
from app.core.offload import off_loop
from app.core.redaction.pipeline_handles import Additions, PipelineHandles
from app.core.strictjson import dumps
from app.services.invoke.calls import MiddlewareCall, weight_of
from app.services.invoke.outcomes import InvokeAnswer, OutcomeRecorder, add_engine, redactions, require_role
from app.services.invoke.pipeline_steps import (
    FINAL,
    ReadyStep,
    StepReport,
    audited,
    changes,
    failure_of,
    overall,
    ready,
)
from app.services.invoke.pipelines import PipelineVersion
from app.services.vault.vault import VaultReceipt, VaultWrite

log = logging.getLogger("sluice.pipelines")


@dataclass(slots=True)
class PipelineRun:
    """One call of a pipeline; ``invocation`` says who invokes a step that must end by a time."""

    settling: OutcomeRecorder
    middlewares: Mapping[str, Middleware[Any]]
    found: PipelineVersion
    policy: Policy
    call: MiddlewareCall
    until: float
    invocation: Callable[[float], Invocation]
    table: PipelineHandles = field(default_factory=PipelineHandles)
    reports: list[StepReport] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    items: list[Any] = field(default_factory=list)
    strict: bool = False
    vault: VaultOptions | None = None
    restored_from: str | None = None
    _concealing: list[ReadyStep] = field(default_factory=list)

    async def answered(
        self,
        arguments: Mapping[str, Any],
        items: Any,
        progress: Callable[[int, int], Awaitable[None]] | None,
    ) -> InvokeAnswer:
        """Return what the steps made of ``items``, on record."""
        pipeline, call = self.found.pipeline, self.call
        own, steps = ready(pipeline, self.middlewares, self.policy, arguments)
        call.action = "middleware.dry_run" if own.dry_run else call.action
        call.details = {"pipeline_version": self.found.version}
        call.given = await off_loop(weight_of(items), dumps, items)
        self.strict = own.strict or any(one.arguments.strict for one in steps)
        self.items = items
        first = await self._parsed()
        call.blocks = first.blocks
        try:
            for number, step in enumerate(steps, 1):
                await self._step(step, dry_run=own.dry_run)
                if progress is not None:
                    await progress(number, len(steps) + 1)
        finally:
            call.counts = dict(self.counts)
            call.details = {**call.details, **audited(self.reports)}
        result = await (self._shown() if own.dry_run else self._stored())
        if progress is not None:
            await progress(len(steps) + 1, len(steps) + 1)
        return result

    async def _step(self, ready_step: ReadyStep, *, dry_run: bool) -> None:
        step, before = ready_step.step, self.items
        report = StepReport(step.name)
        self.reports.append(report)
        started = time.perf_counter_ns()
        try:
            await self._made(ready_step, report)
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

    async def _made(self, ready_step: ReadyStep, report: StepReport) -> None:
        """Let one step work on the text; where it fails, the text and all that is known of it stay as they are."""
        context = await self._parsed()
        until = self._until(ready_step)
        outcome = await self._applied(ready_step, context, until)
        require_role(self.call.acting, outcome.vault)
        metadata = dict(outcome.metadata)
        if outcome.engine is not None:
            add_engine(metadata, outcome.engine)
        if outcome.context.skipped:
            metadata["skipped"] = sum(outcome.context.skipped.values())
        made = await self.settling.masked(outcome.context, self.call.acting)
        if outcome.vault.conceals:
            made = await self._concealed(ready_step, made, outcome.vault)
        elif outcome.vault.restores:
            made = await self._restored(made, outcome.vault.scope or "", metadata)
        elif self._concealing:
            made = await self._cleaned(made, context, until)
        items = await off_loop(len(self.call.given), made.to_json)
        if outcome.keep_content and self.policy.audit_content:
            self.call.sealed = await self.settling.audit.seal(self.call.caller.tenant, dumps(self.items))
        self.table.moved(len(made.added))
        self.counts.update(outcome.counts)
        self.items, report.metadata, report.details = items, metadata, outcome.audit_details

    async def _applied(self, ready_step: ReadyStep, context: Context, until: float) -> Outcome:
        try:
            async with time_limit(until):
                return await ready_step.middleware.invoke(
                    context, ready_step.arguments, self.invocation(until)
                )
        except TimeoutError as error:
            raise DeadlineExceededError(
                "A step of the pipeline did not end within its time limit; nothing was passed on."
            ) from error

    async def _concealed(self, ready_step: ReadyStep, context: Context, options: VaultOptions) -> Context:
        scope = options.scope
        held = self.vault
        if held is not None and scope is not None and held.scope not in (None, scope):
            raise InvalidArgumentsError(
                "The steps of one pipeline share one vault scope.", details={"pointer": "/arguments/scope"}
            )
        pending = await off_loop(len(self.call.given), lambda: context.conceals)
        kept = await self.settling.kept(
            [one for one in pending if one.keep not in self.table.originals], scope, self.call.acting
        )
        made = await off_loop(len(self.call.given), lambda: self.table.conceal(context, kept=kept))
        self._concealing.append(ready_step)
        self.vault = options if held is None else _together(held, options)
        return made

    async def _restored(self, context: Context, scope: str, metadata: dict[str, Any]) -> Context:
        if self._concealing:
            raise InvalidArgumentsError(
                "A pipeline that redacts restores nothing after that; make two pipelines."
            )
        made, restored = await self.settling.revealed(
            context, scope, metadata, self.call.acting, self.policy.secrets
        )
        self.restored_from = scope
        self.counts.update({"restored": restored, "unresolved": metadata["unresolved"]})
        return made

    async def _cleaned(self, made: Context, given: Context, until: float) -> Context:
        """Return a step's context in which the redaction steps have seen what this step adds."""
        if made.items is not given.items:
            # The step answers with a text of its own: which of it is new nobody can tell, so all of it is seen again.
            whole = await off_loop(len(self.call.given), made.to_json)
            return self._parse(await self._redacted(whole, None, until))
        additions = Additions(made)
        if not additions.items:
            return made
        return additions.replaced(await self._redacted(additions.items, additions.moved, until))

    async def _redacted(self, items: list[Any], ours: frozenset[Handle] | None, until: float) -> list[Any]:
        for one in self._concealing:
            outcome = await self._applied(one, self._parse(items), until)
            self.counts.update(outcome.counts)
            masked = await self.settling.masked(outcome.context, self.call.acting)
            items = self.table.conceal(masked, ours=ours).to_json()
            ours = None  # what looked like a handle is concealed now, so all that are left are ours
        return items

    async def _parsed(self) -> Context:
        return await off_loop(weight_of(self.items), self._parse, self.items)

    def _parse(self, items: Any) -> Context:
        limits = self.policy.limits
        return Context.parse(
            items, max_blocks=limits.max_blocks, max_depth=limits.max_depth, strict=self.strict
        )

    def _until(self, ready_step: ReadyStep) -> float:
        limits = (ready_step.step.timeout_ms, self.policy.timeouts_ms.get(ready_step.step.name))
        now = asyncio.get_running_loop().time()
        return min([self.until, *(now + limit / 1000 for limit in limits if limit is not None)])

    def _metadata(self) -> dict[str, Any]:
        return {
            **overall(self.reports),
            "pipeline": self.found.pipeline.name,
            "version": self.found.version,
            "steps": [report.shown() for report in self.reports],
        }

    async def _stored(self) -> InvokeAnswer:
        """Store the handles that stand in the text with the record, or the record alone where none were made."""
        if self.vault is None:
            event = self.call.event(OUTCOME_OK, out=self.items, scope=self.restored_from)
            await self.settling.audit.record(event)
            return InvokeAnswer(self.items, self._metadata())
        options, call, context = self.vault, self.call, await self._parsed()
        wanted = await off_loop(len(call.given), self.table.present, context)
        originals = [(handle.label, self.table.originals[handle]) for handle in wanted]
        metadata, final = self._metadata(), list[InvokeAnswer]()

        def events(receipt: VaultReceipt) -> Sequence[AuditEvent]:
            handles = dict(zip(wanted, receipt.handles, strict=True))
            content = self.table.settled(context, handles).to_json()
            named = [(handles[one], self.table.originals[one].text) for one in wanted]
            said = self.table.named(metadata, handles) | redactions(named, receipt.scope, options)
            final[:] = [InvokeAnswer(content, said)]
            return [call.event(OUTCOME_OK, out=content, scope=receipt.scope)]

        call.details = {**call.details, "mapping_returned": options.return_mapping}
        ttl_s = options.ttl_s or self.policy.scope_ttl_s
        write = VaultWrite(options.scope, originals, options, events, ttl_s, len(call.given))
        await self.settling.vault.commit(call.acting, write)
        return final[0]

    async def _shown(self) -> InvokeAnswer:
        """Return what would be answered, with provisional handles; nothing but the record is stored."""
        metadata = {**self._metadata(), "dryRun": True}
        if self.vault is not None:
            wanted = self.table.present(await self._parsed())
            metadata["redactions"] = [{"handle": one.name, "type": one.label.lower()} for one in wanted]
        event = self.call.event(OUTCOME_OK, out=self.items, scope=self.restored_from)
        await self.settling.audit.record(event)
        return InvokeAnswer(self.items, metadata)


def _together(held: VaultOptions, more: VaultOptions) -> VaultOptions:
    """Return how the handles of two steps are given: as the first wants, in one scope."""
    return replace(
        held,
        scope=held.scope or more.scope,
        return_mapping=held.return_mapping or more.return_mapping,
        tagged=held.tagged or more.tagged,
        ttl_s=held.ttl_s or more.ttl_s,
    )
