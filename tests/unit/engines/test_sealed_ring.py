"""A key ring that a custodian opens: what it is bound to, how it rotates, and how long it serves in an outage."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.engines.cipher import CANARY, KeyRing, KeyRingError
from app.engines.custody.sealed_ring import (
    CONTEXT,
    CustodianDownError,
    SealedRingFile,
    open_ring,
    seal_ring,
    sealed_by,
)
from tests.factories import random_ring


@dataclass
class Safe:
    """A custodian whose door may be shut."""

    name: str = "safe:1"
    shut: bool = False
    asked: int = 0
    key: AESGCM = field(default_factory=lambda: AESGCM(AESGCM.generate_key(256)))

    def seal(self, content: bytes) -> bytes:
        self._ask()
        return self.key.encrypt(b"n" * 12, content, CONTEXT)

    def open(self, sealed: bytes) -> bytes:
        self._ask()
        try:
            return self.key.decrypt(b"n" * 12, sealed, CONTEXT)
        except InvalidTag:
            raise KeyRingError("not sealed by this key") from None

    def _ask(self) -> None:
        self.asked += 1
        if self.shut:
            raise CustodianDownError("the door is shut")


def test_the_file_holds_no_key_and_opens_with_its_custodian_alone(tmp_path: Path) -> None:
    path, safe, ring = tmp_path / "keyring.json", Safe(), random_ring()
    seal_ring(path, ring, safe)
    assert (path.stat().st_mode & 0o777, sealed_by(path)) == (0o400, "safe:1")
    assert open_ring(path, safe) == ring
    with pytest.raises(KeyRingError, match="damaged"):
        KeyRing.load(path)
    with pytest.raises(KeyRingError, match="not sealed by this key"):
        open_ring(path, Safe())
    with pytest.raises(KeyRingError, match="is sealed by safe:1, and SLUICE_KEYS__CUSTODIAN names safe:2"):
        open_ring(path, Safe("safe:2", key=safe.key))
    changed = json.loads(path.read_bytes())
    changed["sealed"] = "A" + changed["sealed"][1:]
    path.unlink()
    path.write_text(json.dumps(changed))
    with pytest.raises(KeyRingError, match="not sealed by this key"):
        open_ring(path, safe)
    with pytest.raises(FileExistsError):
        seal_ring(path, ring, safe, replace=False)
    assert list(tmp_path.iterdir()) == [path]


def test_a_ring_that_lies_open_is_not_taken_for_a_sealed_one(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    KeyRing.create(path)
    assert sealed_by(path) is None
    with pytest.raises(KeyRingError, match="seal-ring"):
        open_ring(path, Safe())


def test_versions_come_and_go_while_it_serves(tmp_path: Path) -> None:
    path, safe, ring = tmp_path / "keyring.json", Safe(), random_ring()
    seal_ring(path, ring, safe)
    provider = SealedRingFile(path, safe, 60)
    version, wrapped = provider.wrap(CANARY)
    grown = ring.with_new_version().activated(2)
    seal_ring(path, grown, safe)
    changed = provider.changed()
    assert changed == grown
    provider.adopt(grown)
    assert (provider.active, provider.unwrap(version, wrapped)) == (2, CANARY)
    assert provider.changed() is None


def test_an_outage_is_bounded_and_begins_nothing(tmp_path: Path) -> None:
    path, safe, moment = tmp_path / "keyring.json", Safe(), [0.0]
    seal_ring(path, random_ring(), safe)
    provider = SealedRingFile(path, safe, 60, clock=lambda: moment[0])
    version, wrapped = provider.wrap(CANARY)
    provider.renew()
    asked, moment[0] = safe.asked, 10
    provider.wrap(CANARY)
    assert (provider.unwrap(version, wrapped), safe.asked, provider.silent_s) == (CANARY, asked, 0)
    safe.shut = True
    provider.renew()
    assert provider.silent_s == 10
    with pytest.raises(CustodianDownError, match="No new key is wrapped: the door is shut"):
        provider.wrap(CANARY)
    moment[0] = 60
    assert provider.unwrap(version, wrapped) == CANARY
    moment[0] = 61
    with pytest.raises(CustodianDownError, match="not opened any more"):
        provider.unwrap(version, wrapped)
    safe.shut = False
    provider.renew()
    assert (provider.wrap(CANARY)[0], provider.unwrap(version, wrapped), provider.silent_s) == (1, CANARY, 0)


def test_a_start_without_the_custodian_fails(tmp_path: Path) -> None:
    path, safe = tmp_path / "keyring.json", Safe()
    seal_ring(path, random_ring(), safe)
    safe.shut = True
    with pytest.raises(CustodianDownError, match="the door is shut"):
        SealedRingFile(path, safe, 60)
