"""A key ring whose file only a custodian opens: a hardware security module, or a key service.

The custodian opens the file at the start and every half minute. While it does not answer, keys that are open serve on
for a bounded time, and nothing new is wrapped.
"""

import base64
import json
import logging
import os
import secrets
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from app.engines.cipher import KeyRing, KeyRingError
from app.engines.ring_file import RingFile

CONTEXT: Final = b"sluice key ring, version 1"
"""What each sealed ring is bound to, so that nothing else that the same key has sealed passes for one."""

log = logging.getLogger("sluice.vault")


class CustodianDownError(KeyRingError):
    """The custodian gives no answer, or refuses this service; the message says why and holds no key."""


class RingCustodian(Protocol):
    """Seals and opens a few kilobytes with a key that stays where it is; calls may take seconds."""

    @property
    def name(self) -> str:
        """Return where the key is, without credentials."""
        ...

    def seal(self, content: bytes) -> bytes:
        """Return ``content`` sealed, bound to ``CONTEXT``; raises CustodianDownError."""
        ...

    def open(self, sealed: bytes) -> bytes:
        """Return what was sealed; raises CustodianDownError, or KeyRingError for what this key has not sealed."""
        ...


def is_sealed(path: Path) -> bool:
    """Return whether the file of a ring needs a custodian."""
    return sealed_by(path) is not None


def sealed_by(path: Path) -> str | None:
    """Return the custodian that a file of a ring names, None where it needs none or is not there."""
    try:
        read = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    name = read.get("custodian") if isinstance(read, dict) else None
    return name if isinstance(name, str) else None


def open_ring(path: Path, custodian: RingCustodian) -> KeyRing:
    """Return the ring in a sealed file, or raise KeyRingError."""
    try:
        read = json.loads(path.read_bytes())
        sealed_for, sealed = read["custodian"], base64.b64decode(read["sealed"], validate=True)
    except OSError as error:
        raise KeyRingError(f"The key ring {path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise KeyRingError(
            f"The key ring {path} is not sealed, or damaged: `sluice vault seal-ring` seals one."
        ) from None
    if sealed_for != custodian.name:
        raise KeyRingError(
            f"The key ring {path} is sealed by {sealed_for}, and SLUICE_KEYS__CUSTODIAN names {custodian.name}."
        )
    return KeyRing.parse(custodian.open(sealed).decode("ascii", "replace"))


def seal_ring(path: Path, ring: KeyRing, custodian: RingCustodian, *, replace: bool = True) -> None:
    """Write ``ring`` to ``path``, sealed, atomically; without ``replace`` only where there is no file."""
    keys = ",".join(
        f"{version}:{base64.b64encode(key).decode()}" for version, key in sorted(ring.keys.items())
    )
    sealed = custodian.seal(f"{keys},active={ring.active}".encode())
    body = {"custodian": custodian.name, "sealed": base64.b64encode(sealed).decode()}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o400)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(body, indent=1).encode())
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        else:
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)


class SealedRingFile(RingFile):
    """A ``RingFile`` that a custodian opens; ``outage_s`` is how long keys serve on while it does not answer."""

    def __init__(
        self,
        path: Path,
        custodian: RingCustodian,
        outage_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open: Callable[[], KeyRing] = partial(open_ring, path, custodian)
        super().__init__(path, self._open())
        self._outage_s, self._clock = outage_s, clock
        self._answered, self._fault = clock(), ""

    @property
    def silent_s(self) -> float:
        """Return for how many seconds the custodian has not answered, 0 while it does."""
        return self._clock() - self._answered if self._fault else 0.0

    def renew(self) -> None:
        """Ask the custodian to open the ring again, and note whether it does."""
        try:
            self._open()
        except CustodianDownError as error:
            if not self._fault:
                log.error("the custodian of the key ring does not answer: %s", error)  # noqa: TRY400 - no trace
            self._fault = str(error)
            return
        except KeyRingError:
            pass  # it answers; what is wrong with the file is told when the file is read
        if self._fault:
            log.info("the custodian of the key ring answers again")
        self._answered, self._fault = self._clock(), ""

    def wrap(self, key: bytes) -> tuple[int, bytes]:
        """Wrap a key; raises CustodianDownError while the custodian does not answer."""
        if self._fault:
            raise CustodianDownError(f"No new key is wrapped: {self._fault}")
        return super().wrap(key)

    def unwrap(self, version: int, wrapped: bytes) -> bytes:
        """Return the key; raises CustodianDownError once the custodian has not answered for too long."""
        if self.silent_s > self._outage_s:
            raise CustodianDownError(f"Keys are not opened any more: {self._fault}")
        return super().unwrap(version, wrapped)

    def _load(self) -> KeyRing:
        return self._open()
