"""Run middlewares and pipelines over items that came through a door."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from app.core.access import Caller
from app.core.contracts.gateway_pipelines import flattened, joined
from app.core.contracts.gateway_policy import RESTORATION, GatewayPipeline
from app.core.contracts.middleware import REMOTE_SEPARATOR, Invocation
from app.core.contracts.pipelines import Pipeline, PipelineStep
from app.core.contracts.policy import Policy
from app.core.contracts.policy_steps import Step
from app.core.contracts.settled_texts import SettledTexts, SettledTextsChangedError
from app.core.errors import InternalError, NotFoundError, ServiceError
from app.core.request import RequestInfo
from app.services.invoke.calls import MiddlewareCall, checked_arguments, merged_arguments
from app.services.invoke.invoke import InvokeService
from app.services.invoke.outcomes import InvokeAnswer, OutcomeRecorder
from app.services.invoke.pipeline_runs import PipelineRun
from app.services.invoke.pipeline_steps import StepReport
from app.services.invoke.pipelines import PipelineVersion

BOTH_REDACTIONS: Final = (Step(name="pii_redaction"), Step(name="secret_redaction"))
_NAME: Final = "gateway"
"""The name under which the record shows these runs."""
_ALWAYS: Final[Mapping[str, Any]] = {"uris": "change", "member_names": "change"}
"""Only the model reads links and names of members in these items, so they are redacted like its texts."""


@dataclass(frozen=True, slots=True)
class PipelineUse:
    """Runs pipelines for one request; ``until`` is a time of the event loop's clock.

    ``outcomes`` store handles in the vault that this request may see. ``action`` names the runs in the record. With
    ``reports`` they are not on record by themselves: the record of the request tells of their steps, which are added.
    """

    invoke: InvokeService
    outcomes: OutcomeRecorder
    caller: Caller
    policy: Policy
    policy_version: int
    info: RequestInfo
    until: float
    action: str
    evidence: Sequence[str] = field(default=(), repr=False)
    """The texts before an answer, for middlewares that compare the answer with them."""
    findings: Counter[str] = field(default_factory=Counter)
    """The number of findings so far, by label."""
    reports: list[StepReport] | None = None

    async def run(
        self,
        steps: Sequence[Step],
        items: Sequence[Any],
        scope: str,
        *,
        observe: bool = False,
        settled: SettledTexts | None = None,
    ) -> list[Any]:
        """Return the items as ``steps`` leave them, which are middlewares (see ``pipeline_of``).

        With ``observe`` nothing is stored, and what is found is counted alone. Without ``steps`` nothing runs.
        Raises SettledTextsChangedError, with nothing stored, if something else is found in ``settled`` texts now.
        """
        if not steps:
            return list(items)
        settled = settled or SettledTexts()
        return list((await self._answer(steps, items, scope, settled, observe=observe)).content)

    async def report(self, step: Step, items: Sequence[Any], scope: str) -> Mapping[str, Any]:
        """Return what a step says of ``items`` beside changing them."""
        answer = await self._answer([step], items, scope, SettledTexts(), observe=False)
        return {
            name: value for ran in answer.metadata["steps"] for name, value in ran.get("metadata", {}).items()
        }

    async def _answer(
        self, steps: Sequence[Step], items: Sequence[Any], scope: str, settled: SettledTexts, *, observe: bool
    ) -> InvokeAnswer:
        version = self._version(steps)
        call = MiddlewareCall(
            self.invoke.audit,
            self.caller,
            self.info,
            self.action,
            middleware=version.pipeline.name,
            policy_version=self.policy_version,
        )
        run = PipelineRun(
            outcomes=self.outcomes,
            middlewares=await self.invoke.invocables.steps_of(version),
            version=version,
            policy=_less_blocks(self.policy, len(settled.texts)),
            call=call,
            until=self.until,
            invocation=partial(self._invocation, call, settled),
            own_event=self.reports is None,
        )
        arguments: dict[str, Any] = {"scope": scope, **({"dryRun": True} if observe else {})}
        try:
            answer = await run.answered(arguments, list(items), None)
        except SettledTextsChangedError:
            raise
        except BaseException as error:
            self._add(run)
            if self.reports is None:
                await call.refused(error)
            if isinstance(error, ServiceError | asyncio.CancelledError):
                raise
            raise InternalError("The service failed; the log has the request id.") from error
        self._add(run)
        return answer

    def _add(self, run: PipelineRun) -> None:
        self.findings.update(run.counts)
        if self.reports is not None:
            self.reports.extend(run.reports)

    def _invocation(self, call: MiddlewareCall, settled: SettledTexts, until: float) -> Invocation:
        return replace(self.invoke.invocation(call, until), settled=settled)

    async def pipeline_of(self, provider: str, model: str | None) -> GatewayPipeline:
        """Return what the policy runs for a model of a provider, or for all of its models (None).

        Its steps are middlewares: a pipeline of the tenant is replaced by its steps, with their limits.
        """
        invocables = self.invoke.invocables
        pipelines = await invocables.pipelines_of(self.caller.tenant)

        def find(name: str) -> Pipeline | None:
            version = pipelines.get(name)
            if version is None and name not in invocables.installed and REMOTE_SEPARATOR not in name:
                raise NotFoundError(
                    f"The policy of this tenant names a middleware or pipeline that does not exist: {name}."
                )
            return None if version is None else version.pipeline

        entries = self.policy.gateway.pipelines_of(provider, model)
        return joined([flattened(entry, find) for entry in entries])

    def restoration(self, pipeline: GatewayPipeline) -> Any:
        """Return the arguments with which ``pipeline`` restores, as the middleware reads them; None if it does not."""
        step = next((step for step in pipeline.inbound if step.name == RESTORATION), None)
        if step is None:
            return None
        middleware = self.invoke.invocables.installed[RESTORATION]
        return checked_arguments(middleware, merged_arguments(self.policy, middleware, step.arguments))

    def _version(self, steps: Sequence[Step]) -> PipelineVersion:
        """Return one pipeline of all steps, so that they share handles and are on record once."""
        flat = []
        for step in steps:
            limited = step if isinstance(step, PipelineStep) else PipelineStep(name=step.name)
            arguments = self._arguments(step.name, step.arguments)
            flat.append(limited.model_copy(update={"arguments": arguments}))
        pipeline = Pipeline(name=_NAME, steps=flat)
        return PipelineVersion(0, pipeline, "active", "gateway", datetime.now(UTC), self.caller.key_id)

    def _arguments(self, name: str, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a step: its own override the policy's defaults."""
        middleware = self.invoke.invocables.installed.get(name)
        if middleware is None:
            return dict(own)
        always = dict(_ALWAYS) if middleware.conceals else {}
        if middleware.evidence is not None and self.evidence:
            always[middleware.evidence] = list(self.evidence)
        return {**always, **self.policy.default_arguments.get(name, {}), **own}


def _less_blocks(policy: Policy, settled: int) -> Policy:
    """Return the policy for a run over the rest of a context: its limit counts the settled messages, too."""
    if not settled:
        return policy
    limits = policy.limits.model_copy(update={"max_blocks": max(policy.limits.max_blocks - settled, 0)})
    return policy.model_copy(update={"limits": limits})


def end_of(policy: Policy) -> float:
    """Return when the work on a request must have ended, as a time of the event loop's clock."""
    return asyncio.get_running_loop().time() + policy.limits.deadline_ms / 1000
