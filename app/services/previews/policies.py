"""Try a policy before it is stored: what it changes, what it widens, and what it does to a sample."""

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.catalog.primitives import PrimitiveKind
from app.core.contracts.gateway_pipelines import flattened
from app.core.contracts.gateway_policy import GatewayPipeline
from app.core.contracts.pipelines import Pipeline, PipelineStep
from app.core.contracts.policy import Policy
from app.core.contracts.policy_steps import Step
from app.core.contracts.widening.policies import Widening, widenings
from app.core.errors import (
    BlockedByPolicyError,
    DeadlineExceededError,
    ForbiddenError,
    InvalidArgumentsError,
    NotFoundError,
    UnscannableContentError,
)
from app.core.request import RequestInfo
from app.services.access.policies import PolicyService, PolicyVersion
from app.services.access.policy_documents import PolicyDifference, differences
from app.services.gateway.pipeline_use import PipelineUse, end_of
from app.services.invoke.calls import MiddlewareCall
from app.services.invoke.invoke import InvokeService
from app.services.invoke.pipeline_runs import PipelineRun
from app.services.invoke.pipelines import PipelineVersion

ACTION: Final = "policy.preview"
Door = Literal["gateway", "call", "tool"]
_REFUSALS: Final = (
    BlockedByPolicyError,
    DeadlineExceededError,
    ForbiddenError,
    InvalidArgumentsError,
    NotFoundError,
    UnscannableContentError,
)
_NAME: Final = "preview"


@dataclass(frozen=True, slots=True)
class PolicySample:
    """Content to try, and the way on which it comes.

    ``gateway``: a request for a model (``other``) of a provider (``name``). ``call``: an invocation of the middleware
    or pipeline ``name`` without arguments. ``tool``: the result of a tool (``name``) of a server (``other``).
    """

    items: Sequence[Any]
    door: Door = "gateway"
    name: str = ""
    other: str = ""


class SampleOutcome(NamedTuple):
    """What a policy does to a sample; ``refused`` says why nothing passes, ``note`` what else to know."""

    content: Sequence[Any]
    findings: Mapping[str, int]
    steps: Sequence[str]
    refused: str | None = None
    note: str | None = None


class PolicyComparison(NamedTuple):
    """How a policy differs from the version ``version``, and what both do to a sample, if there was one."""

    version: int
    changes: Sequence[PolicyDifference]
    widened: Sequence[Widening]
    now: SampleOutcome | None = None
    then: SampleOutcome | None = None


@dataclass(frozen=True, slots=True)
class PolicyPreviews:
    """Compares policies and tries them, for operators."""

    policies: PolicyService
    invoke: InvokeService

    async def compare(
        self,
        caller: Caller,
        before: int | None,
        after: int | None,
        tenant: str | None = None,
        request: RequestInfo | None = None,
    ) -> PolicyComparison:
        """Return how two stored versions differ: 0 is the default, None the one that holds or the one before it."""
        policies = self.policies
        if after is None:
            new = await policies.current(caller, tenant, request)
        else:
            new = await policies.version(caller, after, tenant, request)
        number = max(0, new.version - 1) if before is None else before
        return _compared(await policies.version(caller, number, tenant, request), new.policy)

    async def preview(
        self,
        caller: Caller,
        policy: Policy,
        request: RequestInfo,
        sample: PolicySample | None = None,
        tenant: str | None = None,
    ) -> PolicyComparison:
        """Return what storing ``policy`` would change, or raise what would refuse it.

        A sample runs with the authority of the policy, as the content that it stands for would; no value is stored and
        none restored. The event has the numbers of findings.
        """
        current = await self.policies.checked(caller, policy, tenant, request)
        comparison = _compared(current, policy)
        if sample is None:
            return comparison
        if tenant not in (None, caller.tenant):
            raise InvalidArgumentsError(
                "A sample runs with the middlewares of the caller's tenant: try it with a key of the other one.",
                details={"pointer": "/sample"},
            )
        await self.policies.audit.keys.ready(caller.tenant)
        trial = _Trial(self.invoke, caller, request, current.version, sample)
        now, then = await trial.outcome(current.policy), await trial.outcome(policy)
        details = {
            "version": current.version,
            "door": sample.door,
            "now": sum(now.findings.values()),
            "then": sum(then.findings.values()),
        }
        audit = self.policies.audit
        await audit.record(audit.new_event(caller, ACTION, OUTCOME_OK, request, details=details))
        return comparison._replace(now=now, then=then)

    async def through_gateway(
        self, caller: Caller, sample: PolicySample, request: RequestInfo
    ) -> tuple[Policy, int, SampleOutcome, GatewayPipeline | None]:
        """Return what the policy that holds does to a sample in the gateway, and its pipeline (None: it is refused)."""
        version, policy = await self.policies.get(caller.tenant)
        await self.policies.audit.keys.ready(caller.tenant)
        trial = _Trial(self.invoke, caller, request, version, sample)
        outcome = await trial.outcome(policy)
        audit, details = self.policies.audit, {"version": version, "door": sample.door}
        await audit.record(audit.new_event(caller, ACTION, OUTCOME_OK, request, details=details))
        try:
            return policy, version, outcome, await trial.pipeline(policy)
        except _REFUSALS:
            return policy, version, outcome, None

    def conceals(self, steps: Sequence[str]) -> list[str]:
        """Return those of the steps that are installed here and hide what they find."""
        installed = self.invoke.invocables.installed
        return [name for name in steps if name in installed and installed[name].conceals]


@dataclass(frozen=True, slots=True)
class _Trial:
    """Runs one sample under several policies."""

    invoke: InvokeService
    caller: Caller
    request: RequestInfo
    version: int
    sample: PolicySample

    async def outcome(self, policy: Policy) -> SampleOutcome:
        """Return what ``policy`` does to the sample."""
        doors = {"gateway": self._through_gateway, "call": self._called, "tool": self._of_tool}
        until = min(end_of(policy), self.request.deadline)
        async with self.invoke.traffic.turn(self.caller.tenant, policy.limits, until):
            try:
                return await doors[self.sample.door](policy, until)
            except _REFUSALS as error:
                return SampleOutcome((), {}, (), refused=error.message)

    async def pipeline(self, policy: Policy) -> GatewayPipeline:
        """Return what the gateway runs for the sample's provider and model."""
        return await self._use(policy, 0.0).pipeline_of(self.sample.name, self.sample.other)

    def _use(self, policy: Policy, until: float) -> PipelineUse:
        return PipelineUse(
            self.invoke,
            self.invoke.outcomes,
            self._authority,
            policy,
            self.version,
            self.request,
            until,
            ACTION,
            reports=[],
        )

    async def _through_gateway(self, policy: Policy, until: float) -> SampleOutcome:
        use, entry = self._use(policy, until), await self.pipeline(policy)
        # The filter looks at tools, of which a sample has none.
        steps = [step for step in entry.outbound if step.name != "tool_filter"]
        content = await use.run(steps, self.sample.items, _new_scope(), observe=True)
        names, findings = [step.name for step in entry.outbound], dict(use.findings)
        route = policy.gateway.route_of(findings)
        if policy.gateway.mode == "observe":
            return SampleOutcome(
                self.sample.items, findings, names, note="The gateway only observes: nothing is hidden."
            )
        if route is not None and route.refuse:
            return SampleOutcome((), findings, names, refused="A route of the policy refuses it.")
        note = None if route is None else f"A route leads to the provider {route.provider}."
        return SampleOutcome(content, findings, names, note=note)

    async def _called(self, policy: Policy, until: float) -> SampleOutcome:
        name = self.sample.name or "pii_redaction"
        if policy.allowed_middlewares is not None and name not in policy.allowed_middlewares:
            raise BlockedByPolicyError("The policy of this tenant does not allow this middleware.")
        version = (await self.invoke.invocables.pipelines_of(self.caller.tenant)).get(name)
        steps = version.pipeline.steps if version is not None else [PipelineStep(name=name)]
        return await self._run(policy, steps, until)

    async def _of_tool(self, policy: Policy, until: float) -> SampleOutcome:
        hook = policy.tool_hook_of(PrimitiveKind.TOOL, self.sample.name, self.sample.other)
        if hook is None or not hook.results:
            return SampleOutcome(
                self.sample.items, {}, (), note="No tool hook looks at results of this tool."
            )
        pipelines = await self.invoke.invocables.pipelines_of(self.caller.tenant)
        steps = [
            ready for step in hook.results for ready in _ready(step, policy, _finder(pipelines), pipelines)
        ]
        # The steps have the policy's arguments already, in the order in which hooks take them.
        bare = policy.model_copy(update={"default_arguments": {}, "fixed_arguments": {}})
        return await self._run(bare, steps, until)

    async def _run(self, policy: Policy, steps: Sequence[PipelineStep], until: float) -> SampleOutcome:
        pipeline = Pipeline(name=_NAME, steps=list(steps))
        version = PipelineVersion(0, pipeline, "active", _NAME, datetime.now(UTC), self.caller.key_id)
        call = MiddlewareCall(
            self.invoke.audit, self._authority, self.request, ACTION, policy_version=self.version
        )
        run = PipelineRun(
            outcomes=self.invoke.outcomes,
            middlewares=await self.invoke.invocables.steps_of(version),
            version=version,
            policy=policy,
            call=call,
            until=until,
            invocation=partial(self.invoke.invocation, call),
            own_event=False,
        )
        answer = await run.answered({"dryRun": True}, list(self.sample.items), None)
        return SampleOutcome(answer.content, dict(run.counts), [step.name for step in steps])

    @property
    def _authority(self) -> Caller:
        """Return who acts: the policy, which redacts; restoring is not among what a sample may do."""
        roles = (self.caller.roles | {Role.INVOKER}) - {Role.RESTORER}
        return replace(self.caller, roles=roles)


def _compared(before: PolicyVersion, after: Policy) -> PolicyComparison:
    return PolicyComparison(
        before.version, differences(before.policy, after), widenings(before.policy, after)
    )


def _ready(
    step: Step,
    policy: Policy,
    find: Callable[[str], Pipeline | None],
    pipelines: Mapping[str, PipelineVersion],
) -> list[PipelineStep]:
    """Return a step of a tool hook, or those of its pipeline, with all of their arguments."""
    entry = flattened(GatewayPipeline.model_construct(outbound=[step], inbound=[]), find)
    ready = []
    for inner in entry.outbound:
        usual, fixed = (
            arguments.get(inner.name, {}) for arguments in (policy.default_arguments, policy.fixed_arguments)
        )
        is_direct = step.name not in pipelines
        merged = {**usual, **fixed, **inner.arguments} if is_direct else {**usual, **inner.arguments, **fixed}
        limited = inner if isinstance(inner, PipelineStep) else PipelineStep(name=inner.name)
        ready.append(limited.model_copy(update={"arguments": merged}))
    return ready


def _finder(pipelines: Mapping[str, PipelineVersion]) -> Callable[[str], Pipeline | None]:
    def find(name: str) -> Pipeline | None:
        version = pipelines.get(name)
        return None if version is None else version.pipeline

    return find


def _new_scope() -> str:
    return f"{_NAME}-{secrets.token_hex(8)}"


def shown_less(now: SampleOutcome, then: SampleOutcome) -> Mapping[str, int]:
    """Return of which types the second outcome finds fewer values, and how many."""
    return dict(Counter(now.findings) - Counter(then.findings)) if then.refused is None else {}
