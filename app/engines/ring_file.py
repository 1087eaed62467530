"""A key ring whose file is read again when it changes, so that keys rotate without a restart."""

from pathlib import Path

from app.engines.cipher import KeyRing, KeyRingError


class RingFile:
    """A ``KeyProvider`` that answers from the ring it read last; ``changed`` and ``adopt`` replace it."""

    def __init__(self, path: Path, ring: KeyRing) -> None:
        self._path = path
        self._ring = ring
        self._seen = self._looked = _stamp(path)

    @property
    def active(self) -> int:
        """Return the version that wraps new keys."""
        return self._ring.active

    @property
    def versions(self) -> frozenset[int]:
        """Return every version that can unwrap."""
        return self._ring.versions

    def wrap(self, key: bytes) -> tuple[int, bytes]:
        """Return the version and the wrapped form of ``key``."""
        return self._ring.wrap(key)

    def unwrap(self, version: int, wrapped: bytes) -> bytes:
        """Return the key; raises ``KeyRingError``."""
        return self._ring.unwrap(version, wrapped)

    def changed(self) -> KeyRing | None:
        """Return the ring in the file where the file changed since a ring was adopted or refused, else None.

        Raise ``KeyRingError`` where the file cannot be read or gives a version another key.
        """
        self._looked = _stamp(self._path)
        if self._looked == self._seen:
            return None
        ring = self._load()
        for version in sorted(ring.versions & self.versions):
            if ring.keys[version] != self._ring.keys[version]:
                raise KeyRingError(f"Key version {version} has another key than before.")
        return ring

    def adopt(self, ring: KeyRing) -> None:
        """Answer from ``ring``, which ``changed`` returned."""
        self._ring, self._seen = ring, self._looked

    def _load(self) -> KeyRing:
        return KeyRing.load(self._path)

    def refuse(self) -> None:
        """Stay with the ring in memory until the file changes again."""
        self._seen = self._looked


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
