"""Say whether masking is on for a client: which policy and pipeline apply to its requests, shown on a sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.core.access import Caller, Role
from app.core.request import RequestInfo
from app.services.access.access import AccessService
from app.services.previews.client_keys import find_client
from app.services.previews.policies import PolicyPreviews, PolicySample, SampleOutcome
from app.store.access.access import KeyInfo

SAMPLE_TEXT: Final = "I am Jane Smith, jane.smith@example.com, SSN 123-45-6789."


class ClientMasking(NamedTuple):
    """What happens to a client's requests to a model; ``reasons`` say in sentences why masking is off, if it is.

    ``restores``: whether the client gets originals back in answers.
    """

    client: KeyInfo
    policy_version: int
    is_on: bool
    reasons: Sequence[str]
    steps: Sequence[str]
    restores: bool
    sample: str
    outcome: SampleOutcome


@dataclass(frozen=True, slots=True)
class ClientPreviews:
    """Answers operators about single clients."""

    access: AccessService
    previews: PolicyPreviews

    async def masking(
        self, caller: Caller, key_id: str, request: RequestInfo, *, provider: str = "", model: str = ""
    ) -> ClientMasking:
        """Return what happens to requests of a key to ``model`` of ``provider`` (empty: any); the look is on record."""
        client = await find_client(self.access, caller, key_id, request)
        items = [{"type": "text", "text": SAMPLE_TEXT}]
        policy, version, outcome, entry = await self.previews.through_gateway(
            caller, PolicySample(items, "gateway", provider, model), request
        )
        conceals = self.previews.conceals([step.name for step in entry.outbound]) if entry is not None else []
        reasons = []
        if client.revoked is not None or client.state(self.access.now()) == "expired":
            reasons.append("The key has ended: it opens nothing.")
        elif Role.INVOKER not in client.roles:
            reasons.append("The key has not the role invoker: the gateway refuses its requests.")
        if policy.gateway.mode == "observe":
            reasons.append("The gateway only observes: it counts what it would hide.")
        if not conceals and outcome.refused is None:
            reasons.append("No step of the pipeline hides anything.")
        is_on = bool(conceals) and policy.gateway.mode == "enforce"
        restores = entry is not None and entry.restores
        return ClientMasking(client, version, is_on, reasons, outcome.steps, restores, SAMPLE_TEXT, outcome)
