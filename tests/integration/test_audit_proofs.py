"""A file of proofs verifies in an empty folder, without the service; whatever is changed in it is refused."""

import base64
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.errors import ForbiddenError, InvalidArgumentsError, NotFoundError
from app.core.transparency.notes import COSIGNATURE, Checkpoint, Note, VerifierKey, cosigned
from app.engines.signing import SigningKey
from app.services.audit.log_access import AuditLogService
from app.services.audit.sealer import LogSealer
from app.store.audit.log import list_leaves
from app.store.database import Database
from tests.factories import as_owner
from tests.integration.access_setup import Replica, replica_on
from tests.integration.sealing import seal_all

pytestmark = pytest.mark.in_turn("database_url")

VERIFIER = Path(__file__).parents[2] / "deploy/verify_audit.py"


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
def auditor(tenant: str) -> Caller:
    return Caller(tenant, "00000001", frozenset({Role.AUDITOR}))


async def sealed(replica: Replica, caller: Caller, count: int) -> list[AuditEvent]:
    events = [
        replica.audit.new_event(
            caller, "middleware.invoke", OUTCOME_OK, None, details={"number": number, "é": "\u2028"}
        )
        for number in range(count)
    ]
    await replica.audit.record(*events)
    await seal_all(replica.audit)
    return events


async def key_of(replica: Replica) -> str:
    caller = Caller(SYSTEM_TENANT, "cli", frozenset(Role))
    return str((await AuditLogService(replica.audit).keys(caller))[-1][0])


async def proofs(replica: Replica, caller: Caller, *events: Any, **options: Any) -> list[dict[str, Any]]:
    pieces = await AuditLogService(replica.audit).prove(caller, caller.tenant, events or None, **options)
    return [json.loads(piece) async for piece in pieces]


def verified(folder: Path, lines: list[dict[str, Any]], *keys: str) -> tuple[int, str]:
    """Return the exit code and the words of the verifier, run in a folder with nothing but itself and the file."""
    folder.mkdir(exist_ok=True)
    (folder / "verify_audit.py").write_bytes(VERIFIER.read_bytes())
    (folder / "proofs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    command = [sys.executable, "-I", "verify_audit.py", "proofs.jsonl"]
    command += [part for key in keys for part in ("--key", key)]
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


async def test_all_events_of_a_tenant_are_proven(replica: Replica, auditor: Caller, tmp_path: Path) -> None:
    await sealed(replica, auditor, 300)
    lines = await proofs(replica, auditor)
    assert len(lines) == 301
    assert [line["position"] for line in lines[1:]] == list(range(300))
    code, said = verified(tmp_path, lines, await key_of(replica))
    assert (code, "PROVEN: 300 events" in said, "all of them" in said) == (0, True, True)


async def test_one_event_is_proven_alone(replica: Replica, auditor: Caller, tmp_path: Path) -> None:
    events = await sealed(replica, auditor, 20)
    lines = await proofs(replica, auditor, events[7].id)
    assert json.loads(lines[1]["event"])["id"] == events[7].id.hex
    code, said = verified(tmp_path, lines, await key_of(replica))
    assert (code, "1 events" in said, "not all of them" in said) == (0, True, True)


async def test_events_of_a_time_are_proven(replica: Replica, auditor: Caller) -> None:
    events = await sealed(replica, auditor, 5)
    since, until = events[0].at, events[-1].at + timedelta(seconds=1)
    assert len(await proofs(replica, auditor, since=since, until=until)) == 6
    assert len(await proofs(replica, auditor, since=until)) == 1
    assert len(await proofs(replica, auditor, until=since)) == 1


def event_changed(lines: list[dict[str, Any]]) -> None:
    lines[3]["event"] = lines[3]["event"].replace('"outcome":"ok"', '"outcome":"no"')


def events_swapped(lines: list[dict[str, Any]]) -> None:
    lines[2]["event"], lines[3]["event"] = lines[3]["event"], lines[2]["event"]


def lines_swapped(lines: list[dict[str, Any]]) -> None:
    lines[2], lines[3] = lines[3], lines[2]


def event_twice(lines: list[dict[str, Any]]) -> None:
    lines.insert(3, lines[2])


def proof_shortened(lines: list[dict[str, Any]]) -> None:
    lines[2]["proof"].pop()


def proof_lengthened(lines: list[dict[str, Any]]) -> None:
    lines[2]["proof"].append(lines[2]["proof"][0])


def head_of_another_size(lines: list[dict[str, Any]]) -> None:
    lines[0]["size"] -= 1


def head_changed(lines: list[dict[str, Any]]) -> None:
    entry = bytes.fromhex(lines[0]["entry"])
    lines[0]["entry"] = entry.replace(b'"size":9', b'"size":8').hex()
    lines[0]["size"] = 8


def checkpoint_changed(lines: list[dict[str, Any]]) -> None:
    origin, size, *rest = lines[0]["checkpoint"].split("\n")
    lines[0]["checkpoint"] = "\n".join([origin, str(int(size) + 1), *rest])


def signed_by_another(lines: list[dict[str, Any]]) -> None:
    note = Note.parse(lines[0]["checkpoint"])
    lines[0]["checkpoint"] = str(SigningKey.create(note.signatures[0].name).signed(note.text))


@pytest.mark.parametrize(
    "tamper",
    [
        *(event_changed, events_swapped, lines_swapped, event_twice, proof_shortened, proof_lengthened),
        *(head_of_another_size, head_changed, checkpoint_changed, signed_by_another),
    ],
    ids=lambda tamper: tamper.__name__,
)
async def test_what_is_changed_is_not_proven(
    replica: Replica, auditor: Caller, tmp_path: Path, tamper: Callable[[list[dict[str, Any]]], None]
) -> None:
    await sealed(replica, auditor, 9)
    lines = await proofs(replica, auditor)
    tamper(lines)
    code, said = verified(tmp_path, lines, await key_of(replica))
    assert (code, said.startswith("NOT PROVEN: ")) == (1, True), said


async def test_what_the_sealer_says_was_changed_is_not_proven(
    replica: Replica, auditor: Caller, tmp_path: Path
) -> None:
    events = await sealed(replica, auditor, 2)
    late = replica.audit.new_event(auditor, "middleware.invoke", OUTCOME_OK, None)
    await replica.audit.record(late)
    await as_owner(
        replica.database,
        "UPDATE audit_event SET mac = leaf WHERE tenant = :t AND writer_seq = 3",
        t=auditor.tenant,
    )
    await seal_all(replica.audit)
    await seal_all(replica.audit)
    key = await key_of(replica)
    code, said = verified(tmp_path, await proofs(replica, auditor), key)
    assert (code, "audit.altered" in said) == (1, True), said
    assert verified(tmp_path, await proofs(replica, auditor, events[0].id), key)[0] == 0


async def grown(replica: Replica, auditor: Caller, since: int) -> str:
    return await AuditLogService(replica.audit).growth(auditor, since)


def grew(folder: Path, kept: str, now: str, *keys: str) -> tuple[int, str]:
    """Return the exit code and the words of the verifier of growth, run in a folder with nothing but its files."""
    for name in ("verify_audit.py", "verify_growth.py"):
        (folder / name).write_bytes((VERIFIER.parent / name).read_bytes())
    (folder / "kept").write_text(kept, "utf-8")
    (folder / "now").write_text(now, "utf-8")
    # -I would leave out the folder of the program, in which the other one is.
    command = [sys.executable, "-E", "-s", "verify_growth.py", "kept", "now"]
    command += [part for key in keys for part in ("--key", key)]
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr


async def test_a_log_is_proven_to_have_only_grown(replica: Replica, auditor: Caller, tmp_path: Path) -> None:
    notes: list[tuple[int, str]] = []
    for _ in range(4):
        await sealed(replica, auditor, 1)
        note = (await AuditLogService(replica.audit).checkpoint(auditor)).note
        notes.append((Checkpoint.parse(Note.parse(note).text).size, note))
    key = await key_of(replica)
    size, newest = notes[-1]
    for old, note in notes:
        now = await grown(replica, auditor, old)
        assert now.endswith(f"\n\n{newest}")
        code, said = grew(tmp_path, note, now, key)
        assert (code, f"from {old} to {size} entries" in said) == (0, True), said
    (old, note), (other, _) = notes[0], notes[1]
    now = await grown(replica, auditor, old)
    first, *rest = now.split("\n")
    assert len(base64.b64decode(rest[0])) == 32
    forged = {
        "a hash changed": now.replace(rest[0], base64.b64encode(bytes(32)).decode()),
        "a hash left out": "\n".join([first, *rest[1:]]),
        "a hash too many": "\n".join([first, rest[0], *rest]),
        "the proof of another": await grown(replica, auditor, other),
        "no proof": f"{first}\n\n{newest}",
    }
    for name, text in forged.items():
        assert grew(tmp_path, note, text, key)[0] == 1, name
    assert grew(tmp_path, newest, f"old {old}\n\n{note}", key)[0] == 1, "set back"
    assert grew(tmp_path, note, now, str(SigningKey.create("sluice/other").public))[0] == 1
    assert grew(tmp_path, "nothing", now, key)[0] == 1
    for wrong in (0, size + 1):
        with pytest.raises(InvalidArgumentsError):
            await grown(replica, auditor, wrong)


async def test_a_witness_can_be_trusted_instead(replica: Replica, auditor: Caller, tmp_path: Path) -> None:
    await sealed(replica, auditor, 2)
    lines = await proofs(replica, auditor)
    witness = SigningKey.create("witness.example/w1")
    key = VerifierKey(witness.name, COSIGNATURE, witness.public.public)
    note = Note.parse(lines[0]["checkpoint"])
    assert verified(tmp_path, lines, str(key))[0] == 1
    made = cosigned(note, key, witness.sign, 1_800_000_000)
    lines[0]["checkpoint"] = str(Note(note.text, (*note.signatures, made)))
    assert verified(tmp_path, lines, str(key))[0] == 0
    late = cosigned(note, key, lambda message: witness.sign(message + b"x"), 1_800_000_000)
    lines[0]["checkpoint"] = str(Note(note.text, (*note.signatures, late)))
    assert verified(tmp_path, lines, str(key))[0] == 1


async def test_a_file_that_is_none_and_a_key_that_is_none_are_said_to_be_so(
    replica: Replica, auditor: Caller, tmp_path: Path
) -> None:
    await sealed(replica, auditor, 1)
    lines = await proofs(replica, auditor)
    key = await key_of(replica)
    assert verified(tmp_path, [], key)[0] == 2
    assert verified(tmp_path, lines[1:], key)[0] == 2
    for wrong in (key[:-4] + "AAAA", key[:-3], key.partition("+")[0], key.rpartition("+")[0], "x", ""):
        code, said = verified(tmp_path, lines, wrong)
        assert (code, "The key is no whole line of `sluice audit key`" in said) == (2, True), said


async def test_who_may_not_see_events_gets_no_proof_of_them(replica: Replica, auditor: Caller) -> None:
    events = await sealed(replica, auditor, 1)
    log = AuditLogService(replica.audit)
    with pytest.raises(ForbiddenError):
        await log.prove(Caller(auditor.tenant, "1", frozenset({Role.INVOKER})), auditor.tenant)
    with pytest.raises(ForbiddenError):
        await log.prove(Caller("another", "1", frozenset({Role.AUDITOR})), auditor.tenant)
    with pytest.raises(NotFoundError):
        await log.prove(auditor, auditor.tenant, [events[0].id, uuid4()])
    with pytest.raises(NotFoundError):
        await log.prove(Caller("another", "1", frozenset({Role.AUDITOR})), "another")


async def sealed_events(replica: Replica, caller: Caller) -> set[UUID]:
    async with replica.database.system_transaction(write=False) as tx:
        return {leaf.event for leaf, _ in await list_leaves(tx, caller.tenant, 0, 100)}


async def test_an_event_is_proven_from_its_checkpoint_on(replica: Replica, auditor: Caller) -> None:
    await sealed(replica, auditor, 2)
    late = replica.audit.new_event(auditor, "middleware.invoke", OUTCOME_OK, None)
    await replica.audit.record(late)
    sealer = LogSealer.over(replica.audit)
    until = time.monotonic() + 20
    while late.id not in await sealed_events(replica, auditor) and time.monotonic() < until:
        await sealer._batch()
    with pytest.raises(NotFoundError):
        await proofs(replica, auditor, late.id)
    await sealer._sign()
    assert len(await proofs(replica, auditor, late.id)) == 2
