"""The model providers of a tenant as stored."""

from dataclasses import dataclass
from typing import Final, Literal

from app.store.gateway.tables import provider
from app.store.named_records import NamedRecord, NamedRecords

ProviderOrigin = Literal["file", "host", "api"]
"""Who wrote a provider: the declarative file, the command line on the host, or an operator over REST."""


@dataclass(frozen=True, slots=True)
class StoredProvider(NamedRecord):
    """One provider and who wrote it."""

    origin: ProviderOrigin


PROVIDERS: Final = NamedRecords(provider, StoredProvider)
