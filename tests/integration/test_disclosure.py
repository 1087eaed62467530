"""Descriptions from files and from the database, and what is remembered of reads per caller, on both databases."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.catalog.primitives import DESCRIPTIONS_CHANGED, Primitive, PrimitiveKind
from app.core.contracts.policy import DisclosurePolicy, Limits, Policy
from app.core.errors import ConflictError, ForbiddenError, NotFoundError, RateLimitedError, TooLargeError
from app.core.events import Changed
from app.core.request import RequestInfo
from app.core.tools.disclosure import ToolDescription
from app.services.access.access import HOST
from app.services.access.traffic import Traffic
from app.services.catalog import descriptions
from app.services.catalog.description_files import MAX_FILE_BYTES, DescriptionFiles
from app.services.catalog.descriptions import DescriptionService
from app.services.catalog.disclosure import DisclosureService
from app.store.changes import EVERYTHING
from app.store.database import Database
from tests.integration.access_setup import Replica, replica_on

REQUEST = RequestInfo("request-1", None, None, 0)


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
async def operator(replica: Replica, tenant: str) -> Caller:
    await replica.tenants.create(HOST, tenant)
    return await replica.caller(tenant, Role.OPERATOR)


@pytest.fixture
def service(replica: Replica, tmp_path: Path, tenant: str) -> DescriptionService:
    return DescriptionService(
        replica.database, replica.audit, DescriptionFiles(tmp_path), tenant, interval_s=0.02
    )


def gate_on(replica: Replica, descriptions: DescriptionService) -> DisclosureService:
    reads = Traffic(clock=replica.clock.monotonic)
    return DisclosureService(replica.database, replica.audit, descriptions, replica.clock.now, reads)


def write(folder: Path, name: str, **members: Any) -> None:
    """Write a file as an editor does: whole, under another name, then in its place."""
    draft = folder / ".draft"
    draft.write_text(json.dumps(members))
    draft.replace(folder / name)


def tool(name: str = "s__get_data", digest: str = "d1") -> Primitive:
    definition = {"name": name, "description": "The server's own words.", "inputSchema": {"type": "object"}}
    return Primitive(PrimitiveKind.TOOL, "s", "get_data", name, definition, digest, short={}, staged=True)


async def test_what_is_stored_wins_over_the_file_member_by_member(
    service: DescriptionService, operator: Caller, tmp_path: Path
) -> None:
    write(tmp_path, "s__get_data.json", short="From the file.", description="Long, from the file.")
    async with service.watching():
        assert (await service.descriptions(operator.tenant))["s__get_data"].short == "From the file."
        put = await service.put(operator, "s__get_data", ToolDescription(short="Stored."))
        both = (await service.descriptions(operator.tenant))["s__get_data"]
        await service.remove(operator, "s__get_data")
        after = (await service.descriptions(operator.tenant))["s__get_data"]

    assert both == put.description == ToolDescription(short="Stored.", description="Long, from the file.")
    assert (put.origin, after.short) == ("api", "From the file.")


async def test_files_hold_for_one_tenant_alone(
    service: DescriptionService, replica: Replica, tmp_path: Path
) -> None:
    write(tmp_path, "s__get_data.json", short="From the file.")
    async with service.watching():
        assert await service.descriptions("another") == {}
        assert list(await service.descriptions(service.files_of)) == ["s__get_data"]


async def test_a_changed_file_is_read_again_and_told_in_this_process(
    service: DescriptionService, operator: Caller, tmp_path: Path
) -> None:
    told: list[Changed] = []
    heard = DescriptionService(
        *(service.database, service.audit, service.files, service.files_of, told.append), interval_s=0.02
    )
    files = DescriptionFiles(tmp_path)
    write(tmp_path, "s__get_data.json", short="First.")
    async with heard.watching():
        assert (await heard.descriptions(operator.tenant))["s__get_data"].short == "First."
        write(tmp_path, "s__get_data.json", short="Second, and longer.")
        await heard._scan()
        assert (await heard.descriptions(operator.tenant))["s__get_data"].short == "Second, and longer."
        (tmp_path / "s__get_data.json").unlink()
        await heard._scan()
        assert await heard.descriptions(operator.tenant) == {}
    assert told[:1] == [Changed(DESCRIPTIONS_CHANGED, operator.tenant)]
    assert not files.scan()


async def test_files_are_watched_again_and_again_also_after_a_scan_that_failed(
    service: DescriptionService, operator: Caller, tmp_path: Path
) -> None:
    class FailingFiles(DescriptionFiles):
        scans = 0

        def scan(self) -> bool:
            self.scans += 1
            if self.scans % 2 == 0:
                raise OSError("the folder is away for a moment")
            return super().scan()

    changes: asyncio.Queue[Changed] = asyncio.Queue()
    watching = DescriptionService(
        *(service.database, service.audit, FailingFiles(tmp_path), service.files_of, changes.put_nowait),
        interval_s=0.02,
    )
    async with watching.watching(), asyncio.timeout(20):
        for number in range(3):
            write(tmp_path, f"s__{number}.json", short="New.")
            assert await changes.get() == Changed(DESCRIPTIONS_CHANGED, operator.tenant)
            assert len(await watching.descriptions(operator.tenant)) == number + 1


def test_a_file_that_is_wrong_is_logged_by_name_and_reason_and_the_others_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = DescriptionFiles(tmp_path)
    write(tmp_path, "good.json", short="Good.")
    write(tmp_path, "half.json", short="Whole.")
    assert files.scan()
    (tmp_path / "half.json").write_text('{"short": "secret wo')
    write(tmp_path, "unknown.json", inputSchema={}, short="secret words")
    (tmp_path / "twice.json").write_text('{"short": "a", "short": "b"}')
    (tmp_path / "large.json").write_text(" " * (MAX_FILE_BYTES + 1))
    (tmp_path / "notes.txt").write_text("no description")
    (tmp_path / "folder.json").mkdir()
    with caplog.at_level(logging.WARNING, "sluice.descriptions"):
        files.scan()
        files.scan()

    assert {name: one.short for name, one in files.descriptions.items()} == {
        "good": "Good.",
        "half": "Whole.",
    }
    said = [record.getMessage() for record in caplog.records]
    assert sorted(line.split(" is not used")[0].rpartition(" ")[2] for line in said) == [
        *("half.json", "large.json", "twice.json", "unknown.json")
    ]
    assert "/inputSchema" in next(line for line in said if "unknown.json" in line)
    assert not any("secret" in line for line in said)


def test_a_file_that_is_mended_is_used(tmp_path: Path) -> None:
    files = DescriptionFiles(tmp_path)
    (tmp_path / "a.json").write_text("{")
    assert not files.scan()
    write(tmp_path, "a.json", short="Mended.")

    assert files.scan()
    assert files.descriptions["a"].short == "Mended."


def test_a_name_that_no_file_can_have_is_percent_encoded(tmp_path: Path) -> None:
    write(tmp_path, "s__a%2Fb.json", short="Slash.")
    files = DescriptionFiles(tmp_path)
    files.scan()

    assert list(files.descriptions) == ["s__a/b"]


def test_a_file_whose_name_is_no_text_is_passed_over(tmp_path: Path) -> None:
    for name in (b"a\xff.json", b"b%00.json", b"good.json"):
        (tmp_path / os.fsdecode(name)).write_text('{"short": "Some."}')
    files = DescriptionFiles(tmp_path)
    files.scan()

    assert list(files.descriptions) == ["good"]


def test_a_folder_that_goes_away_takes_nothing_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "descriptions"
    folder.mkdir()
    write(folder, "a.json", short="Here.")
    files = DescriptionFiles(folder)
    files.scan()
    folder.rename(tmp_path / "elsewhere")

    assert not files.scan()
    assert list(files.descriptions) == ["a"]


async def test_every_change_is_on_record_and_announced(
    service: DescriptionService, replica: Replica, operator: Caller
) -> None:
    await service.put(operator, "s__a", ToolDescription(short="Words of the operator."))
    await service.remove(operator, "s__a")
    with pytest.raises(NotFoundError):
        await service.remove(operator, "s__a")
    with pytest.raises(NotFoundError):
        await service.get(operator, "s__a")

    events = [
        (event.action, event.outcome, dict(event.details)) for event in await replica.events(operator.tenant)
    ]
    assert ("descriptions.put", "ok", {"name": "s__a", "members": "short", "bytes": 34}) in events
    assert ("descriptions.remove", "ok", {"name": "s__a"}) in events
    assert ("descriptions.remove", "refused", {}) in events
    assert "Words" not in repr(events)


async def test_a_change_elsewhere_is_forgotten_here(
    service: DescriptionService, replica: Replica, operator: Caller
) -> None:
    other = DescriptionService(replica.database, replica.audit)
    assert await service.descriptions(operator.tenant) == {}
    await other.put(operator, "s__a", ToolDescription(short="New."))
    for changed in (Changed("groups", operator.tenant), Changed(DESCRIPTIONS_CHANGED, "another")):
        service.changed(changed)
    assert service.memory.peek(operator.tenant) == {}
    for changed in (
        *(Changed(DESCRIPTIONS_CHANGED, operator.tenant), Changed(DESCRIPTIONS_CHANGED), Changed(EVERYTHING)),
    ):
        await service.descriptions(operator.tenant)
        service.changed(changed)
        assert service.memory.peek(operator.tenant) is None
    assert list(await service.descriptions(operator.tenant)) == ["s__a"]


async def test_only_operators_write_and_read_what_is_written(
    service: DescriptionService, replica: Replica, operator: Caller
) -> None:
    invoker = await replica.caller(operator.tenant, Role.INVOKER)
    for refused in (
        service.put(invoker, "a", ToolDescription()),
        service.remove(invoker, "a"),
        service.get(invoker, "a"),
        service.list(invoker),
    ):
        with pytest.raises(ForbiddenError):
            await refused


async def test_descriptions_are_bounded_in_size_and_number(
    service: DescriptionService, operator: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = ToolDescription(usage_guidance={"text": "x" * 70_000})
    with pytest.raises(TooLargeError):
        await service.put(operator, "a", large)
    monkeypatch.setattr(descriptions, "MAX_DESCRIPTIONS", 1)
    await service.put(operator, "a", ToolDescription(short="One."))
    with pytest.raises(ConflictError):
        await service.put(operator, "b", ToolDescription(short="Two."))
    await service.put(operator, "a", ToolDescription(short="One, again."))

    assert [one.name for one in (await service.list(operator)).items] == ["a"]


async def test_pages_hold_files_and_stored_descriptions_in_one_order(
    service: DescriptionService, operator: Caller, tmp_path: Path
) -> None:
    for name in ("b", "d"):
        write(tmp_path, f"{name}.json", short=f"File {name}.")
    async with service.watching():
        for name in ("a", "B", "d"):
            await service.put(operator, name, ToolDescription(description=f"Stored {name}."))
        first = await service.list(operator, limit=3)
        second = await service.list(operator, after=first.next, limit=3)

    assert [(one.name, one.origin) for one in first.items] == [("B", "api"), ("a", "api"), ("b", "file")]
    assert [(one.name, one.origin) for one in second.items] == [("d", "api")]
    assert (first.next, second.next) == ("b", None)
    assert second.items[0].description == ToolDescription(short="File d.", description="Stored d.")


async def test_a_tenant_sees_nothing_of_another(
    service: DescriptionService, replica: Replica, operator: Caller
) -> None:
    await replica.tenants.create(HOST, f"{operator.tenant}-b")
    other = await replica.caller(f"{operator.tenant}-b", Role.OPERATOR)
    await service.put(operator, "s__a", ToolDescription(short="Ours."))

    assert await service.descriptions(other.tenant) == {}
    assert (await service.list(other)).items == []
    with pytest.raises(NotFoundError):
        await service.remove(other, "s__a")


async def test_a_full_description_is_what_the_operator_wrote_over_the_servers_definition(
    service: DescriptionService, replica: Replica, operator: Caller
) -> None:
    await service.put(operator, "s__a", ToolDescription(description="The operator's words."))
    gate = gate_on(replica, service)

    found = await gate.described(
        operator, {"s__a": tool("s__a"), "s__b": tool("s__b")}, ["s__b", "none", "s__a"]
    )

    assert list(found) == ["s__b", "none", "s__a"]
    assert found["s__a"]["description"] == "The operator's words."
    assert found["s__b"]["description"] == "The server's own words."
    assert found["none"] == {"error": "Tool 'none' not found", "available_tools": ["s__a", "s__b"]}


async def test_an_entry_is_made_again_once_somebody_wrote_something_else(
    service: DescriptionService, replica: Replica, operator: Caller
) -> None:
    gate, tools = gate_on(replica, service), {f"s__{n}": tool(f"s__{n}") for n in range(40)}
    first = await gate.described(operator, tools, list(tools))
    await service.put(operator, "s__7", ToolDescription(description="Written meanwhile."))
    second = await gate.described(operator, tools, list(tools))

    assert {name for name in tools if first[name] is not second[name]} == {"s__7"}
    assert second["s__7"]["description"] == "Written meanwhile."


async def test_a_caller_is_known_by_the_definition_it_read_until_that_expires_or_changes(
    service: DescriptionService, replica: Replica, operator: Caller
) -> None:
    gate = gate_on(replica, service)
    policy = Policy(disclosure=DisclosurePolicy(without_handle="caller", caller_ttl_s=60))
    other = await replica.caller(operator.tenant, Role.OPERATOR)
    stranger = Caller(f"{operator.tenant}-b", operator.key_id, operator.roles)
    assert not await gate.knows(operator, tool())
    await gate.note(operator, {"s__get_data": "d1", "s__other": "d1"}, REQUEST, policy=policy)

    assert await gate.knows(operator, tool())
    assert not await gate.knows(operator, tool(digest="d2"))
    assert not await gate.knows(other, tool())
    assert not await gate.knows(stranger, tool())
    await gate.note(operator, {"s__get_data": "d2"}, REQUEST, policy=policy)
    assert await gate.knows(operator, tool(digest="d2"))
    assert not await gate.knows(operator, tool())
    replica.clock.advance(61)
    assert not await gate.knows(operator, tool(digest="d2"))
    assert await gate.purge_expired() >= 2
    assert not await gate.knows(operator, tool(digest="d2"))


async def test_a_read_that_authorizes_is_on_record_with_numbers_only(
    service: DescriptionService, replica: Replica, operator: Caller
) -> None:
    gate = gate_on(replica, service)
    await gate.note(operator, {"s__a": "d1", "s__b": "d2"}, REQUEST)

    (event,) = await replica.events(operator.tenant, action="disclosure.read")
    assert (event.outcome, dict(event.details)) == ("ok", {"tools": 2, "of": "session"})


async def test_reads_are_limited_for_each_caller_by_itself(
    service: DescriptionService, replica: Replica, operator: Caller
) -> None:
    gate = gate_on(replica, service)
    limits = Limits(description_reads_per_minute=3)
    for _ in range(3):
        gate.count(operator, limits)
    with pytest.raises(RateLimitedError) as refusal:
        gate.count(operator, limits)
    gate.count(await replica.caller(operator.tenant, Role.INVOKER), limits)
    gate.count(Caller("another", operator.key_id, operator.roles), limits)
    replica.clock.advance(20)
    gate.count(operator, limits)

    assert refusal.value.details == {"limit": "description_reads_per_minute", "value": 3}
    assert refusal.value.retry_after_s == pytest.approx(20)
