"""What the sealer looks at before rows enter the log: numbers that are missing, and codes that are not a row's own.

Neither keeps a row out of the log: it is sealed as it was found, and an event beside it says what is wrong.
"""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from app.core.access import SYSTEM_TENANT, Caller
from app.core.audit import ALTERED_ACTION, GAP_ACTION, OUTCOME_FAILED, AuditEvent
from app.core.transparency.gaps import NumbersSeen
from app.core.transparency.hashing import HASH_BYTES, leaf_hash
from app.engines.cipher import RecordKeys
from app.services.audit.audit import AuditService
from app.services.audit.leaves import expected_mac, leaf_of
from app.store.audit.unsealed import Unsealed
from app.store.audit.writers import WriterPlace

SEALER: Final = Caller(SYSTEM_TENANT, "sealer", frozenset())

Writers = Mapping[WriterPlace, NumbersSeen]


class SealedRow(NamedTuple):
    """The hash under which a row enters the log, and whether its code is its own."""

    leaf: bytes
    authentic: bool


def sealed_row(keys: RecordKeys, row: Unsealed) -> SealedRow:
    """Return how a row enters the log.

    The code of a numbered row is over its stored leaf, so its columns need not be read; who verifies reads them.
    """
    if row.leaf is None and row.old is not None:
        authentic = hmac.compare_digest(expected_mac(keys, row.old), row.mac)
        return SealedRow(leaf_hash(leaf_of(row.old)), authentic)
    leaf = row.leaf or b""
    authentic = hmac.compare_digest(keys.mac(row.tenant, leaf), row.mac)
    return SealedRow(leaf if len(leaf) == HASH_BYTES else leaf_hash(leaf), authentic)


def places_of(rows: Iterable[Unsealed]) -> set[WriterPlace]:
    """Return the writers of rows."""
    return {WriterPlace(row.tenant, row.number.writer) for row in rows if row.number is not None}


def seen_with(rows: Iterable[Unsealed], writers: Writers) -> dict[WriterPlace, NumbersSeen]:
    """Return which numbers of their writers came by once ``rows`` are in the log."""
    seen = dict(writers)
    for row in rows:
        if row.number is not None:
            place = WriterPlace(row.tenant, row.number.writer)
            seen[place] = seen.get(place, NumbersSeen()).add(row.number.number)
    return seen


def gap_events(audit: AuditService, writers: Writers) -> list[AuditEvent]:
    """Return an event for each range of numbers that is missing."""
    return [
        audit.new_event(
            *(SEALER, GAP_ACTION, OUTCOME_FAILED, None),
            tenant=place.tenant,
            details={"writer": place.writer, "first": first, "last": last},
        )
        for place, seen in writers.items()
        for first, last in seen.missing
    ]


def altered_events(audit: AuditService, rows: Sequence[Unsealed]) -> list[AuditEvent]:
    """Return an event for each tenant of ``rows`` whose code is not their own: how many, and the first of them."""
    by_tenant: dict[str, list[Unsealed]] = {}
    for row in rows:
        by_tenant.setdefault(row.tenant, []).append(row)
    return [
        audit.new_event(
            *(SEALER, ALTERED_ACTION, OUTCOME_FAILED, None),
            tenant=tenant,
            details={"events": len(own), "event": str(own[0].event)},
        )
        for tenant, own in by_tenant.items()
    ]
