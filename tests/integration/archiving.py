"""Records of a hundred days ago with two closed months, and the archive's verifier in an empty folder."""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.contracts.policy import Policy
from app.engines.archive.choosing import archive_at
from app.services.access.access import HOST
from app.services.audit.archive.archiving import ArchiveRun, ArchiveService
from app.store.database import Database
from tests.conftest import PATIENT
from tests.integration.access_setup import Clock, Replica, replica_on
from tests.integration.sealing import seal_all

DEPLOY = Path(__file__).parents[2] / "deploy"
DAY_S = 24 * 3600.0


class Months:
    """Two tenants with events in three months, of which two are over."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.tenants = [f"{letter}-{uuid4().hex[:12]}" for letter in "ab"]
        self.began = replica.clock.now()
        self.events: dict[str, list[AuditEvent]] = {tenant: [] for tenant in self.tenants}

    async def record(self, month: int, counts: Sequence[int], **fields: Any) -> None:
        """Go to the 10th of a month of 2025, and record and seal as many events of each tenant."""
        clock = self.replica.clock
        clock.advance((datetime(2025, month, 10, 12, tzinfo=UTC) - clock.now()).total_seconds())
        for tenant, count in zip(self.tenants, counts, strict=True):
            events = [self.event(tenant, number, **fields) for number in range(count)]
            await self.replica.audit.record(*events)
            self.events[tenant] += events
        await seal_all(self.replica.audit)

    def event(self, tenant: str, number: int, **fields: Any) -> AuditEvent:
        caller = Caller(tenant, "0000000a", frozenset({Role.INVOKER, Role.AUDITOR}), end_user="Zoë")
        details = {
            "number": number,
            "é\u2028": '\u20ac \\ "',
            "client_request_id": f"request-of-client-{number}",
        }
        filled: dict[str, Any] = {
            "middleware": "pii_redaction",
            "counts": {"PERSON": number, "EMAIL": 2},
            "policy_version": number or None,
            "sealed": b"kept" if number == 1 else None,
            "engines": {"pii_redaction": "1.0"},
            "decision": "change",
            "scope_ref": self.replica.audit.scope_ref(tenant, ("even", "odd")[number % 2]),
            **fields,
        }
        made = self.replica.audit.new_event(
            caller, "middleware.invoke", OUTCOME_OK, None, details=details, **filled
        )
        self.replica.clock.advance(0.5)
        return made

    async def archive(
        self, place: Path | str, month: str | None = None, tenant: str | None = None
    ) -> ArchiveRun:
        return await ArchiveService(self.replica.audit, archive_at(str(place))).run(tenant, month)

    async def keep(self, tenant: str, **retention: Any) -> None:
        policy = Policy.model_validate({"retention": retention})
        await self.replica.policies.put(HOST, tenant, policy)


@asynccontextmanager
async def months_on(url: str) -> AsyncIterator[Months]:
    """Open a record of which two months are over: March with 12 and 4 events, April with 7 and 3."""
    database, clock = Database(url, patience=PATIENT), Clock()
    clock.advance((datetime(2025, 3, 1, tzinfo=UTC) - clock.now()).total_seconds())
    try:
        async with replica_on(database, clock) as replica:
            made = Months(replica)
            for tenant in made.tenants:
                await replica.tenants.create(HOST, tenant)
            await made.record(3, (12, 4))
            await made.record(4, (7, 3))
            await made.record(5, (2, 1))
            yield made
    finally:
        await database.close()


def verified(folder: Path, archive: Path, key: str) -> tuple[int, str]:
    """Return exit code and words of the verifier, run in a folder with nothing but itself."""
    folder.mkdir()
    for name in ("verify_audit.py", "verify_archive.py"):
        shutil.copy(DEPLOY / name, folder)
    command = [sys.executable, "-E", "verify_archive.py", str(archive), "--key", key]
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=50)
    return done.returncode, done.stdout + done.stderr
