"""Find where a tenant keeps the values of a person: scopes, types, counts and times, never an original."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.errors import InvalidArgumentsError, RateLimitedError
from app.core.paging import page_of
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService, checked_reason
from app.services.vault.blind_index import BlindIndex
from app.services.vault.vault import VaultService
from app.store.audit.audit import AuditFilters, Transaction, list_events
from app.store.database import Database
from app.store.vault.subjects import (
    OccurrenceGroup,
    ScopeType,
    SoughtEntries,
    count_digests,
    count_scopes,
    is_indexed,
    list_groups,
    lock_searches,
)

SEARCH: Final = "subject.search"
MOST_VALUES: Final = 60
"""Values that a tenant may search for in a minute: a search tells whether somebody is known here."""
_WINDOW: Final = timedelta(minutes=1)
_LEAST_TELLING: Final = 3
_VALUES: Final = "values"


class SubjectValue(NamedTuple):
    """A value of a person, and the type as which it was masked (None: any)."""

    value: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class SubjectRequest:
    """What is searched for, and why; ``variants``: spellings of the values, too."""

    values: Sequence[SubjectValue]
    reason: str
    variants: bool = False


@dataclass(frozen=True, slots=True)
class SubjectTotals:
    """What there is of all values: how many entries by type and by value, and in how many scopes.

    ``indexed``: every entry has its digest; where not, those without one were opened, of which ``unreadable`` could
    not be.
    """

    scopes: int
    counts: dict[str, int]
    by_value: list[int]
    indexed: bool
    unreadable: int = 0

    @property
    def entries(self) -> int:
        """Return the number of entries."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class SubjectPage:
    """A page of what was found, in the order of scopes, and the cursor of the next page (None: this is the last)."""

    totals: SubjectTotals
    items: list[OccurrenceGroup]
    next: str | None


@dataclass(slots=True)
class _Opened:
    """What was found among entries without digests, which had to be opened."""

    groups: dict[ScopeType, OccurrenceGroup] = field(default_factory=dict)
    by_value: Counter[int] = field(default_factory=Counter)
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class SubjectService:
    """The use cases of ``eraser`` that look for a person."""

    database: Database
    audit: AuditService
    index: BlindIndex
    now: Callable[[], datetime]

    @classmethod
    def over(cls, vault: VaultService) -> "SubjectService":
        """Return what searches a vault."""
        return cls(vault.database, vault.audit, vault.index, vault.now)

    async def search(
        self,
        caller: Caller,
        wanted: SubjectRequest,
        request: RequestInfo | None = None,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> SubjectPage:
        """Return a page of where live scopes have the values; needs the role eraser and a reason, and is on record.

        Raises RateLimitedError where the tenant has searched for more than 60 values within a minute.
        """
        async with self.audit.refusals(caller, SEARCH, request):
            caller.require(Role.ERASER)
            after = _place_of(cursor)
            await self.admit(caller, wanted, request)
        sought = self.index.sought(caller.tenant, wanted.values, self.now(), variants=wanted.variants)
        opened = await self._opened(caller.tenant, sought)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            totals = await self._totals(tx, caller.tenant, sought, opened)
            groups = await list_groups(tx, caller.tenant, sought, after=after, limit=limit + 1)
        page, following = page_of(
            _merged(groups, opened, after), limit, lambda group: f"{group.place.label}@{group.place.scope}"
        )
        return SubjectPage(totals, page, following)

    async def totals(self, tenant: str, sought: SoughtEntries) -> SubjectTotals:
        """Return what there is of what is sought; the calling code checks who asks and records it."""
        opened = await self._opened(tenant, sought)
        async with self.database.transaction(tenant, write=False) as tx:
            return await self._totals(tx, tenant, sought, opened)

    async def admit(
        self,
        caller: Caller,
        wanted: SubjectRequest,
        request: RequestInfo | None,
        *,
        preview: bool = False,
    ) -> None:
        """Record a search before it is made, or raise RateLimitedError: the record says what the last minute had."""
        event = self.event(caller, SEARCH, wanted, request)
        if preview:
            event = replace(event, details={**event.details, "preview": True})
        async with self.database.transaction(caller.tenant) as tx:
            await lock_searches(tx, caller.tenant)
            await self._check_rate(tx, caller.tenant, len(wanted.values))
            await self.audit.record_with(tx, event)

    def event(
        self, caller: Caller, action: str, wanted: SubjectRequest, request: RequestInfo | None
    ) -> AuditEvent:
        """Return an event that says how many values and why, with a digest of the values and none of them."""
        reason = checked_reason(wanted.reason)
        if not 0 < len(wanted.values) <= MOST_VALUES:
            raise InvalidArgumentsError(
                f"One request names 1 to {MOST_VALUES} values.", details={"pointer": "/values"}
            )
        if not all(value.value.strip() for value in wanted.values):
            raise InvalidArgumentsError("A value is empty.", details={"pointer": "/values"})
        folded = reason.casefold()
        if any(
            len(value.value) >= _LEAST_TELLING and value.value.casefold() in folded for value in wanted.values
        ):
            raise InvalidArgumentsError(
                "The reason has one of the values, and it is kept on record: name the case instead.",
                details={"pointer": "/reason"},
            )
        values = json.dumps([[value.type, value.value] for value in wanted.values]).encode()
        return self.audit.new_event(
            caller,
            action,
            OUTCOME_OK,
            request,
            details={_VALUES: len(wanted.values), "variants": wanted.variants, "reason": reason},
            in_hmac=self.audit.digest(caller.tenant, b"subjects\0" + values),
        )

    async def _check_rate(self, tx: Transaction, tenant: str, number: int) -> None:
        now = self.now()
        filters = AuditFilters(since=now - _WINDOW, action=SEARCH, outcome=OUTCOME_OK)
        recent = await list_events(tx, tenant, filters, before=None, limit=MOST_VALUES + 1)
        searched = [(each.event.at, int(each.event.details.get(_VALUES, 0))) for each in recent]
        excess = sum(values for _, values in searched) + number - MOST_VALUES
        if excess <= 0:
            return
        for at, values in sorted(searched):
            excess -= values
            if excess <= 0:
                raise RateLimitedError(
                    f"The tenant may search for {MOST_VALUES} values a minute; wait a moment.",
                    details={"limit": "values_per_minute", "value": MOST_VALUES},
                    retry_after_s=(at + _WINDOW - now).total_seconds(),
                )

    async def _opened(self, tenant: str, sought: SoughtEntries) -> _Opened:
        """Look into the entries that have no digest yet."""
        opened = _Opened()
        async for unindexed, digest in self.index.unindexed(tenant, sought):
            label = unindexed.sealed.label
            if digest is None:
                opened.unreadable += 1
            elif positions := list(sought.matching(digest, label)):
                opened.by_value.update(positions)
                place = ScopeType(unindexed.scope, label)
                _add(opened.groups, OccurrenceGroup(place, 1, unindexed.created, unindexed.created))
        return opened

    async def _totals(
        self, tx: Transaction, tenant: str, sought: SoughtEntries, opened: _Opened
    ) -> SubjectTotals:
        counts: Counter[str] = Counter()
        by_value = Counter(opened.by_value)
        for (digest, label), count in (await count_digests(tx, tenant, sought)).items():
            counts[label] += count
            by_value.update(dict.fromkeys(sought.matching(digest, label), count))
        for group in opened.groups.values():
            counts[group.place.label] += group.count
        scopes = await count_scopes(tx, tenant, sought)
        # A scope may have entries of both kinds while its index is being filled.
        alone = {place.scope for place in opened.groups}
        if alone:
            indexed = await list_groups(tx, tenant, sought, after=None, limit=scopes * len(counts) + 1)
            alone -= {group.place.scope for group in indexed}
        return SubjectTotals(
            scopes=scopes + len(alone),
            counts=dict(sorted(counts.items())),
            by_value=[by_value[at] for at in range(len(sought.values))],
            indexed=await is_indexed(tx, tenant, normal=sought.normal),
            unreadable=opened.unreadable,
        )


def _merged(
    groups: Sequence[OccurrenceGroup], opened: _Opened, after: ScopeType | None
) -> list[OccurrenceGroup]:
    """Return both in one order; a scope may have entries with and without digests."""
    merged = {group.place: group for group in groups}
    for place, group in opened.groups.items():
        if after is None or place.key > after.key:
            _add(merged, group)
    return sorted(merged.values(), key=lambda group: group.place.key)


def _add(groups: dict[ScopeType, OccurrenceGroup], group: OccurrenceGroup) -> None:
    before = groups.get(group.place, group)
    count = group.count if before is group else before.count + group.count
    groups[group.place] = OccurrenceGroup(
        group.place, count, min(before.first, group.first), max(before.last, group.last)
    )


def _place_of(cursor: str | None) -> ScopeType | None:
    if cursor is None:
        return None
    label, _, scope = cursor.partition("@")
    if not label or not scope:
        raise InvalidArgumentsError(
            "The cursor was not issued by this service.", details={"pointer": "/cursor"}
        )
    return ScopeType(scope, label)
