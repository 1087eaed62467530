"""What went through the gateway lately: requests, tokens and the share that providers read from their caches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, NamedTuple

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.request import RequestInfo
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditQuery, AuditService

LOOKED_AT: Final = 1_000
WINDOW: Final = timedelta(days=1)
_ANSWER: Final = "gateway.answer"
_SENT: Final = ("input_tokens", "prompt_tokens")
_GIVEN: Final = ("output_tokens", "completion_tokens")
_READ: Final = "cache_read_input_tokens"
_WRITTEN: Final = "cache_creation_input_tokens"
_CACHED: Final = "cached_tokens"


@dataclass(slots=True)
class ModelUse:
    """Answers of one model of a provider; ``cached`` of the ``sent`` tokens came from the provider's cache."""

    provider: str
    model: str
    answers: int = 0
    failed: int = 0
    sent: int = 0
    cached: int = 0
    received: int = 0
    streams: int = 0
    first_byte_ms: list[float] = field(default_factory=list, repr=False)

    @property
    def cached_share(self) -> float | None:
        """Return the share of tokens that came from the cache, None where nothing was counted."""
        return self.cached / self.sent if self.sent else None

    @property
    def median_first_byte_ms(self) -> float | None:
        """Return the median time to the first bytes of an answer, None where it was not measured."""
        times = sorted(self.first_byte_ms)
        return times[len(times) // 2] if times else None

    def add(self, event: AuditEvent) -> None:
        """Count one answer."""
        details = event.details
        self.answers += 1
        self.failed += event.outcome != OUTCOME_OK
        self.streams += details.get("stream") is True
        read, written = _number(details, _READ), _number(details, _WRITTEN)
        # One API counts what its cache gave beside the other tokens, the other among them.
        self.sent += sum(_number(details, name) for name in _SENT) + read + written
        self.cached += read + _number(details, _CACHED)
        self.received += sum(_number(details, name) for name in _GIVEN)
        if "first_byte_us" in details:
            self.first_byte_ms.append(_number(details, "first_byte_us") / 1000)


class GatewayUsePage(NamedTuple):
    """The use by provider and model, of the newest ``looked_at`` answers of a day; ``more``: there were others."""

    models: Sequence[ModelUse]
    looked_at: int
    more: bool


@dataclass(frozen=True, slots=True)
class GatewayUsage:
    """Tells auditors of the last day's answers, and operators of what is under way."""

    audit: AuditService
    traffic: Traffic

    async def recent(self, caller: Caller, request: RequestInfo) -> GatewayUsePage:
        """Return what the record says of the newest answers of the last day; needs the role auditor.

        The look is itself on record.
        """
        query = AuditQuery(since=self.audit.now() - WINDOW, action=_ANSWER)
        page = await self.audit.query(caller, query, request, limit=LOOKED_AT)
        uses: dict[tuple[str, str], ModelUse] = {}
        for event in page.items:
            name = str(event.details.get("provider", "")), str(event.details.get("model", ""))
            uses.setdefault(name, ModelUse(*name)).add(event)
        ordered = sorted(uses.values(), key=lambda use: (-use.answers, use.provider, use.model))
        return GatewayUsePage(ordered, len(page.items), page.next is not None)

    async def under_way(self, caller: Caller, request: RequestInfo) -> Mapping[str, int]:
        """Return the requests and streams of the caller's tenant that this process has under way, by API."""
        await self.admit(caller, request)
        return self.running(caller.tenant)

    async def admit(self, caller: Caller, request: RequestInfo) -> None:
        """Raise ForbiddenError, on record too, for those who neither operate nor audit."""
        async with self.audit.refusals(caller, "gateway.under_way", request):
            caller.require(Role.OPERATOR, Role.AUDITOR)

    def running(self, tenant: str) -> Mapping[str, int]:
        """Return what ``under_way`` does, in the order of names, for those whom ``admit`` has admitted."""
        return {
            lane.removeprefix("gateway "): number
            for lane, number in sorted(self.traffic.forwarded_by(tenant).items())
            if lane.startswith("gateway ")
        }


def _number(details: Mapping[str, object], name: str) -> int:
    value = details.get(name)
    return value if type(value) is int else 0
