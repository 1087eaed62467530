"""The keys that sign the audit log: made with the first checkpoint, sealed in the database, never shown."""

import base64
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.core.errors import ConflictError, InternalError
from app.core.transparency.notes import VerifierKey
from app.engines.cipher import RecordKeys, SealBrokenError
from app.engines.signing import SigningKey
from app.services.audit.audit import AuditService
from app.store.audit.log_keys import (
    StoredLogKey,
    StoredLogKeys,
    add_log_keys,
    find_log_keys,
    replace_log_keys,
)
from app.store.database import Database

_PURPOSE: Final = b"audit log key"
_INSTALLATION: Final = ""
"""The tenant under which the keys are sealed: none."""
_NAME_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class LogKeys:
    """The name of the log, the keys that ever signed it, oldest first, and the one that signs now."""

    origin: str
    public: tuple[VerifierKey, ...]
    signing: SigningKey


@dataclass(frozen=True, slots=True)
class LogKeyService:
    """Makes, opens and renews the keys of the audit log."""

    database: Database
    keys: RecordKeys
    now: Callable[[], datetime]

    @classmethod
    def over(cls, audit: AuditService) -> "LogKeyService":
        """Return the keys of a record's log."""
        return cls(audit.database, audit.keys, audit.now)

    async def open(self) -> LogKeys:
        """Return the keys, making the first one where there is none; raise InternalError if it cannot be decrypted."""
        stored = await self._stored()
        if stored is None:
            origin = f"sluice/{secrets.token_hex(_NAME_BYTES)}"
            first = StoredLogKeys(origin, (self._sealed(SigningKey.create(origin)),))
            async with self.database.system_transaction() as tx:
                await add_log_keys(tx, first)
            stored = await self._stored()
        if stored is None:
            raise InternalError("The keys of the audit log are not stored.")
        return LogKeys(stored.origin, public_keys(stored), self._signing(stored))

    async def public(self) -> Sequence[tuple[VerifierKey, datetime]]:
        """Return the keys that ever signed, oldest first, and when each was made; none before the first checkpoint."""
        stored = await self._stored()
        if stored is None:
            return []
        return [(VerifierKey.parse(key.public), key.created) for key in stored.keys]

    async def foreign(self) -> Sequence[VerifierKey]:
        """Return the keys that stand among the stored ones though this installation did not seal their private part."""
        stored = await self._stored()
        if stored is None:
            return []
        return [VerifierKey.parse(key.public) for key in stored.keys if not self._is_own(stored.origin, key)]

    async def renew(self) -> VerifierKey:
        """Add a key, which signs from the next checkpoint on; the earlier ones still verify theirs."""
        async with self.database.system_transaction() as tx:
            stored = await find_log_keys(tx)
            if stored is None:
                raise ConflictError(
                    "The audit log has no key yet: it gets its first with its first checkpoint."
                )
            key = SigningKey.create(stored.origin)
            await replace_log_keys(tx, StoredLogKeys(stored.origin, (*stored.keys, self._sealed(key))))
        return key.public

    async def _stored(self) -> StoredLogKeys | None:
        async with self.database.system_transaction(write=False) as tx:
            return await find_log_keys(tx)

    def _sealed(self, key: SigningKey) -> StoredLogKey:
        sealed = self.keys.seal(_INSTALLATION, _PURPOSE, base64.b64encode(key.seed))
        return StoredLogKey(str(key.public), sealed, self.now())

    def _is_own(self, origin: str, key: StoredLogKey) -> bool:
        try:
            seed = base64.b64decode(self.keys.open(_INSTALLATION, _PURPOSE, key.sealed))
            return str(SigningKey(origin, seed).public) == key.public
        except (SealBrokenError, ValueError):
            return False

    def _signing(self, stored: StoredLogKeys) -> SigningKey:
        try:
            seed = base64.b64decode(self.keys.open(_INSTALLATION, _PURPOSE, stored.keys[-1].sealed))
        except SealBrokenError:
            raise InternalError(
                "The key that signs the audit log cannot be decrypted: renew it with sluice audit key --renew."
            ) from None
        key = SigningKey(stored.origin, seed)
        if str(key.public) != stored.keys[-1].public:
            raise InternalError(
                "The key that signs the audit log is not the one that is shown as its public key."
            )
        return key


def public_keys(stored: StoredLogKeys) -> tuple[VerifierKey, ...]:
    """Return the keys that ever signed."""
    return tuple(VerifierKey.parse(key.public) for key in stored.keys)
