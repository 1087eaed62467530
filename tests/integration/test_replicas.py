"""What a read goes by when it chooses between primary and replica; tests/outside has a real replica."""

from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store import replicas
from app.store.database import Database
from app.store.replicas import Reads
from tests.factories import PATIENT
from tests.integration.posing import Posing

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


@pytest.fixture
async def primary(postgres_database_url: str) -> AsyncIterator[Database]:
    async with Database(postgres_database_url, patience=PATIENT) as database:
        yield database


async def place(tx: AsyncConnection) -> tuple[str, str]:
    statement = "SELECT current_database(), current_setting('app.tenant')"
    name, tenant = (await tx.execute(text(statement))).one()
    return name, tenant


@pytest.mark.parametrize("kind", ["nowhere", "another database", "a primary"])
async def test_what_is_no_replica_of_the_primary_is_not_read(
    primary: Database, postgres_database_url: str, postgres_url: str, kind: str
) -> None:
    urls = {"nowhere": NOWHERE, "another database": postgres_url, "a primary": postgres_database_url}
    async with Database(urls[kind], patience=PATIENT) as other, Reads(primary, other).running() as reads:
        assert not await reads.look()
        assert not reads.near
        assert await reads.mark() is None
        # Not even where a caller believes that it has something.
        for mark in (None, "0/1"):
            assert await reads.run("acme", mark, place) == (primary.url.database, "acme")


async def test_without_a_replica_the_primary_is_read(database: Database) -> None:
    async def one(tx: AsyncConnection) -> int:
        return int((await tx.execute(text("SELECT 1"))).scalar_one())

    async with Reads(database).running() as reads:
        assert not await reads.look()
        assert await reads.run("acme", await reads.mark(), one) == 1


@pytest.fixture
async def posing(own_postgres_url: str) -> Posing:
    return await Posing.on(own_postgres_url)


@pytest.fixture
async def reads(primary: Database, posing: Posing) -> AsyncIterator[Reads]:
    async with Database(posing.url, patience=PATIENT) as replica:
        yield Reads(primary, replica)


class Clock:
    """A clock that stands still, or goes on by ``step`` seconds each time it is looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds, self.step = 1000.0, 0.0
        monkeypatch.setattr(replicas, "time", SimpleNamespace(monotonic=self))

    def __call__(self) -> float:
        self.seconds += self.step
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def test_a_replica_that_has_everything_is_read(
    reads: Reads, posing: Posing, primary: Database, clock: Clock
) -> None:
    assert clock.step == 0
    assert await reads.mark() is None, "nobody has looked at it yet"
    assert await reads.run("acme", "0/0", place) == (primary.url.database, "acme")
    assert await reads.look()
    assert await reads.run("acme", await reads.mark(), place) == (posing.name, "acme")
    assert await reads.run("acme", None, place) == (primary.url.database, "acme"), (
        "who has no mark waits for none"
    )


@pytest.mark.parametrize("state", ["recovers = false", "system = system + 1"])
async def test_a_replica_that_was_promoted_or_follows_another_is_not_read(
    reads: Reads, posing: Posing, primary: Database, clock: Clock, state: str
) -> None:
    assert await reads.look()
    mark = await reads.mark()
    await posing.be(state)
    clock.step = 0.5
    assert not await reads.look()
    assert await reads.mark() is None
    assert await reads.run("acme", mark, place) == (primary.url.database, "acme")


async def test_a_promotion_counts_even_before_the_next_look(
    reads: Reads, posing: Posing, primary: Database, clock: Clock
) -> None:
    assert await reads.look()
    await posing.be("recovers = false")
    clock.step = 0.04
    assert await reads.run("acme", await reads.mark(), place) == (primary.url.database, "acme")


@pytest.mark.parametrize(("behind", "near"), [(0, True), (3, True), (5, False)])
async def test_a_replica_is_near_while_it_needs_at_most_two_seconds(
    reads: Reads, posing: Posing, clock: Clock, behind: int, near: bool
) -> None:
    await posing.be(f"behind = {behind}")
    clock.step = 0.5  # passes between two questions
    assert await reads.look() is near
    clock.step = 0
    assert reads.near is (near and behind == 0), "and two seconds count from when the look began"


async def test_a_look_counts_for_two_seconds(reads: Reads, clock: Clock) -> None:
    assert await reads.look()
    clock.seconds += 1.9
    assert reads.near
    clock.seconds += 0.2
    assert not reads.near
    assert await reads.mark() is None


async def test_a_read_waits_a_tenth_of_a_second_for_what_was_just_written(
    reads: Reads, posing: Posing, primary: Database, clock: Clock
) -> None:
    assert await reads.look()
    mark = await reads.mark()
    for behind, name in ((2, posing.name), (4, primary.url.database)):
        await posing.be(f"behind = {behind}")
        clock.step = 0.04
        assert await reads.run("acme", mark, place) == (name, "acme")
        clock.step = 0
        assert reads.near, "it is not far behind for all that"


async def test_what_fails_on_the_replica_is_read_from_the_primary_and_the_replica_is_left_alone(
    reads: Reads, posing: Posing, primary: Database, clock: Clock
) -> None:
    async def count(tx: AsyncConnection) -> str:
        await tx.execute(text("SELECT count(*) FROM audit_event"))
        return (await place(tx))[0]

    assert clock.step == 0
    assert await reads.look()
    await posing.run("DROP TABLE audit_event CASCADE")
    assert await reads.run("acme", await reads.mark(), count) == primary.url.database
    assert not reads.near
