"""The mark in a bucket of S3: all hosts see it, and none lowers it, whoever writes at the same moment."""

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.places_wiring import mark_store
from app.services.vault.mark import DatabaseBehindError, MarkKeeper
from app.settings import ConfigurationError, Settings, VaultSettings
from app.store import migrate
from app.store.database import Database
from app.store.vault.mark_files import HighWater, MarkUnreadableError
from app.store.vault.mark_objects import MarkBucket
from tests.integration.s3_server import BUCKET, SECRET, serving_s3

LINE = "0011223344556677"


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with serving_s3() as environment:
        yield environment


@pytest.fixture
def location(server: dict[str, str], monkeypatch: pytest.MonkeyPatch, request: Any) -> str:
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{request.node.name}"


def mark(step: int, line: str = LINE, address: str = "postgresql:db:5432/sluice") -> HighWater:
    return HighWater(line, address, epoch=1, erasures=2, step=step)


def test_a_mark_only_rises_and_every_host_sees_it(location: str) -> None:
    here, there = MarkBucket(location), MarkBucket(location)
    assert here.find(LINE) is None
    assert here.find_at("postgresql:db:5432/sluice") is None
    assert here.raise_to(mark(3)) is None
    assert there.find(LINE) == mark(3)
    assert there.raise_to(mark(3)) == mark(3)
    assert there.raise_to(mark(2)) == mark(3), "a lower one is not stored"
    assert there.raise_to(mark(5)) is None
    assert here.raise_to(mark(8, line="ffeeddccbbaa9988")) is None
    assert here.raise_to(mark(99, line="0123456789abcdef", address="elsewhere")) is None
    assert here.find_at("postgresql:db:5432/sluice") == mark(8, line="ffeeddccbbaa9988")
    assert MarkBucket(location + "/other").find(LINE) is None


@pytest.mark.parametrize("stored", [None, 4])
def test_a_host_that_was_overtaken_between_reading_and_writing_does_not_lower_the_mark(
    location: str, monkeypatch: pytest.MonkeyPatch, stored: int | None
) -> None:
    slow, fast = MarkBucket(location), MarkBucket(location)
    if stored is not None:
        assert fast.raise_to(mark(stored)) is None
    read, overtaken = slow._read, []

    def overtaking(name: str) -> Any:
        found = read(name)
        if not overtaken:
            overtaken.append(fast.raise_to(mark(9)))
        return found

    monkeypatch.setattr(slow, "_read", overtaking)
    assert slow.raise_to(mark(7)) == mark(9)
    assert overtaken == [None]
    assert fast.find(LINE) == mark(9)


def test_of_many_writers_the_highest_remains(location: str) -> None:
    buckets = [MarkBucket(location) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda step: buckets[step % 4].raise_to(mark(step)), [5, 12, 3, 9, 11, 7, 12, 1]))
    assert buckets[0].find(LINE) == mark(12)


async def test_replicas_on_several_hosts_step_together_and_notice_a_restored_database(
    location: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/sluice.db"
    await asyncio.to_thread(migrate.upgrade, url)
    async with Database(url) as one, Database(url) as two:
        hosts = [MarkKeeper(database, MarkBucket(location), one.address) for database in (one, two)]
        for _ in range(3):
            for host in hosts:
                await host.step()
                await host.verify()
        standing = await hosts[0].verify()
        assert standing.mark is not None and standing.mark.step == 6
        MarkBucket(location).raise_to(mark(50, standing.mark.line, one.address))
        with pytest.raises(DatabaseBehindError, match="sluice vault replay-erasures"):
            await hosts[1].verify()
        elsewhere = MarkKeeper(two, MarkBucket(location + "/wrong"), one.address)
        with pytest.raises(DatabaseBehindError, match=f"not in {location}/wrong"):
            await elsewhere.verify()


def test_what_is_wrong_with_the_place_is_one_sentence_without_secrets(
    location: str, server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = MarkBucket("s3://no-such-bucket/x")
    with pytest.raises(
        MarkUnreadableError, match="s3://no-such-bucket/x cannot be read or written"
    ) as raised:
        missing.raise_to(mark(1))
    assert SECRET not in str(raised.value)
    body = httpx2.put(
        f"{server['AWS_ENDPOINT_URL']}/{location.removeprefix('s3://')}/mark-{LINE}.json",
        content=b"{",
        trust_env=False,
    )
    assert body.status_code == 200
    with pytest.raises(MarkUnreadableError, match="is damaged"):
        MarkBucket(location).find(LINE)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(MarkUnreadableError, match="check the bucket"):
        MarkBucket(location).find(LINE)


@pytest.mark.parametrize(
    "place", ["s3://", "s3://UPPER", "https://host/x", "s3://key:secret@bucket/x", "gs://bucket"]
)
def test_a_place_that_is_none_is_refused_without_repeating_it(place: str) -> None:
    with pytest.raises(ValueError, match="a folder or s3://bucket/folder") as raised:
        VaultSettings(mark=place)
    assert "secret" not in str(raised.value)


def test_without_the_extra_the_start_ends_with_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "app.store.vault.mark_objects")
    settings = Settings(vault=VaultSettings(mark="s3://marks/here"))
    with pytest.raises(ConfigurationError) as raised:
        mark_store(settings)
    (sentence,) = raised.value.faults
    assert sentence == (
        "SLUICE_VAULT__MARK names a place in S3, but the extra s3 is not installed: pip install 'sluice-mcp[s3]', "
        "or name a folder."
    )
