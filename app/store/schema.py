"""All tables of the database, so that whoever compares a schema sees each of them."""

from app.store.access import tables as access
from app.store.audit import tables as audit
from app.store.documents import tables as documents
from app.store.gateway import tables as gateway
from app.store.tables import metadata
from app.store.vault import tables as vault

__all__ = ["access", "audit", "documents", "gateway", "metadata", "vault"]
