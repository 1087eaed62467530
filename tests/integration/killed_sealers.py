"""Processes that write and seal one record are killed at any moment, again and again; after each the log is verified.

    python -m tests.integration.killed_sealers URL FOLDER ROUNDS SEED

A program of its own, because it forks: each round costs the processes' work and not their imports. On PostgreSQL two
replicas write at once, one is killed while the other goes on, and is verified beside it. Prints one line of JSON.
FOLDER has the progress: a run that was interrupted goes on, up to ROUNDS in all.
"""

import asyncio
import ctypes
import gc
import json
import os
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Never

from sqlalchemy import text

from app.core.access import Caller
from app.core.audit import OUTCOME_OK
from app.engines.anchors.file import FileAnchor, checkpoints_in
from app.services.audit import sealer
from app.services.audit.anchoring import Anchoring
from app.services.audit.counts import AuditCounts
from app.services.audit.log_keys import LogKeyService
from app.services.audit.verification import LogVerifier
from app.store.database import Database
from app.store.locks import only_here
from tests.factories import PATIENT, with_schema
from tests.integration.access_setup import Replica, replica_on
from tests.integration.sealing import seal_all
from tests.integration.tampered_log import replace_text

WRITERS = 4
TENANTS = ("acme", "borealis", "cumulus")
_PARENT_DEATH_SIGNAL = 1
FRESH = 25
"""Rounds after which the record begins anew, so that verifying it stays short."""
_EMPTIED = (
    *("audit_event", "log_leaf", "log_tile", "log_head", "log_entry", "log_checkpoint", "log_writer"),
    *("log_count", "log_counted", "log_anchor"),
)


async def live(replica: Replica, kept: Path) -> None:
    """Write, seal, sign, count and anchor until killed; renew the key now and then."""
    chance, audit = random.Random(), replica.audit
    anchoring = Anchoring.over(replica.database, [FileAnchor(kept)], lambda: datetime.now(UTC))

    async def write() -> None:
        while True:
            callers = [
                Caller(chance.choice(TENANTS), "00000001", frozenset()) for _ in range(chance.randrange(1, 4))
            ]
            events = [audit.new_event(caller, "middleware.invoke", OUTCOME_OK, None) for caller in callers]
            await audit.record(*events)
            await asyncio.sleep(chance.uniform(0, 0.02))

    async def seal() -> None:
        while True:
            async with only_here(audit.database, "sluice job seal-audit") as mine:
                if mine:
                    await sealer.LogSealer.over(audit).seal()
                    await anchoring.run()
                    await AuditCounts(audit).count()
                    if chance.random() < 0.02:
                        await LogKeyService.over(audit).renew()
            await asyncio.sleep(chance.uniform(0, 0.02))

    async with asyncio.TaskGroup() as tasks:
        for work in (seal, *[write] * WRITERS):
            tasks.create_task(work())


async def verify(replica: Replica, kept: Path) -> dict[str, Any]:
    """Return what the verifier says, with the checkpoints that were kept before it began."""
    anchors = checkpoints_in(kept.read_text("utf-8")) if kept.exists() else []
    result = await LogVerifier(replica.audit, processes=1).verify(anchors=anchors)
    findings = [f"{made.kind} {made.tenant} {made.place}: {made.meaning}" for made in result.findings]
    numbers = {
        name: getattr(result, name) for name in ("events", "waiting", "unsigned", "checkpoints", "anchors")
    }
    return {"findings": findings, "keys": len(result.keys), **numbers}


async def tamper(replica: Replica, _kept: Path) -> None:
    """Change one sealed event: the control."""
    changed = "UPDATE audit_event SET actor = 'forged' WHERE id = (SELECT event FROM log_leaf LIMIT 1)"
    async with replica.database._engine.begin() as owner:
        await owner.execute(text(changed))


async def empty(replica: Replica, kept: Path) -> None:
    """Let the record begin anew, with an event that is sealed."""
    async with replica.database._engine.begin() as owner:
        for table in _EMPTIED:
            await owner.execute(text(f"DELETE FROM {table}"))  # noqa: S608 - our own names
        await owner.execute(text("DELETE FROM installation WHERE name = 'audit_log_sealed'"))
    kept.unlink(missing_ok=True)
    caller = Caller(TENANTS[0], "00000001", frozenset())
    await replica.audit.record(replica.audit.new_event(caller, "middleware.invoke", OUTCOME_OK, None))
    await seal_all(replica.audit)


Work = Callable[[Replica, Path], Awaitable[Any]]


def forked(url: str, kept: Path, work: Work) -> tuple[int, int]:
    """Start work in a process; return its id, and the end of a pipe on which it writes its result."""
    told, telling = os.pipe()
    process = os.fork()
    if not process:
        # Whoever cuts the run off leaves nobody behind who writes.
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        _run(url, kept, work, telling)
    os.close(telling)
    return process, told


def _run(url: str, kept: Path, work: Work, telling: int) -> Never:
    async def go() -> Any:
        async with Database(url, patience=PATIENT) as database, replica_on(database) as replica:
            return await work(replica, kept)

    code = 1
    with suppress(KeyboardInterrupt):
        os.write(telling, json.dumps(asyncio.run(go())).encode())
        code = 0
    os._exit(code)


def result_of(process: int, told: int) -> Any:
    """Wait for the end of work; return its result, or raise RuntimeError."""
    with os.fdopen(told, "rb") as pipe:
        said = pipe.read()
    if os.waitpid(process, 0)[1] != 0:
        raise RuntimeError("A process of the test failed.")
    return json.loads(said)


def kill(process: int, told: int) -> None:
    """Kill a process that must still live."""
    ended, _ = os.waitpid(process, os.WNOHANG)
    if ended:
        raise RuntimeError("A process ended before it was killed.")
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    os.close(told)


def main(url: str, folder: Path, rounds: int, seed: int) -> None:
    """Kill in ``rounds`` and verify in each, beside what goes on and once nothing does; then tamper, as a control."""
    kept, progress = folder / "kept.jsonl", folder / "killed.json"
    is_shared = url.startswith("postgresql")
    done: dict[str, Any] = {"rounds": 0, "verified": 0, "waiting": 0, "unsigned": 0, "findings": []}
    sums = dict.fromkeys(("events", "checkpoints", "anchors", "keys"), 0)
    if progress.exists():
        done, sums = json.loads(progress.read_text())

    def check() -> dict[str, Any]:
        said: dict[str, Any] = result_of(*forked(url, kept, verify))
        done["verified"] += 1
        done["findings"] += [f"round {done['rounds']}: {made}" for made in said["findings"]]
        return said

    begin = done["rounds"]
    for number in range(begin, rounds):
        chance = random.Random(f"{seed} {number}")
        # A run that goes on finds the record of one that was cut off, or the control of one that was done.
        if number % FRESH == 0 or number == begin:
            result_of(*forked(url, kept, empty))
        living = [forked(url, kept, live) for _ in range(1 + is_shared)]
        while living:
            time.sleep(chance.uniform(0.15, 0.75))
            kill(*living.pop(chance.randrange(len(living))))
            said = check()
        done["rounds"] += 1
        done["waiting"] += said["waiting"] > 0
        done["unsigned"] += said["unsigned"] > 0
        if number % FRESH == FRESH - 1 or number == rounds - 1:
            sums = {name: total + said[name] for name, total in sums.items()}
            print(json.dumps({**done, **sums}), file=sys.stderr, flush=True)
        replace_text(progress, json.dumps([done, sums]))
    result_of(*forked(url, kept, tamper))
    control = result_of(*forked(url, kept, verify))
    print(
        json.dumps({**done, **sums, "control": [made.partition(" ")[0] for made in control["findings"]]}),
        flush=True,
    )


if __name__ == "__main__":
    gc.freeze()
    sealer._MOST_BATCHES = 2  # sign often, although there is always more to seal
    main(with_schema(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
