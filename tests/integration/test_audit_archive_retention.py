"""Where there is an archive, nothing is deleted that it does not have; the commands do it all on a host."""

import asyncio
import base64
import json
import re
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.cli.root import run
from app.cli.terminal import FAILED, OK, USAGE
from app.core.access import Caller, Role
from app.engines.archive.choosing import archive_at
from app.places_wiring import archive
from app.services import background
from app.services.audit import anchoring
from app.services.audit.archive.archiving import ArchiveService
from app.services.audit.audit import AuditQuery
from app.services.audit.retention import PurgedRecord, RetentionService
from app.services.audit.sinks.delivery import Outlets
from app.services.audit.verification import LogVerifier
from app.settings import ConfigurationError
from tests.factories import TEST_RING, with_schema
from tests.integration.archiving import DAY_S, Months, months_on, verified
from tests.integration.sealing import seal_all
from tests.integration.service import running_service


class Kept:
    """A tenant whose events are kept for ten days, in May: March's 13 events and April's 7 are due."""

    def __init__(self, months: Months, place: Path) -> None:
        self.months, self.place = months, place
        self.tenant = months.tenants[0]
        self.audit = months.replica.audit

    async def purged(self, *, archived: bool = True) -> tuple[int, bool]:
        """State what is due, seal it and delete; return how many events that were, and whether others wait."""
        place = archive_at(str(self.place)) if archived else None
        retention = RetentionService(self.audit, self.audit.now, archive=place)
        (first,) = await retention.purge(self.tenant)
        await seal_all(self.audit)
        (second,) = await retention.purge(self.tenant)
        self.months.replica.clock.advance(DAY_S)
        return first.deleted + second.deleted, first.waits


@pytest.fixture
async def kept(module_url: str, tmp_path: Path) -> AsyncIterator[Kept]:
    async with months_on(module_url) as months:
        await months.keep(months.tenants[0], audit_days=10)
        yield Kept(months, tmp_path)


async def test_what_is_not_archived_is_not_deleted(kept: Kept) -> None:
    assert await kept.purged() == (0, True)
    await kept.months.archive(kept.place, "2025-03", kept.tenant)
    assert await kept.purged() == (13, True)
    await kept.months.archive(kept.place, "2025-04", kept.tenant)
    assert await kept.purged() == (7, False)
    assert (await LogVerifier(kept.audit).verify(kept.tenant)).holds
    auditor = Caller(kept.tenant, "0000000c", frozenset({Role.AUDITOR}))
    query = AuditQuery(since=kept.months.began, action="middleware.invoke")
    assert len((await kept.audit.query(auditor, query)).items) == 2
    page = await kept.audit.query(auditor, query, archive=archive_at(str(kept.place)))
    assert {event.id for event in page.items} == {event.id for event in kept.months.events[kept.tenant]}


async def test_what_was_stated_before_there_was_an_archive_waits_for_it(kept: Kept) -> None:
    retention = RetentionService.over(kept.audit)
    assert await retention.purge(kept.tenant) == [PurgedRecord(kept.tenant, 0, 20)]
    await seal_all(kept.audit)
    await kept.months.archive(kept.place, "2025-03", kept.tenant)
    assert await kept.purged() == (0, True)
    await kept.months.archive(kept.place, "2025-04", kept.tenant)
    assert (await kept.purged())[0] == 20


async def test_an_archive_that_cannot_be_read_or_has_a_gap_keeps_everything(kept: Kept) -> None:
    await kept.months.archive(kept.place, tenant=kept.tenant)
    march, april = sorted((kept.place / kept.tenant).iterdir())
    whole = march.read_bytes()
    march.write_bytes(whole[:-20])
    assert await kept.purged() == (0, True)
    march.write_bytes(whole)
    april.rename(april.with_name("2025-05-001.parquet"))
    assert await kept.purged() == (0, True)
    april.with_name("2025-05-001.parquet").rename(april)
    march.unlink()
    # As if its first file had never been: what it has begins behind what is still stored.
    assert (await kept.purged())[1]
    march.write_bytes(whole)
    assert await kept.purged() == (20, False)


async def test_held_scopes_and_tenants_outlive_their_time_in_an_archive_too(kept: Kept) -> None:
    await kept.months.archive(kept.place, tenant=kept.tenant)
    await kept.months.keep(kept.tenant, audit_days=10, hold=True)
    assert await RetentionService(kept.audit, kept.audit.now).purge(kept.tenant) == []
    held = kept.months.events[kept.tenant][1].scope_ref
    await kept.months.keep(kept.tenant, audit_days=10, held_scopes=[held])
    assert await kept.purged() == (20 - 6 - 3, False)
    auditor = Caller(kept.tenant, "0000000c", frozenset({Role.AUDITOR}))
    page = await kept.audit.query(auditor, AuditQuery(since=kept.months.began, scope="odd"))
    assert len(page.items) == 6 + 3 + 1


async def test_a_service_writes_each_month_when_it_is_over(kept: Kept) -> None:
    archiving = Outlets.over(kept.audit, [], [], archive_at(str(kept.place))).archiving
    assert isinstance(archiving, ArchiveService)
    await archiving.keep_up()
    folder = kept.place / kept.tenant
    assert {path.name for path in folder.iterdir()} == {"2025-03-001.parquet", "2025-04-001.parquet"}
    kept.months.replica.clock.advance(30 * DAY_S)
    await archiving.keep_up()
    assert (folder / "2025-05-001.parquet").exists()


async def test_every_process_sees_how_far_the_archive_is_behind_and_when_it_failed(kept: Kept) -> None:
    clock, place = kept.months.replica.clock, archive_at(str(kept.place))
    writing, other = (Outlets.over(kept.audit, [], [], archive_at(str(kept.place))) for _ in range(2))
    assert writing.archiving is not None

    async def seen() -> tuple[float, float, list[str]]:
        await other.lag.look()
        # The events of the archive itself wait to be sealed.
        late = [name for name in other.lag.late() if name.startswith("archive ")]
        return other.lag.archiving_s, other.lag.archive_failed, late

    await writing.archiving.keep_up()
    assert await seen() == (0, 0, [])
    june = datetime(2025, 6, 1, 1, tzinfo=UTC)
    clock.advance((june - clock.now()).total_seconds() + 3600)
    # May is over since an hour, as far as an archive knows; a second more is late.
    assert await seen() == (3600, 0, [])
    clock.advance(1)
    assert await seen() == (3601, 0, [f"archive {place.name}"])
    april = kept.place / kept.tenant / "2025-04-001.parquet"
    whole = april.read_bytes()
    april.write_bytes(whole[:-20])
    again = Outlets.over(kept.audit, [], [], archive_at(str(kept.place))).archiving
    assert again is not None
    await again.keep_up()
    failed = clock.now().timestamp()
    assert await seen() == (3601, failed, [f"archive {place.name}"])
    april.write_bytes(whole)
    await again.keep_up()
    assert await seen() == (0, failed, [])


def test_a_running_service_warns_of_an_archive_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for every in ("_SEAL_S", "_PURGE_S"):
        monkeypatch.setattr(background, every, 0.05)
    monkeypatch.setattr(anchoring, "ARCHIVE_LATE_S", 0.1)
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "system").mkdir()
    (tmp_path / "archive" / "system" / "2025-04-001.parquet").write_bytes(b"no Parquet")
    with running_service(tmp_path, archive=str(tmp_path / "archive")) as service:
        until = time.monotonic() + 30
        while "warnings" not in (state := service.http.get("/readyz")).json():
            assert time.monotonic() < until
            time.sleep(0.05)
        assert (state.status_code, state.json()["warnings"]) == (200, ["archive folder archive"])
        # It may be late before its first attempt has failed.
        while not all(late := archive_metrics(service.http.get("/metrics").text)):
            assert time.monotonic() < until, late
            time.sleep(0.05)


def archive_metrics(metrics: str) -> list[bool]:
    """Return whether the archive lags, and whether an attempt has failed."""
    found = [
        re.search(rf"^sluice_audit_archive_{name} (.+)$", metrics, re.MULTILINE)
        for name in ("lag_seconds", "failed_timestamp_seconds")
    ]
    return [each is not None and float(each[1]) > 0.1 for each in found]


def test_settings_that_name_no_archive_stop_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: Any = SimpleNamespace(audit=SimpleNamespace(archive=None))
    assert archive(settings) is None
    settings.audit.archive = "ftp://host/folder"
    with pytest.raises(ConfigurationError) as raised:
        archive(settings)
    assert "SLUICE_AUDIT__ARCHIVE: ftp://… is no archive" in raised.value.faults[0]
    monkeypatch.delitem(sys.modules, "app.engines.archive.choosing")
    monkeypatch.setitem(sys.modules, "app.engines.archive.parquet", None)
    with pytest.raises(ConfigurationError) as raised:
        archive(settings)
    assert "pip install 'sluice-mcp[archive]'" in raised.value.faults[0]


def test_the_commands_archive_delete_find_and_prove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, place = with_schema(f"sqlite:///{tmp_path}/sluice.db"), tmp_path / "archive"

    async def prepare() -> tuple[str, str]:
        async with months_on(url) as months:
            await months.keep(months.tenants[0], audit_days=10)
            return months.tenants[0], months.began.isoformat()

    tenant, began = asyncio.run(prepare())
    key = base64.b64encode(TEST_RING.keys[1]).decode()
    monkeypatch.setenv("SLUICE_DATABASE__URL", url)
    monkeypatch.setenv("SLUICE_KEYS__RING", f"1:{key}")
    monkeypatch.setenv("SLUICE_AUDIT__ARCHIVE", str(place))
    for module in ("app.cli.host", "app.edge.logs"):
        monkeypatch.setattr(f"{module}.configure_logging", lambda *_: None)

    def said(*arguments: str, code: int = OK) -> tuple[list[str], str]:
        assert run(["audit", *arguments]) == code
        captured = capsys.readouterr()
        return captured.out.split("\n")[:-1], captured.err

    _, warned = said("purge", "--tenant", tenant)
    assert "wait: the archive does not have them yet" in warned
    assert "is not over yet" in said("archive", "--to", str(place), "--month", "2999-01", code=FAILED)[1]
    assert "is no archive" in said("archive", "--to", "ftp://host", code=USAGE)[1]
    lines, _ = said("archive", "--to", str(place), "--tenant", tenant, "--json")
    assert [json.loads(line)["month"] for line in lines] == ["2025-03", "2025-04", "2025-05"]
    assert "has every month" in said("archive", "--to", str(place), "--tenant", tenant)[1]
    rows, _ = said("query", "--tenant", tenant, "--since", began, "--archive", str(place), "--json")
    assert sum(json.loads(row)["action"] == "middleware.invoke" for row in rows) == 12 + 7 + 2
    (public,), _ = said("key")
    code, words = verified(tmp_path / "empty", place, public)
    assert (code, "PROVEN" in words) == (0, True), words
    next((place / tenant).iterdir()).write_bytes(b"")
    broken = ("query", "--tenant", tenant, "--since", began, "--archive", str(place))
    assert "of the archive cannot be read" in said(*broken, code=FAILED)[1]
