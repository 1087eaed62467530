"""Closed months become files that verify alone; whatever is changed in them, or moved, is named."""

import importlib
import json
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.cli.audit.archive import opened_archive
from app.cli.terminal import CommandError
from app.core.archive import ArchiveError, ArchiveSearch
from app.core.errors import InvalidArgumentsError
from app.core.transparency.hashing import leaf_hash
from app.engines.archive.bucket import ArchiveBucket
from app.engines.archive.choosing import archive_at
from app.engines.archive.folder import ArchiveFolder
from app.engines.signing import SigningKey
from app.services.audit.archive import archiving as module
from app.services.audit.retention import RetentionService
from tests.factories import as_owner
from tests.integration.archiving import DAY_S, DEPLOY, Months, months_on, verified
from tests.integration.s3_server import BUCKET, serving_s3
from tests.integration.sealing import seal_all
from tests.integration.test_audit_proofs import key_of

pytestmark = pytest.mark.in_turn("module_url")


@pytest.fixture
async def months(module_url: str) -> AsyncIterator[Months]:
    async with months_on(module_url) as made:
        yield made


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, str], tuple[list[str], list[str]]]:
    """Return the verifier as a function: the sentences about what is proven, and about what is not."""
    monkeypatch.syspath_prepend(str(DEPLOY))
    verifier = importlib.import_module("verify_archive")
    return lambda archive, key: verifier.verify(archive, [verifier.parse_key(key)])


def stored(archive: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(archive)): path.read_bytes() for path in archive.rglob("*") if path.is_file()
    }


def rewritten(
    path: Path,
    change: Callable[[list[dict[str, Any]]], object] = len,
    restate: Callable[[dict[str, Any]], object] = len,
    *,
    write_statistics: bool = False,
    column: str | None = None,
) -> None:
    """Write a file anew with other rows and another proof, as somebody would who can write Parquet."""
    table = pq.read_table(path)
    proof = json.loads(pq.read_metadata(path).metadata[b"sluice.archive"])
    rows = table.to_pylist()
    change(rows)
    restate(proof)
    schema = table.schema.append(pa.field(column, pa.string())) if column else table.schema
    with pq.ParquetWriter(path, schema, write_statistics=write_statistics) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
        writer.add_key_value_metadata({"sluice.archive": json.dumps(proof)})


async def test_closed_months_are_written_once_and_verify_alone(months: Months, tmp_path: Path) -> None:
    archive, (first, second) = tmp_path / "archive", months.tenants
    run = await months.archive(archive, tenant=first)
    assert [(part.tenant, part.month, part.events) for part in run.written] == [
        (first, "2025-03", 13),
        (first, "2025-04", 7),
    ]
    assert not (archive / second).exists()
    await months.archive(archive, tenant=second)
    files = stored(archive)
    names = ("2025-03-001.parquet", "2025-04-001.parquet")
    assert files.keys() == {f"{tenant}/{name}" for tenant in months.tenants for name in names}
    code, said = verified(tmp_path / "empty", archive, await key_of(months.replica))
    assert (code, said.count("PROVEN: "), said.count("NOT PROVEN")) == (0, 2, 0), said
    assert "20 events, the first 20 of the log, 2025-03 to 2025-04." in said
    await months.record(5, (2, 1))
    assert (await months.archive(archive, tenant=first)) == ([], {})
    assert stored(archive) == files


async def test_a_file_has_what_was_recorded_and_not_what_was_kept(months: Months, tmp_path: Path) -> None:
    await months.archive(tmp_path, "2025-03")
    rows = pq.read_table(tmp_path / months.tenants[0] / "2025-03-001.parquet").to_pylist()
    recorded = months.events[months.tenants[0]][:12]
    assert {(row["id"], row["at"], row["actor"]) for row in rows[1:]} == {
        (str(event.id), event.at, event.actor) for event in recorded
    }
    by_id = {row["id"]: row for row in rows}
    event = recorded[1]
    row = by_id[str(event.id)]
    assert dict(row["counts"]) == {"PERSON": 1, "EMAIL": 2}
    assert json.loads(row["details"]) == dict(event.details)
    assert (row["decision"], row["on_behalf_of"], row["roles"]) == (
        "change",
        event.on_behalf_of,
        ["auditor", "invoker"],
    )
    assert b"kept" not in (tmp_path / months.tenants[0] / "2025-03-001.parquet").read_bytes()
    assert len(row["sealed"]) == 64
    assert not (tmp_path / months.tenants[0] / "2025-04-001.parquet").exists()


async def test_a_month_that_is_not_over_is_refused(months: Months, tmp_path: Path) -> None:
    for month in ("2025-05", "2025-13", "May"):
        with pytest.raises(InvalidArgumentsError):
            await months.archive(tmp_path, month)
    # The 1st, a moment after midnight: whoever seals may not have stored yet what is of the month before.
    clock = months.replica.clock
    clock.advance((clock.moment.replace(month=6, day=1, hour=0, minute=1) - clock.moment).total_seconds())
    with pytest.raises(InvalidArgumentsError):
        await months.archive(tmp_path, "2025-05")
    clock.advance(DAY_S)
    await months.archive(tmp_path, "2025-05", months.tenants[0])
    assert (tmp_path / months.tenants[0] / "2025-05-001.parquet").exists()


def tampered(archive: Path, tenants: list[str]) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield what may be done to an archive, words of the finding, and how it is done."""
    first, other = (archive / tenant for tenant in tenants)
    march, april = first / "2025-03-001.parquet", first / "2025-04-001.parquet"

    def swap(one: Path, another: Path) -> None:
        kept = one.read_bytes()
        one.write_bytes(another.read_bytes())
        another.write_bytes(kept)

    def relabel(path: Path, **members: Any) -> None:
        rewritten(path, restate=lambda proof: proof.update(members))

    def change(**members: Any) -> Callable[[], object]:
        return lambda: rewritten(march, lambda rows: rows[3].update(members))

    def drop_last(proof: dict[str, Any]) -> None:
        proof.update(end=proof["end"] - 1, month_end=proof["end"] - 1)

    for name, value in {
        "outcome": "refused",
        "actor": "0000000b",
        "counts": [("PERSON", 1)],
        "roles": ["auditor"],
        "details": "{}",
        "policy_version": None,
        "decision": "allow",
        "versions": None,
        "writer_seq": 99,
        "sealed": "0" * 64,
        "v": 2,
    }.items():
        yield f"{name} changed", "2025-03-001.parquet", change(**{name: value})
    yield "row of another tenant", "of another tenant", change(tenant=other.name)
    yield "row removed", "position 4 is not where", lambda: rewritten(march, lambda rows: rows.pop(4))
    yield "last row removed", "12 rows", lambda: rewritten(march, lambda rows: rows.pop())
    yield (
        "last row removed, restated",
        "not what was sealed",
        lambda: rewritten(march, lambda rows: rows.pop(), drop_last),
    )
    yield (
        "row added",
        "14 rows",
        lambda: rewritten(march, lambda rows: rows.append({**rows[-1], "position": 13})),
    )
    yield "rows in another order", "is not where", lambda: rewritten(march, lambda rows: rows.reverse())

    def empty(rows: list[dict[str, Any]]) -> None:
        # The hash is the right one: whoever has the archive can compute it.
        at = (rows[4]["at"] - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
        leaf = importlib.import_module("verify_archive").canonical({**rows[4], "at": at})
        rows[4] = {"position": 4, "leaf": leaf_hash(leaf)}

    yield "row emptied", "no audit.purge says that the event at position 4", lambda: rewritten(march, empty)
    yield "times restated", "times and ids", lambda: relabel(march, times=[0, 1])
    yield "ids restated", "times and ids", lambda: relabel(march, ids=["0", "1"])
    yield "months swapped", "in another's place", lambda: swap(march, april)
    yield "tenants swapped", "in another's place", lambda: swap(march, other / march.name)
    yield (
        "tenants swapped, relabelled",
        "another tenant or size",
        lambda: (
            swap(march, other / march.name),
            relabel(march, tenant=first.name),
        ),
    )
    yield (
        "months swapped, relabelled",
        "begins at position 13",
        lambda: (
            swap(march, april),
            relabel(march, month="2025-03"),
            relabel(april, month="2025-04"),
        ),
    )
    yield "first month removed", "begins at position 13", march.unlink
    yield "middle month removed", "a file is missing", april.unlink
    yield "cut off", "cannot be read", lambda: march.write_bytes(march.read_bytes()[:-100])
    yield "emptied", "cannot be read", lambda: march.write_bytes(b"")
    yield "statistics added", "has statistics", lambda: rewritten(march, write_statistics=True)
    yield "column added", "cannot be read", lambda: rewritten(march, column="more")
    yield "head of another time", "another tenant or size", lambda: relabel(march, size=13)


async def test_whatever_is_done_to_an_archive_is_named(
    months: Months, tmp_path: Path, verify: Callable[[Path, str], tuple[list[str], list[str]]]
) -> None:
    whole, key = tmp_path / "whole", await key_of(months.replica)
    months.replica.clock.advance(30 * DAY_S)
    for tenant in months.tenants:
        await months.archive(whole, tenant=tenant)
    proven, refused = verify(whole, key)
    assert (len(proven), refused) == (2, [])
    assert verify(whole, str(SigningKey.create("sluice/other").public))[1]
    for number, (name, _, _) in enumerate([*tampered(whole, months.tenants)]):
        archive = tmp_path / f"{number}"
        shutil.copytree(whole, archive)
        _, words, tamper = [*tampered(archive, months.tenants)][number]
        tamper()
        proven, refused = verify(archive, key)
        assert any(words in sentence and months.tenants[0] in sentence for sentence in refused), (
            name,
            proven,
            refused,
        )


async def test_a_large_month_has_parts_and_goes_on_where_it_was_interrupted(
    months: Months,
    tmp_path: Path,
    verify: Callable[[Path, str], tuple[list[str], list[str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PART", 5)
    monkeypatch.setattr(module, "_PAGE", 2)
    tenant, key = months.tenants[0], await key_of(months.replica)
    keep = ArchiveFolder.keep

    def interrupted(place: ArchiveFolder, tenant: str, name: str, file: Path) -> None:
        if "002" in name:
            raise ArchiveError("The disk is full.")
        keep(place, tenant, name, file)

    with monkeypatch.context() as patch:
        patch.setattr(ArchiveFolder, "keep", interrupted)
        run = await months.archive(tmp_path, tenant=tenant)
    assert ([part.events for part in run.written], run.failures) == ([5], {tenant: "The disk is full."})
    assert [path.name for path in (tmp_path / tenant).iterdir()] == ["2025-03-001.parquet"]
    assert verify(tmp_path, key) == (
        [
            f"{tmp_path / tenant}: 5 events, the first 5 of the log, 2025-03 to 2025-03; 2025-03 is not whole yet."
        ],
        [],
    )
    run = await months.archive(tmp_path, tenant=tenant)
    assert [(part.month, part.part, part.events) for part in run.written] == [
        ("2025-03", 2, 5),
        ("2025-03", 3, 3),
        ("2025-04", 1, 5),
        ("2025-04", 2, 2),
    ]
    proven, refused = verify(tmp_path, key)
    assert (refused, "20 events" in proven[0], "not whole" in proven[0]) == ([], True, False)
    (tmp_path / tenant / "2025-03-002.parquet").unlink()
    assert "a file is missing" in verify(tmp_path, key)[1][0]


async def test_nothing_that_is_there_is_replaced(months: Months, tmp_path: Path) -> None:
    tenant = months.tenants[0]
    await months.archive(tmp_path, "2025-03", tenant)
    place, name = ArchiveFolder(tmp_path), "2025-03-001.parquet"
    before = stored(tmp_path)
    other = tmp_path / "other"
    other.write_bytes(b"other")
    with pytest.raises(ArchiveError, match="replaces nothing"):
        place.keep(tenant, name, other)
    other.unlink()
    assert stored(tmp_path) == before


async def test_what_does_not_verify_is_not_archived(months: Months, tmp_path: Path) -> None:
    changed, deleted = months.tenants
    database = months.replica.database
    await as_owner(
        database,
        "UPDATE audit_event SET outcome = 'failed' WHERE tenant = :tenant AND policy_version = 3",
        tenant=changed,
    )
    await as_owner(
        database, "DELETE FROM audit_event WHERE tenant = :tenant AND policy_version = 3", tenant=deleted
    )
    for tenant, words in {changed: "is not what was sealed", deleted: "is missing"}.items():
        run = await months.archive(tmp_path, tenant=tenant)
        assert (run.written, words in run.failures[tenant]) == ([], True)
    assert stored(tmp_path) == {}


async def test_an_archive_of_another_log_is_not_continued(months: Months, tmp_path: Path) -> None:
    tenant = months.tenants[0]
    await months.archive(tmp_path, "2025-03", tenant)
    march = tmp_path / tenant / "2025-03-001.parquet"

    def of_another(proof: dict[str, Any]) -> None:
        proof["checkpoint"] = "sluice/other" + proof["checkpoint"][proof["checkpoint"].index("\n") :]

    kept = march.read_bytes()
    rewritten(march, restate=of_another)
    assert "sluice/other" in (await months.archive(tmp_path, tenant=tenant)).failures[tenant]
    march.write_bytes(kept)
    rewritten(march, restate=lambda proof: proof.update(end=1000, month_end=1000))
    assert "set back" in (await months.archive(tmp_path, tenant=tenant)).failures[tenant]


async def test_what_was_deleted_before_is_named_by_the_log_itself(
    months: Months, tmp_path: Path, verify: Callable[[Path, str], tuple[list[str], list[str]]]
) -> None:
    tenant, key = months.tenants[0], await key_of(months.replica)
    held = months.events[tenant][0].scope_ref
    await months.keep(tenant, audit_days=30, held_scopes=[held])
    retention = RetentionService.over(months.replica.audit)
    await retention.purge(tenant)
    await seal_all(months.replica.audit)
    (record,) = await retention.purge(tenant)
    assert record.deleted == 1 + 6  # when the tenant was made, and every other one of March
    months.replica.clock.advance(DAY_S)
    run = await months.archive(tmp_path, tenant=tenant)
    assert run.failures == {}
    proven, refused = verify(tmp_path, key)
    assert (refused, "13 events" in proven[0], "; 7 were deleted before" in proven[0]) == ([], True, True)
    march = tmp_path / tenant / "2025-03-001.parquet"
    rewritten(march, restate=lambda proof: proof.pop("statement"))
    assert "no audit.purge" in verify(tmp_path, key)[1][0]


async def test_a_bucket_keeps_what_a_folder_keeps(
    months: Months, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, address = months.tenants[0], f"s3://{BUCKET}/archive"
    with serving_s3() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        run = await months.archive(address, "2025-03", tenant)
        assert (len(run.written), run.failures) == (1, {})
        place = archive_at(address)
        (part,) = await place.parts(tenant)
        assert (part.part.end, part.part.name) == (13, "2025-03-001.parquet")
        with pytest.raises(ArchiveError, match="replaces nothing"):
            ArchiveBucket(address).keep(tenant, part.part.name, Path(__file__))
        run = await months.archive(address, tenant=tenant)
        assert ([part.month for part in run.written], run.failures) == (["2025-04"], {})
        found = await place.find(
            part.part, ArchiveSearch({"scope_ref": months.events[tenant][3].scope_ref or ""}, 1)
        )
        assert [event.details["number"] for event in found] == [11]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "")
    run = await months.archive(address, tenant=tenant)
    assert "does not answer as asked" in run.failures[tenant]


def test_a_place_that_is_none_is_named() -> None:
    secret = "s3://user:s3cret@bucket/folder"
    for address in (
        "",
        " ",
        "ftp://host/folder",
        "s3://",
        "file://host/folder",
        secret,
        "s3://bucket/f?s3cret",
    ):
        with pytest.raises(ValueError, match="is no a") as raised:
            archive_at(address)
        assert "s3cret" not in str(raised.value)


async def test_a_month_may_have_more_than_a_thousand_parts(months: Months, tmp_path: Path) -> None:
    tenant = months.tenants[0]
    await months.archive(tmp_path, "2025-03", tenant)
    march = tmp_path / tenant / "2025-03-001.parquet"
    for number in (999, 1000):
        copy = march.with_name(f"2025-03-{number}.parquet")
        shutil.copy(march, copy)
        rewritten(copy, restate=lambda proof, number=number: proof.update(number=number))
    last = await archive_at(str(tmp_path)).last(tenant)
    assert last is not None
    assert last.part.name == "2025-03-1000.parquet"


def test_without_the_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "app.engines.archive.choosing")
    monkeypatch.delitem(sys.modules, "app.engines.archive.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CommandError, match=r"pip install 'sluice-mcp\[archive\]'"):
        opened_archive("/folder", "--to")
