"""The issuers that operators have added, as stored: under the issuers' own names, in the tenant system."""

from dataclasses import dataclass
from typing import Final

from app.store.access.tables import trusted_issuer
from app.store.named_records import NamedRecord, NamedRecords


@dataclass(frozen=True, slots=True)
class StoredIssuer(NamedRecord):
    """One issuer; ``version`` grows with each change, ``updated_by`` made the last one."""

    version: int
    updated_by: str


ISSUERS: Final = NamedRecords(trusted_issuer, StoredIssuer)
"""Queries on the issuers, for system transactions alone."""
