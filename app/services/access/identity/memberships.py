"""Who is in which group of the mirror: read once, remembered until a change of the group is announced."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.services.access.identity.mirror import opened_entry
from app.services.access.identity.mirror_changes import everybody_in, mirror_digest
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.store.access.provisioned import Part, StoredEntry, find_entry

_STALE_S: Final = 5.0
_CACHED_GROUPS: Final = 200


class MirroredGroup(NamedTuple):
    """The members of a group, by their ids in the mirror; none where there is no such group."""

    tenant: str
    members: frozenset[str]


GroupMemory = ShortMemory[tuple[str, str], MirroredGroup]
"""Groups by tenant and the digest of their name."""


def group_memory() -> GroupMemory:
    """Return an empty memory of groups."""
    return ShortMemory(ttl_s=_STALE_S, size=_CACHED_GROUPS)


def forget_group(groups: GroupMemory, tenant: str | None, digest: str | None) -> None:
    """Read a group again by the digest of its name, None: all groups of a tenant, or of all tenants."""
    if tenant is not None and digest is not None:
        groups.forget((tenant, digest))
    else:
        groups.forget_where(lambda group: tenant in (None, group.tenant))


@dataclass(frozen=True, slots=True)
class Memberships:
    """Answers from ``groups``, and from the mirror for what is not there; raises where the store gives no answer."""

    audit: AuditService
    groups: GroupMemory

    async def person(self, tenant: str, part: Part, digest: str) -> StoredEntry | None:
        """Return a person by the digest of a name or an external id; one who was deleted is there, not active."""
        async with self.audit.database.transaction(tenant, write=False) as tx:
            return await find_entry(tx, tenant, "User", part, digest)

    async def absent(self, tenant: str, person: StoredEntry | None, names: Sequence[str]) -> tuple[str, ...]:
        """Return those of the groups in which a person is not; who is not active is in none."""
        if person is None or not person.active:
            return tuple(names)
        await self.audit.keys.ready(tenant)
        listed = [(name, await self._group(tenant, self._digest(tenant, name))) for name in names]
        return tuple(name for name, group in listed if person.id not in group.members)

    async def marks_of(self, tenant: str, names: Collection[str]) -> frozenset[str]:
        """Return the digests under which it is announced that the members of these groups have changed."""
        await self.audit.keys.ready(tenant)
        return frozenset(everybody_in(self._digest(tenant, name)) for name in names)

    def _digest(self, tenant: str, name: str) -> str:
        return mirror_digest(self.audit, tenant, "Group", "name", name)

    async def _group(self, tenant: str, digest: str) -> MirroredGroup:
        key = tenant, digest
        group = self.groups.peek(key) or await self.groups.get(key, self._load)
        return group or MirroredGroup(tenant, frozenset())

    async def _load(self, key: tuple[str, str]) -> MirroredGroup:
        tenant, digest = key
        async with self.audit.database.transaction(tenant, write=False) as tx:
            row = await find_entry(tx, tenant, "Group", "name", digest)
        if row is None or row.removed is not None:
            return MirroredGroup(tenant, frozenset())
        return MirroredGroup(tenant, frozenset(opened_entry(self.audit, tenant, row).members))
