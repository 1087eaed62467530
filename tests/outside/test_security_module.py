"""A key ring that a security module opens by PKCS#11: SoftHSM of Debian; its key never leaves it."""

import subprocess
from pathlib import Path

import pkcs11
import pytest

from app.custody_wiring import key_ring
from app.engines.cipher import CANARY, KeyRingError
from app.engines.custody.pkcs11 import Pkcs11Custodian
from app.engines.custody.sealed_ring import CustodianDownError, SealedRingFile, open_ring, seal_ring
from app.settings import load
from tests.factories import random_ring
from tests.outside.debian import program

pytestmark = [pytest.mark.outside, pytest.mark.needs("softhsm2-util")]

MODULE = "/usr/lib/softhsm/libsofthsm2.so"
PIN = "271828"


def uri(name: str = "ring") -> str:
    return f"pkcs11:token=sluice;object={name}?module-path={MODULE}"


@pytest.fixture(scope="module", autouse=True)
def token(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make a token with two keys. A process loads the module once, so that all tests share it."""
    folder = tmp_path_factory.mktemp("module")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder}/tokens\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))
        tool = program("softhsm2-util") or ""
        made = [tool, "--init-token", "--free", "--label", "sluice", "--so-pin", "31415926", "--pin", PIN]
        subprocess.run(made, check=True, capture_output=True)
        with pkcs11.lib(MODULE).get_token(token_label="sluice").open(user_pin=PIN, rw=True) as session:
            for label in ("ring", "other"):
                session.generate_key(pkcs11.KeyType.AES, 256, label=label, store=True)


def test_the_module_opens_the_ring_and_keeps_its_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, ring, custodian = tmp_path / "keyring.json", random_ring(), Pkcs11Custodian(uri(), PIN)
    seal_ring(path, ring, custodian)
    for name, value in {"FILE": str(path), "CUSTODIAN": uri(), "PIN": PIN}.items():
        monkeypatch.setenv(f"SLUICE_KEYS__{name}", value)
    provider = key_ring(load())
    version, wrapped = provider.wrap(CANARY)
    assert ring.unwrap(version, wrapped) == CANARY
    assert PIN not in path.read_text() and PIN not in repr(custodian) and PIN not in repr(load())
    with pkcs11.lib(MODULE).get_token(token_label="sluice").open(user_pin=PIN) as session:
        key = session.get_key(object_class=pkcs11.ObjectClass.SECRET_KEY, label="ring")
        assert key[pkcs11.Attribute.SENSITIVE] and not key[pkcs11.Attribute.EXTRACTABLE]
    grown = ring.with_new_version().activated(2)
    seal_ring(path, grown, custodian)
    assert isinstance(provider, SealedRingFile) and provider.changed() == grown


def test_another_key_a_changed_file_and_a_wrong_pin_open_nothing(tmp_path: Path) -> None:
    path, custodian = tmp_path / "keyring.json", Pkcs11Custodian(uri(), PIN)
    seal_ring(path, random_ring(), custodian)
    sealed = custodian.seal(b"content")
    assert custodian.open(sealed) == b"content"
    for wrong in (sealed[:-1] + bytes([sealed[-1] ^ 1]), sealed[:20], b""):
        with pytest.raises(KeyRingError):
            custodian.open(wrong)
    with pytest.raises(KeyRingError, match="not sealed by this key"):
        Pkcs11Custodian(uri("other"), PIN).open(sealed)
    with pytest.raises(CustodianDownError, match="refuses the PIN"):
        open_ring(path, Pkcs11Custodian(uri(), "000000"))
    with pytest.raises(CustodianDownError, match="does not help"):
        Pkcs11Custodian(uri("none"), PIN).seal(b"x")
