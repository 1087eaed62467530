"""The keys that sign the audit log's checkpoints, as stored: public keys, and private ones as ciphertext."""

import base64
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.tables import installation

_ROW: Final = "audit_log_keys"


@dataclass(frozen=True, slots=True)
class StoredLogKey:
    """One key: its verifier key as text, its private part as ciphertext, and when it was made."""

    public: str
    sealed: bytes = field(repr=False)
    created: datetime


@dataclass(frozen=True, slots=True)
class StoredLogKeys:
    """The log's name, which no other installation has, and its keys; the last one signs."""

    origin: str
    keys: tuple[StoredLogKey, ...]


async def find_log_keys(tx: AsyncConnection) -> StoredLogKeys | None:
    """Return the keys, or None where the log has not begun."""
    query = select(installation.c.value).where(installation.c.name == _ROW)
    value = (await tx.execute(query)).scalar_one_or_none()
    if value is None:
        return None
    keys = (
        StoredLogKey(key["public"], base64.b64decode(key["sealed"]), datetime.fromisoformat(key["created"]))
        for key in value["keys"]
    )
    return StoredLogKeys(value["origin"], tuple(keys))


async def add_log_keys(tx: AsyncConnection, added: StoredLogKeys) -> bool:
    """Store the first keys; return False and change nothing where there are some."""
    return await insert_absent(tx, installation, {"name": _ROW, "value": _value(added)})


async def replace_log_keys(tx: AsyncConnection, changed: StoredLogKeys) -> None:
    """Store keys that include all earlier ones."""
    await tx.execute(update(installation).where(installation.c.name == _ROW).values(value=_value(changed)))


def _value(stored: StoredLogKeys) -> dict[str, Any]:
    keys = [
        {
            "public": key.public,
            "sealed": base64.b64encode(key.sealed).decode(),
            "created": key.created.isoformat(),
        }
        for key in stored.keys
    ]
    return {"origin": stored.origin, "keys": keys}
