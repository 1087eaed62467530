"""Explain why something in a text is personal data or not, under the rules that apply to the caller."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.contracts.engines import Explainer, Explanation
from app.core.contracts.registry import Registry
from app.core.deadlines import TimeLimit
from app.core.errors import BlockedByPolicyError, DeadlineExceededError
from app.core.redaction.text_reading import explained
from app.core.request import RequestInfo
from app.middlewares.pii_redaction.middleware import PiiRedaction
from app.services.access.policies import PolicyService
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditService
from app.services.invoke.calls import MiddlewareCall, checked_arguments, merged_arguments

ACTION: Final = "pii.explain"


@dataclass(frozen=True, slots=True)
class ExplainService:
    """Explains detections; recorded like an invocation of `pii_redaction`, but nothing is redacted or stored."""

    registry: Registry
    policies: PolicyService
    audit: AuditService
    traffic: Traffic
    explainer: Explainer

    async def explain(
        self, caller: Caller, text: str, arguments: Mapping[str, Any], request: RequestInfo
    ) -> Explanation:
        """Return what was considered in ``text``; ``arguments`` are those of `pii_redaction`, under the policy."""
        call = MiddlewareCall(self.audit, caller, request, ACTION, middleware=PiiRedaction.name)
        call.input_json = text.encode("utf-8", "surrogatepass")
        try:
            caller.require(Role.INVOKER)
            explanation = await self._explain(call, text, arguments)
        except BaseException as error:
            await call.refused(error)
            raise
        call.counts = Counter(span.label for span in explanation.spans)
        await self.audit.record(call.event(OUTCOME_OK))
        return explanation

    async def _explain(self, call: MiddlewareCall, text: str, arguments: Mapping[str, Any]) -> Explanation:
        tenant = call.caller.tenant
        call.policy_version, policy = await self.policies.get(tenant)
        if policy.allowed_middlewares is not None and PiiRedaction.name not in policy.allowed_middlewares:
            raise BlockedByPolicyError("The policy of this tenant does not allow pii_redaction.")
        middleware = self.registry.get(PiiRedaction.name)
        checked = checked_arguments(middleware, merged_arguments(policy, middleware, arguments))
        options = PiiRedaction(middleware.engines).options(checked)
        now = asyncio.get_running_loop().time()
        until = min(call.request.deadline, now + policy.limits.deadline_ms / 1000)
        async with self.traffic.turn(tenant, policy.limits, until):
            try:
                async with TimeLimit(until):
                    return await explained(self.explainer, text, options, tenant=tenant)
            except TimeoutError as error:
                raise DeadlineExceededError("The text was not scanned within the time limit.") from error
