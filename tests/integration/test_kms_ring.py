"""A key ring that a key service opens, over HTTP as AWS KMS speaks it (moto's server)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session
from moto.server import ThreadedMotoServer
from typer.testing import CliRunner

from app.cli.vault.vault import commands
from app.custody_wiring import key_ring
from app.engines.cipher import CANARY, KeyRing, KeyRingError
from app.engines.custody.aws_kms import KmsCustodian
from app.engines.custody.sealed_ring import CustodianDownError, SealedRingFile, seal_ring
from app.settings import ConfigurationError, load
from tests.factories import random_ring


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "sluice",
        "AWS_SECRET_ACCESS_KEY": "n0t-a-real-s3cret",
        "SLUICE_KEYS__FILE": str(tmp_path / "keyring.json"),
    }.items():
        monkeypatch.setenv(name, value)
    yield get_session().create_client("kms")
    server.stop()


def key_of(kms: Any) -> str:
    return f"aws-kms:{kms.create_key()['KeyMetadata']['Arn']}"


def test_the_service_opens_the_ring_and_rotates(
    kms: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, first, second = tmp_path / "keyring.json", key_of(kms), key_of(kms)
    ring = KeyRing.create(path)
    monkeypatch.setenv("SLUICE_KEYS__CUSTODIAN", first)
    run = CliRunner().invoke
    assert run(commands, ["seal-ring"]).exit_code == 0
    assert json.loads(path.read_bytes())["custodian"] == first
    provider = key_ring(load())
    assert isinstance(provider, SealedRingFile)
    version, wrapped = provider.wrap(CANARY)
    assert KeyRing(ring.keys, 1).unwrap(version, wrapped) == CANARY
    # Another key of the service, and another key of the ring.
    monkeypatch.setenv("SLUICE_KEYS__CUSTODIAN", second)
    with pytest.raises(KeyRingError, match="is sealed by"):
        key_ring(load())
    assert run(commands, ["seal-ring"]).exit_code == 0
    assert run(commands, ["rotate-keys"]).exit_code == 0
    rotated = key_ring(load())
    assert (rotated.active, rotated.unwrap(version, wrapped)) == (2, CANARY)
    monkeypatch.delenv("SLUICE_KEYS__CUSTODIAN")
    with pytest.raises(ConfigurationError, match="is sealed"):
        key_ring(load())
    path.unlink()
    monkeypatch.setenv("SLUICE_KEYS__CUSTODIAN", first)
    with pytest.raises(ConfigurationError, match="no key ring"):
        key_ring(load())
    assert run(commands, ["new-ring"]).exit_code == 0
    assert key_ring(load()).versions == {1}


def test_an_outage_and_a_key_that_is_not_there_are_named(
    kms: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, custodian = tmp_path / "keyring.json", KmsCustodian(key_of(kms))
    seal_ring(path, random_ring(), custodian)
    provider = SealedRingFile(path, custodian, 0)
    version, wrapped = provider.wrap(CANARY)
    with pytest.raises(KeyRingError):
        custodian.open(b"not sealed by anybody")
    with monkeypatch.context() as away:
        away.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        provider.renew()
    with pytest.raises(CustodianDownError, match=r"does not answer \(EndpointConnectionError\)"):
        provider.wrap(CANARY)
    with pytest.raises(CustodianDownError):
        provider.unwrap(version, wrapped)
    provider.renew()
    assert provider.unwrap(version, wrapped) == CANARY
    with pytest.raises(CustodianDownError, match=r"refuses this \(NotFoundException\)"):
        KmsCustodian("aws-kms:0f1e2d3c-0000-4000-8000-000000000000").seal(b"x")


def test_a_ring_that_is_too_large_for_the_service_is_refused(kms: Any) -> None:
    with pytest.raises(KeyRingError, match="too many versions"):
        KmsCustodian(key_of(kms)).seal(b"x" * 4097)
