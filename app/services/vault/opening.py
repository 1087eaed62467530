"""Open sealed entries of the vault with the data keys of their scopes."""

import logging
import secrets
from dataclasses import dataclass

from app.core.access import Caller
from app.core.content.handles import Handle, Original
from app.core.errors import StoreUnavailableError
from app.engines.cipher import KeyKeeper, KeyRingError, ScopeKeys, SealBrokenError
from app.engines.custody.sealed_ring import CustodianDownError
from app.services.audit.audit import AuditService
from app.store.vault.vault import SealedEntry

_OWNER = b"owner of a scope\0"

log = logging.getLogger("sluice.vault")


@dataclass(frozen=True, slots=True)
class EntryOpener:
    """Opens entries; a key that cannot be opened is an error, a ciphertext that does not belong to its place is not."""

    key_keeper: KeyKeeper

    def keys(self, tenant: str, scope: str, sealed: SealedEntry) -> ScopeKeys:
        """Return the opened data key of an entry's scope; raise StoreUnavailableError without it."""
        try:
            return self.key_keeper.open(
                tenant, scope, sealed.generation, sealed.kek_version, sealed.dek_wrapped
            )
        except KeyRingError as error:
            raise key_unavailable(error) from None

    def payload(self, keys: ScopeKeys, sealed: SealedEntry) -> bytes | None:
        """Return the encoded original of an entry, or None (and log it) where it cannot be decrypted."""
        try:
            return keys.open(sealed.label, sealed.ordinal, sealed.ciphertext)
        except SealBrokenError:
            log.error("an entry of the vault cannot be decrypted: it was moved or changed")  # noqa: TRY400 - no trace
            return None

    def text(self, tenant: str, scope: str, sealed: SealedEntry) -> str | None:
        """Return the text of an entry's original."""
        payload = self.payload(self.keys(tenant, scope, sealed), sealed)
        return None if payload is None else Original.decode(payload).text


def tag_matches(handle: Handle, keys: ScopeKeys, payload: bytes) -> bool:
    """Return whether the tag of ``handle``, if it has one, is that of its original."""
    return handle.tag is None or secrets.compare_digest(
        handle.tag, keys.tag(handle.label, handle.ordinal, payload)
    )


def identity_of(audit: AuditService, caller: Caller) -> str:
    """Return the keyed digest (hex) of key and end user: who owns the scopes that a caller makes for itself."""
    user = "" if caller.end_user is None else f"={caller.end_user}"
    parts = [text.encode("utf-8", "surrogatepass") for text in (caller.key_id, user)]
    return audit.digest(caller.tenant, _OWNER + b"".join(len(part).to_bytes(4) + part for part in parts))


def key_unavailable(error: Exception) -> StoreUnavailableError:
    """Return the error for a data key that cannot be opened, and log why."""
    log.error("a data key cannot be opened: %s", error)
    if isinstance(error, CustodianDownError):
        return StoreUnavailableError(
            "The custodian of the key ring does not answer, so no scope begins, or opens again; try again later.",
            retry_after_s=30.0,
        )
    return StoreUnavailableError("The key of this scope is not available.", retry_after_s=1.0)
