"""A topic of Kafka gets each event as a message, a tenant's in their order, whatever its brokers answer."""

import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from app.engines.sinks import kafka
from app.engines.sinks.choosing import sink_of
from app.places_wiring import sinks
from app.services.audit.sinks import delivery
from app.services.audit.sinks.delivery import Delivery
from app.settings import AuditSettings, ConfigurationError, Settings
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import with_schema
from tests.integration.access_setup import Replica, replica_on
from tests.integration.certificates import self_signed
from tests.integration.kafka_cluster import Appended, Cluster, reading, running_cluster
from tests.integration.ocsf import faults
from tests.integration.sink_setup import TENANTS, Kept, record, record_large
from tests.integration.test_audit_anchors import context_of, syslog_server

SECRET = "canary-of-a-password"
MESSAGE_TOO_LARGE, NOT_ENOUGH_REPLICAS, TOPIC_AUTHORIZATION_FAILED, INVALID_RECORD = 10, 19, 29, 87


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[Replica]:
    url = with_schema(f"sqlite:///{tmp_path}/sluice.db")
    async with Database(url, patience=PATIENT) as database, replica_on(database) as running:
        yield running


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


async def in_order(replica: Replica) -> dict[str, list[str]]:
    """Return the lines of each tenant in the order of the log, as a sink gets them that never fails."""
    whole = Kept()
    await Delivery(replica.audit, whole).run()
    return by_tenant([line.decode() for line in whole.lines])


def by_tenant(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines of each tenant, each at its first place."""
    once = dict.fromkeys(lines)
    return {
        tenant: [line for line in once if json.loads(line)["metadata"]["tenant_uid"] == tenant]
        for tenant in TENANTS
    }


def lines_of(messages: Sequence[Appended]) -> list[str]:
    return [each.value.decode() for each in messages]


async def test_each_event_is_a_message_and_a_tenant_has_one_partition(
    replica: Replica, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "BATCH", 4)
    await record(replica, 9)
    await record_large(replica, "line\nbreak \0 \u2028 \ud800 " + "Mozilla/5.0 " * 5500)
    running = Delivery(replica.audit, sink_of(cluster.address))
    await running.run()
    await record(replica, 3)
    await running.run()
    with reading(cluster) as log:
        messages = log.read()
    assert len(messages) == 13
    assert running.failures == 0
    for tenant in TENANTS:
        assert len({each.partition for each in messages if each.key == tenant}) == 1
    for each in messages:
        document = json.loads(each.value)
        assert faults(document) == []
        assert document["metadata"]["tenant_uid"] == each.key
    assert by_tenant(lines_of(messages)) == await in_order(replica)


@pytest.mark.parametrize(
    ("error", "failures", "named"),
    [
        (NOT_ENOUGH_REPLICAS, 0, ""),
        (TOPIC_AUTHORIZATION_FAILED, 1, "do not take it: TOPIC_AUTHORIZATION_FAILED."),
        (MESSAGE_TOO_LARGE, 1, ""),
    ],
)
async def test_what_brokers_refuse_comes_again_whole_and_in_order(
    replica: Replica,
    cluster: Cluster,
    error: int,
    failures: int,
    named: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await record(replica, 9)
    running = Delivery(replica.audit, sink_of(cluster.address))
    cluster.fail(error)
    await running.run()
    await running.run()
    with reading(cluster) as log:
        messages = log.read()
    assert (running.failures, running.shortened) == (failures, 0)
    assert named in caplog.text
    assert by_tenant(lines_of(messages)) == await in_order(replica)


async def test_nothing_follows_a_message_that_was_refused_until_it_comes_again(
    replica: Replica, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A request for each message: the mock appends the next one, whose sequence a broker would refuse, not all."""
    singly = {"batch.num.messages": 1, "max.in.flight": 1}
    monkeypatch.setattr(kafka, "_GUARANTEES", {**kafka._GUARANTEES, **singly})
    uids = [await record_large(replica, "short") for _ in range(8)]
    running = Delivery(replica.audit, sink_of(cluster.address))
    cluster.fail(INVALID_RECORD)
    with reading(cluster) as log:
        await running.run()
        assert uids[-1] not in str(log.read())
        assert "do not take it: INVALID_RECORD." in caplog.text
        await running.run()
        assert [json.loads(line)["metadata"]["uid"] for line in lines_of(log.read())][-8:] == uids
    assert running.failures == 1


async def test_an_event_that_is_larger_than_a_message_may_be_goes_in_short(
    replica: Replica, cluster: Cluster
) -> None:
    await record(replica, 2)
    uid = await record_large(replica, "long words " * 100_000)
    await record(replica, 1)
    running = Delivery(replica.audit, sink_of(cluster.address))
    await running.run()
    with reading(cluster) as log:
        documents = [json.loads(line) for line in dict.fromkeys(lines_of(log.read()))]
    assert running.shortened == 1
    assert len(documents) == 4
    (short,) = [each for each in documents if "left_out" in each["unmapped"]]
    assert short["metadata"]["uid"] == uid


async def test_brokers_that_are_away_get_it_later(
    replica: Replica, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await record(replica, 3)
    running = Delivery(replica.audit, sink_of(cluster.address))
    cluster.go_down()
    with monkeypatch.context() as patch:
        patch.setattr(kafka, "_TIME_LIMIT_S", 0.3)
        await running.run()
    assert running.failures == 1
    assert "does not take events" in caplog.text
    cluster.come_up()
    await running.run()
    with reading(cluster) as log:
        assert by_tenant(lines_of(log.read())) == await in_order(replica)


async def test_a_server_of_another_authority_gets_nothing_and_no_credentials_are_told(
    replica: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kafka, "_TIME_LIMIT_S", 0.5)
    await record(replica, 2)
    config = tmp_path / "properties"
    (tmp_path / "other").mkdir()
    other = self_signed(tmp_path / "other")
    async with syslog_server(context_of(self_signed(tmp_path))) as (port, messages):
        address = f"kafka+tls://127.0.0.1:{port}/audit?ca={other}&config={config}"
        running = Delivery(replica.audit, sink_of(address))
        await running.run()
        assert "cannot be read: No such file" in caplog.text
        hints = {"sasl.pasword": "sasl.pasword", "sasl.mechanism": "ca= and the file that config= names"}
        for name, hint in hints.items():
            config.write_text(f"{name}={SECRET}")
            running._is_failing = False
            await running.run()
            assert caplog.messages[-1].endswith(f"is not understood: check {hint}.")
        config.write_text(
            f"# Credentials\n\nsasl.mechanism=PLAIN\nsasl.username=sluice\nsasl.password={SECRET}\n"
        )
        await running.run()
    assert (running.failures, messages) == (4, [])
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "address",
    [
        f"kafka+tls://user:{SECRET}@host:9093/topic",
        "kafka+tls://host:9093",
        "kafka+tls://host:9093/topic/other",
        "kafka+tls://host:9093/topic?broker=host2",
        "kafka://host:9092/topic?config=/run/secrets/kafka",
        "kafka+ssl://host/topic",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(ConfigurationError, match="SLUICE_AUDIT__SINKS: kafka") as refusal:
        sinks(Settings(audit=AuditSettings(sinks=(address,))))
    assert SECRET not in str(refusal.value)
    assert "kafka+tls://host:9093/topic" in str(refusal.value)


def test_an_address_names_brokers_by_host_and_port() -> None:
    address = "kafka+tls://[::1]/topic?broker=host2:9093&broker=host3:9094"
    assert sink_of(address).brokers == ["[::1]:9093", "host2:9093", "host3:9094"]
    assert sink_of("kafka://host/topic").name == "kafka host:9092/topic"


def test_without_the_extra_the_start_ends_with_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "app.engines.sinks.kafka")
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ConfigurationError) as refusal:
        sinks(Settings(audit=AuditSettings(sinks=("kafka://host/topic",))))
    (sentence,) = refusal.value.faults
    assert sentence == (
        "SLUICE_AUDIT__SINKS names a topic of Kafka, but the extra kafka is not installed: "
        "pip install 'sluice-mcp[kafka]', or name another place."
    )
