"""Tell every process whose rights a change of the mirror may touch, with the commit that makes it."""

from collections.abc import Collection
from typing import Final, NamedTuple

from app.core.events import Changed
from app.core.identities import folded
from app.services.access.identity.ends import IDENTITY_ENDED
from app.services.access.identity.entries import Kind
from app.services.audit.audit import AuditService
from app.store.access.provisioned import StoredEntry, list_people
from app.store.audit.audit import Transaction
from app.store.changes import announce

DIRECTORY_CHANGED: Final = "directory"
"""The kind of ``Changed`` when a person may be in other groups; its name is a digest of theirs, of a group, or
``everybody_in`` a group."""
FEW: Final = 50
"""Up to how many members that come or go are told by themselves; more: everybody who was asked about the group."""


class GroupState(NamedTuple):
    """A group before or after a change, as far as it counts: by which digest it is found, and who is in it."""

    digest: str
    members: frozenset[str]


def mirror_digest(audit: AuditService, tenant: str, kind: Kind, part: str, value: str) -> str:
    """Return by which digest an entry is found: names count in any case and spelling, other ids as they are."""
    text = folded(value) if part == "name" else value
    named = f"provisioned {kind} {part}\0{text}"
    return audit.digest(tenant, named.encode("utf-8", "surrogatepass"))


def everybody_in(group: str) -> str:
    """Return the mark of everybody whose rights hang on a group, by the digest of its name."""
    return f"in {group}"


async def tell_person(tx: Transaction, before: StoredEntry | None, after: StoredEntry) -> None:
    """Let every process look again at whom an entry stood for, and stands for now; ``before`` None: it is new."""
    kind = DIRECTORY_CHANGED if before is None else IDENTITY_ENDED
    for digest in _digests_of(after) | (_digests_of(before) if before is not None else set()):
        await announce(tx, Changed(kind, after.tenant, digest))


async def tell_group(
    tx: Transaction, tenant: str, before: GroupState | None, after: GroupState | None
) -> None:
    """Let every process ask again who is in a group; None: it was not there, or is no more."""
    if before == after:
        return
    states = [state for state in (before, after) if state is not None]
    digests = sorted({state.digest for state in states})
    members = [state.members for state in states]
    # Under another name it is another group: all of its members come, and go from the former one.
    renamed = len(states) < 2 or len(digests) > 1  # noqa: PLR2004 - before and after
    changed: Collection[str] = members[0].union(*members) if renamed else members[0] ^ members[1]
    for digest in digests:  # before anybody's rights are looked at again
        await announce(tx, Changed(DIRECTORY_CHANGED, tenant, digest))
    if len(changed) > FEW:
        for digest in digests:
            await announce(tx, Changed(DIRECTORY_CHANGED, tenant, everybody_in(digest)))
        return
    for person in await list_people(tx, tenant, changed):
        for digest in sorted(_digests_of(person)):
            await announce(tx, Changed(DIRECTORY_CHANGED, tenant, digest))


def _digests_of(entry: StoredEntry) -> set[str]:
    return {digest for digest in (entry.name_digest, entry.external_digest) if digest is not None}
