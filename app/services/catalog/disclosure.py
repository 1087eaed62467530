"""Which descriptions a caller has read: checked before a call, and noted at each read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from weakref import WeakKeyDictionary

from app.core.access import Caller
from app.core.audit import OUTCOME_OK
from app.core.catalog.description_uri import not_found
from app.core.catalog.primitives import Primitive
from app.core.contracts.policy import Limits, Policy
from app.core.errors import RateLimitedError
from app.core.offload import off_loop
from app.core.request import RequestInfo
from app.core.tools.disclosure import ToolDescription, full_entry
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditService
from app.services.catalog.descriptions import DescriptionService
from app.store.catalog.descriptions import find_disclosure, put_disclosures, remove_expired_disclosures
from app.store.database import Database

_MINUTE_S: Final = 60.0
_CHARACTERS_EACH: Final = 2048
"""The approximate cost of one entry, in the unit of ``off_loop`` (characters)."""

Entries = list[tuple[Primitive, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class DisclosureService:
    """Returns full descriptions of tools, and remembers per caller what was read if the policy requires it.

    What a session or a handle remembers is kept by the protocol; ``reads`` counts the reads of each caller.
    """

    database: Database
    audit: AuditService
    descriptions: DescriptionService
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    reads: Traffic = field(default_factory=Traffic)
    entries: WeakKeyDictionary[Primitive, tuple[ToolDescription | None, Mapping[str, Any]]] = field(
        default_factory=WeakKeyDictionary
    )

    def count(self, caller: Caller, limits: Limits) -> None:
        """Count a read of a caller; raise RateLimitedError above the number of reads per minute."""
        allowed = limits.description_reads_per_minute
        rate = Limits(requests_per_second=allowed / _MINUTE_S, burst=allowed)
        pause: float | None
        try:
            self.reads.spend(f"{caller.tenant}/{caller.key_id}", rate)
            return
        except RateLimitedError as error:
            pause = error.retry_after_s
        raise RateLimitedError(
            f"Tool descriptions may be read {allowed} times a minute; read several at once, and keep them.",
            details={"limit": "description_reads_per_minute", "value": allowed},
            retry_after_s=pause,
        )

    async def described(
        self, caller: Caller, tools: Mapping[str, Primitive], names: Sequence[str]
    ) -> dict[str, Any]:
        """Return the entry of each name, in their order; ``tools`` are those that the caller may see."""
        written = await self.descriptions.descriptions(caller.tenant)
        wanted = [tools[name] for name in names if name in tools]
        new = [
            tool
            for tool in wanted
            if tool not in self.entries or self.entries[tool][0] != written.get(tool.name)
        ]
        for tool, entry in await off_loop(len(new) * _CHARACTERS_EACH, _entries, new, written):
            self.entries[tool] = (written.get(tool.name), entry)
        unknown = not_found([name for name in names if name not in tools], tools)
        return {name: self.entries[tools[name]][1] if name in tools else unknown[name] for name in names}

    async def note(
        self,
        caller: Caller,
        digests: Mapping[str, str],
        request: RequestInfo,
        *,
        policy: Policy | None = None,
    ) -> None:
        """Record that reads authorize the caller to call these tools.

        With ``policy`` the caller itself is authorized, whatever session or handle it uses, for as long as the
        policy says.
        """
        details = {"tools": len(digests), "of": "caller" if policy is not None else "session"}
        event = self.audit.new_event(caller, "disclosure.read", OUTCOME_OK, request, details=details)
        if policy is None:
            await self.audit.record(event)
            return
        expires = self.now() + timedelta(seconds=policy.disclosure.caller_ttl_s)
        async with self.database.transaction(caller.tenant) as tx:
            await put_disclosures(tx, caller.tenant, caller.key_id, digests, expires)
            await self.audit.record_with(tx, event)

    async def knows(self, caller: Caller, tool: Primitive) -> bool:
        """Return whether the caller has read exactly this definition, as far as that is remembered per caller."""
        async with self.database.transaction(caller.tenant, write=False) as tx:
            read_digest = await find_disclosure(tx, caller.tenant, caller.key_id, tool.name, self.now())
        return read_digest == tool.digest

    async def purge_expired(self) -> int:
        """Remove expired reads of all tenants' callers; return how many."""
        async with self.database.system_transaction() as tx:
            return await remove_expired_disclosures(tx, self.now())


def _entries(tools: Sequence[Primitive], written: Mapping[str, ToolDescription]) -> Entries:
    return [(tool, full_entry(tool.definition, tool.name, written.get(tool.name))) for tool in tools]
