"""The cipher seals to one place only, and the key ring refuses keys that protect nothing."""

import base64
import json
import os
import secrets
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from app.engines.cipher import (
    CANARY,
    KeyKeeper,
    KeyRing,
    KeyRingError,
    RecordKeys,
    ScopeKeys,
    SealBrokenError,
    derived,
    is_sample_key,
)

DEK = bytes.fromhex("1f8b08d7a2c44e9b0d6653f7e1ba902c5d8e7f60413a2b1c9d0e8f7a6b5c4d32")
KEYS = ScopeKeys(DEK, "acme", "talk", 1)


@given(st.binary(max_size=300), st.integers(1, 999_999_999))
def test_what_is_sealed_opens_at_its_place(payload: bytes, ordinal: int) -> None:
    assert KEYS.open("PERSON", ordinal, KEYS.seal("PERSON", ordinal, payload)) == payload


@pytest.mark.parametrize(
    ("tenant", "scope", "generation", "label", "ordinal"),
    [
        ("other", "talk", 1, "PERSON", 7),
        ("acme", "walk", 1, "PERSON", 7),
        ("acme", "talk", 2, "PERSON", 7),
        ("acme", "talk", 1, "EMAIL", 7),
        ("acme", "talk", 1, "PERSON", 8),
        ("acmet", "alk", 1, "PERSON", 7),
    ],
)
def test_a_swapped_ciphertext_does_not_decrypt(
    tenant: str, scope: str, generation: int, label: str, ordinal: int
) -> None:
    sealed = KEYS.seal("PERSON", 7, b"Ada")
    with pytest.raises(SealBrokenError):
        ScopeKeys(DEK, tenant, scope, generation).open(label, ordinal, sealed)


def test_a_changed_bit_anywhere_does_not_decrypt() -> None:
    sealed = KEYS.seal("PERSON", 7, b"Ada")
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(SealBrokenError):
            KEYS.open("PERSON", 7, bytes(changed))
    with pytest.raises(SealBrokenError):
        KEYS.open("PERSON", 7, b"")


def test_equal_values_in_two_scopes_have_unrelated_lookups() -> None:
    here = KEYS.lookup("PERSON", b"Ada", canonical=False)
    there = ScopeKeys(secrets.token_bytes(32), "acme", "walk", 1).lookup("PERSON", b"Ada", canonical=False)
    assert here != there
    assert here == KEYS.lookup("PERSON", b"Ada", canonical=False)
    assert here != KEYS.lookup("EMAIL", b"Ada", canonical=False)
    assert here != KEYS.lookup("PERSON", b"Ada", canonical=True)


def test_a_tag_is_bound_to_its_value() -> None:
    tags = {KEYS.tag("PERSON", 1, b"value %d" % number) for number in range(200)}
    assert len(tags) > 190
    assert all(len(tag) == 4 and set(tag) <= set("abcdefghijklmnopqrstuvwxyz234567") for tag in tags)
    assert KEYS.tag("PERSON", 1, b"Ada") == KEYS.tag("PERSON", 1, b"Ada")


def test_derivation_is_hkdf() -> None:
    reference = HKDF(SHA256(), 32, None, b"sluice entry\0acme").derive(DEK)
    assert derived(DEK, "sluice entry", b"acme") == reference


def test_the_record_keys_of_tenants_are_unrelated() -> None:
    keys = RecordKeys(DEK)
    assert keys.digest("acme", b"x") != keys.digest("other", b"x")
    sealed = keys.seal("acme", b"id", b"content")
    assert keys.open("acme", b"id", sealed) == b"content"
    for tenant, name in (("other", b"id"), ("acme", b"di")):
        with pytest.raises(SealBrokenError):
            keys.open(tenant, name, sealed)


def test_a_key_is_unwrapped_by_the_version_that_wrapped_it() -> None:
    ring = KeyRing({1: secrets.token_bytes(32), 2: secrets.token_bytes(32)}, 2)
    version, wrapped = ring.wrap(CANARY)
    assert (version, ring.unwrap(2, wrapped)) == (2, CANARY)
    with pytest.raises(KeyRingError, match="is not the key that wrapped this"):
        ring.unwrap(1, wrapped)
    with pytest.raises(KeyRingError, match="version 3 is not in the key ring"):
        ring.unwrap(3, wrapped)


@pytest.mark.parametrize(
    "key",
    [
        bytes(32),
        bytes(range(32)),
        b"change-me-change-me-change-me-ok",
        b"x" * 32,
        b"0123456789abcdefFEDCBA9876543210",
    ],
)
def test_sample_keys_are_refused(key: bytes) -> None:
    assert is_sample_key(key)
    with pytest.raises(KeyRingError, match="is a sample"):
        KeyRing({1: key}, 1)


def test_random_keys_are_no_samples() -> None:
    assert not any(is_sample_key(secrets.token_bytes(32)) for _ in range(2000))


@pytest.mark.parametrize(
    "text", ["", "1", "1:", "x:AAAA", "1:not base64", f"1:{base64.b64encode(bytes(31)).decode()}", "active=1"]
)
def test_a_malformed_ring_is_refused(text: str) -> None:
    with pytest.raises(KeyRingError):
        KeyRing.parse(text)


def test_the_highest_version_wraps_unless_another_is_named() -> None:
    one, two = (base64.b64encode(secrets.token_bytes(32)).decode() for _ in range(2))
    assert KeyRing.parse(f"1:{one}, 2:{two}").active == 2
    assert KeyRing.parse(f"1:{one},2:{two},active=1").active == 1


def test_a_ring_never_shows_its_keys() -> None:
    ring = KeyRing({1: DEK}, 1)
    assert DEK.hex() not in repr(ring)
    assert "keys" not in repr(ring)


def test_a_first_start_makes_one_ring_however_many_processes_start(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "keyring.json"
    rings: list[KeyRing] = []
    gate = threading.Barrier(8)

    def start() -> None:
        gate.wait()
        rings.append(KeyRing.create(path))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({ring.keys[1] for ring in rings}) == 1
    assert path.stat().st_mode & 0o777 == 0o400
    assert [entry.name for entry in path.parent.iterdir()] == ["keyring.json"]
    assert KeyRing.create(path) == rings[0]


def test_a_ring_file_open_to_others_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    KeyRing.create(path)
    path.chmod(0o600)
    KeyRing.load(path)
    path.chmod(0o640)
    with pytest.raises(KeyRingError, match="open to others"):
        KeyRing.load(path)


def test_a_ring_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keyring.json"
    KeyRing.create(path)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(KeyRingError, match="belongs to another user"):
        KeyRing.load(path)


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"active": 1, "keys": {"1": 5}}', '{"active": "x", "keys": {}}']
)
def test_a_damaged_ring_file_is_refused(tmp_path: Path, body: str) -> None:
    path = tmp_path / "keyring.json"
    path.write_text(body)
    path.chmod(0o400)
    with pytest.raises(KeyRingError, match="is damaged"):
        KeyRing.load(path)


def test_a_missing_ring_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyRingError, match="cannot be read"):
        KeyRing.load(tmp_path / "absent.json")


def test_a_ring_grows_activates_and_forgets_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    ring = KeyRing.create(path)
    grown = ring.with_new_version()
    assert (grown.versions, grown.active) == (frozenset({1, 2}), 1)
    grown.activated(2).save(path)
    assert KeyRing.load(path) == grown.activated(2)
    assert set(json.loads(path.read_text())["keys"]) == {"1", "2"}
    KeyRing.load(path).without(1).save(path)
    assert KeyRing.load(path).versions == frozenset({2})
    with pytest.raises(KeyRingError, match="no key of its active version"):
        ring.without(1)


def test_a_forgotten_scope_is_opened_anew() -> None:
    custodian = KeyKeeper(KeyRing({1: DEK}, 1))
    version, wrapped, _ = custodian.create("acme", "talk", 1)
    first = custodian.open("acme", "talk", 1, version, wrapped)
    assert custodian.open("acme", "talk", 1, version, wrapped) is first
    custodian.forget("acme", "talk")
    assert custodian.open("acme", "talk", 1, version, wrapped) is not first
