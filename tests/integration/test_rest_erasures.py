"""An ordered erasure is done in steps, survives what interrupts it, and ends with a receipt that anybody can check."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.core.access import SYSTEM_TENANT
from app.core.errors import StoreUnavailableError
from app.services.access.access import HOST
from app.services.audit.log_keys import LogKeyService
from app.services.vault.erasure import ErasureSink
from app.services.vault.erasure_jobs import ErasureJobs
from app.services.vault.mark import MarkKeeper
from app.services.vault.replay import ReplayService
from app.services.vault.tenant_erasure import SETTLED_S
from app.store.vault.mark_files import MarkFolder
from tests.factories import as_owner, caller_of, erasure_sink
from tests.integration.rest_app import Rest, open_rest

pytestmark = pytest.mark.in_turn("database_url")

PATH = "/api/v1/erasures"
REASON = "Request for erasure 2026-114"


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


def jobs_of(rest: Rest, sink: Path | None = None) -> ErasureJobs:
    """Return what the background runs; with ``sink``, erasures are noted in that file."""
    erasures = replace(rest.vault.service.erasures, sink=erasure_sink(sink))
    return ErasureJobs(erasures, rest.services.tenant_erasure)


async def order(rest: Rest, what: dict[str, Any], *, status: int = 202, **options: Any) -> Any:
    sent = {"reason": REASON, **what}
    answer = await rest.call("POST", PATH, sent, roles=["eraser"], **options)
    assert answer.status_code == status, answer.text
    return answer.json()


async def state(rest: Rest, job: Any, **options: Any) -> Any:
    answer = await rest.call("GET", f"{PATH}/{job['id']}", roles=["auditor"], **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def events(rest: Rest, query: str) -> list[Any]:
    answer = await rest.call("GET", f"/api/v1/audit/events?limit=1000&{query}", roles=["auditor"])
    return list(answer.json()["items"])


async def fill(rest: Rest, scopes: int) -> None:
    for number in range(scopes):
        name = f"talk-{number}"
        spelled = "José García" if number % 2 else "JOSE GARCIA"
        await rest.vault.store(caller_of(rest.tenant), name, spelled, "Bob", ("PHONE", "+1 415 555 2671"))


async def counts(rest: Rest) -> dict[str, dict[str, int]]:
    page = (await rest.call("GET", "/api/v1/vault/scopes", roles=["auditor"])).json()
    return {item["id"]: item["counts"] for item in page["items"]}


def checked(note: str, key: str) -> dict[str, Any]:
    """Check a receipt as somebody would who has only the receipt and the key, and return what it states."""
    text, _, signature = note.rpartition("\n\n")
    name, identifier, material = key.split("+", 2)
    line = signature.splitlines()[0].split(" ")
    raw = base64.b64decode(line[2])
    assert (line[1], raw[:4].hex()) == (name, identifier)
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(material)[1:])
    public.verify(raw[4:], text.encode() + b"\n")
    head, stated = text.split("\n")
    assert head == "sluice erasure receipt 1"
    return dict(json.loads(stated))


async def public_key(rest: Rest) -> str:
    return str((await LogKeyService.over(rest.vault.audit).public())[-1][0])


VALUES = {"values": [{"value": "jose garcia", "type": "PERSON"}, {"value": "4155552671"}], "variants": True}


async def test_a_preview_says_what_an_order_erases_and_changes_nothing(rest: Rest) -> None:
    await fill(rest, 3)
    before = await counts(rest)
    seen = await order(rest, {**VALUES, "preview": True}, status=200)
    assert seen == {
        "total": 6,
        "scopes": 3,
        "counts": {"PERSON": 3, "PHONE": 3},
        "by_value": [3, 3],
        "indexed": True,
        "unreadable": 0,
    }
    scopes = await order(rest, {"scopes": ["talk-1", "nothing"], "preview": True}, status=200)
    assert (scopes["scopes"], scopes["counts"], scopes["total"]) == (1, {"PERSON": 2, "PHONE": 1}, 3)
    await jobs_of(rest).run()
    assert await counts(rest) == before
    searched, previewed = (
        await events(rest, "action=subject.search"),
        await events(rest, "action=erasure.preview"),
    )
    assert [event["details"]["preview"] for event in searched] == [True]
    assert [(event["details"]["scopes"], event["outcome"]) for event in previewed] == [(2, "ok")]


async def test_values_are_erased_in_every_spelling_with_a_receipt_that_a_stranger_can_check(
    rest: Rest,
) -> None:
    await fill(rest, 3)
    stranger = f"{rest.tenant}-x"
    await rest.services.tenants.create(HOST, stranger)
    await rest.vault.store(caller_of(stranger), "talk-0", "José García")
    job = await order(rest, VALUES)
    assert (job["state"], job["done"], job["total"]) == ("running", 0, 6)
    waiting = await state(rest, job)
    assert (waiting["receipt"], waiting["finished"], waiting["reason"]) == (None, None, REASON)
    await jobs_of(rest).run()
    assert await counts(rest) == {f"talk-{number}": {"PERSON": 1} for number in range(3)}
    done = await state(rest, job)
    assert (done["state"], done["done"], done["total"], done["scopes"]) == ("done", 6, 6, 3)
    stated = checked(done["receipt"], await public_key(rest))
    assert stated["id"] == job["id"] and stated["tenant"] == rest.tenant
    assert (stated["erased"], stated["scopes"]) == ({"PERSON": 3, "PHONE": 3}, 3)
    assert (stated["values"], stated["variants"], stated["reason"]) == (2, True, REASON)
    assert "arc" not in done["receipt"].split("\n\n")[0] and "2671" not in done["receipt"]
    # The log has what was signed, and names each scope.
    (finish,) = await events(rest, "action=erasure.done")
    text = done["receipt"].rpartition("\n\n")[0] + "\n"
    assert finish["details"]["receipt_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    for number in range(3):
        (named,) = await events(rest, f"action=vault.erase_value&scope=talk-{number}")
        assert (named["counts"], named["details"]["job"]) == ({"PERSON": 1, "PHONE": 1}, job["id"])
    # The control: the same check fails for a receipt that somebody changed, and under another key.
    with pytest.raises(InvalidSignature):
        checked(done["receipt"].replace('"scopes": 3', '"scopes": 2'), await public_key(rest))
    # Nobody else sees it, and nobody else lost anything.
    foreign = await rest.call("GET", f"{PATH}/{job['id']}", roles=["auditor"], tenant=stranger)
    assert foreign.status_code == 404
    kept = await rest.call("GET", "/api/v1/vault/scopes", roles=["auditor"], tenant=stranger)
    assert kept.json()["items"][0]["counts"] == {"PERSON": 1}


async def test_an_interrupted_job_goes_on_where_it_was(
    rest: Rest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await fill(rest, 5)
    monkeypatch.setattr("app.services.vault.erasure_jobs._ENTRIES", 2)
    job = await order(rest, VALUES)
    file = tmp_path / "erasures.jsonl"

    class Interrupted(ErasureSink):
        """A process that dies when it notes its third step."""

        async def append(self, *noted: Any) -> None:
            if file.exists() and len(file.read_text().splitlines()) == 2:
                raise StoreUnavailableError("The process ends here.")
            await erasure_sink(file).append(*noted)

    dying = jobs_of(rest)
    dying = ErasureJobs(replace(dying.erasures, sink=Interrupted(None)), dying.tenants)
    with pytest.raises(StoreUnavailableError):
        await dying.run()
    half = await state(rest, job)
    assert (half["state"], half["done"], half["total"], half["receipt"]) == ("running", 4, 10, None)
    assert len(await events(rest, "action=vault.erase_value")) == sum(
        len({place[0] for place in json.loads(line)["erased"]}) for line in file.read_text().splitlines()
    )
    await jobs_of(rest, file).run()
    done = await state(rest, job)
    assert (done["state"], done["done"], done["scopes"]) == ("done", 10, 5)
    assert checked(done["receipt"], await public_key(rest))["erased"] == {"PERSON": 5, "PHONE": 5}
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sum(sum(line["counts"].values()) for line in lines) == 10
    assert len(await events(rest, "action=erasure.done")) == 1


async def test_two_processes_at_one_job_erase_and_sign_once(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(rest, 5)
    monkeypatch.setattr("app.services.vault.erasure_jobs._ENTRIES", 2)
    job = await order(rest, VALUES)
    await asyncio.gather(*(jobs_of(rest).finish(rest.tenant, UUID(job["id"])) for _ in range(3)))
    done = await state(rest, job)
    assert (done["state"], done["done"], done["scopes"]) == ("done", 10, 5)
    assert (
        sum(sum(event["counts"].values()) for event in await events(rest, "action=vault.erase_value")) == 10
    )
    assert len(await events(rest, "action=erasure.done")) == 1


async def test_what_an_older_release_stored_is_indexed_and_erased(rest: Rest) -> None:
    await fill(rest, 2)
    forget = "UPDATE entry SET blind = NULL, blind_normal = NULL WHERE tenant = :tenant AND scope = 'talk-1'"
    await as_owner(rest.vault.database, forget, tenant=rest.tenant)
    seen = await order(rest, {**VALUES, "preview": True}, status=200)
    assert (seen["indexed"], seen["total"]) == (False, 4)
    job = await order(rest, VALUES)
    await jobs_of(rest).run()
    done = await state(rest, job)
    assert (done["counts"], done["total"], done["unreadable"]) == ({"PERSON": 2, "PHONE": 2}, 4, 0)


async def test_scopes_are_erased_and_one_that_is_gone_is_passed_over(rest: Rest) -> None:
    await fill(rest, 3)
    job = await order(rest, {"scopes": ["talk-0", "talk-2", "never", "talk-0"]})
    assert job["total"] == 3
    await jobs_of(rest).run()
    done = await state(rest, job)
    assert (done["done"], done["scopes"], done["counts"]) == (3, 2, {"PERSON": 4, "PHONE": 2})
    assert set(await counts(rest)) == {"talk-1"}
    assert len(await events(rest, "action=vault.erase_scope&scope=talk-2")) == 1
    assert checked(done["receipt"], await public_key(rest))["named_scopes"] == 3


async def test_a_tenant_is_erased_by_an_operator_of_the_tenant_system_alone(rest: Rest) -> None:
    await fill(rest, 2)
    target = {"tenant": rest.tenant, "reason": REASON}
    operator: dict[str, Any] = {"roles": ["operator"], "tenant": SYSTEM_TENANT}
    auditor: dict[str, Any] = {"roles": ["auditor"], "tenant": SYSTEM_TENANT}
    for own in (
        {"roles": ["eraser"]},
        {"roles": ["operator"]},
        {"roles": ["eraser"], "tenant": SYSTEM_TENANT},
    ):
        assert (await rest.call("POST", PATH, target, **own)).status_code == 403
    assert (await rest.call("POST", PATH, target, **operator)).status_code == 409
    await rest.services.tenants.disable(HOST, rest.tenant)
    seen = await rest.call("POST", PATH, {**target, "preview": True}, **operator)
    assert (seen.status_code, seen.json()["counts"]) == (200, {"PERSON": 4, "PHONE": 2})
    job = (await rest.call("POST", PATH, target, **operator)).json()
    await jobs_of(rest).run()
    path = f"{PATH}/{job['id']}"
    assert (await rest.call("GET", path, **auditor)).json()["state"] == "running"
    access = rest.services.access
    later = replace(access, now=lambda: datetime.now(UTC) + timedelta(seconds=SETTLED_S + 1))
    emptying = replace(rest.services.tenant_erasure, tenants=replace(rest.services.tenants, access=later))
    await emptying.empty()
    await emptying.empty()
    await jobs_of(rest).run()
    done = (await rest.call("GET", path, **auditor)).json()
    assert (done["state"], done["done"], done["counts"]) == ("done", 6, {"PERSON": 4, "PHONE": 2})
    stated = checked(done["receipt"], await public_key(rest))
    assert (stated["erased_tenant"], stated["tenant"]) == (rest.tenant, SYSTEM_TENANT)


@pytest.mark.in_turn("database_url")
async def test_an_order_names_one_thing_and_a_reason(rest: Rest) -> None:
    wrong: list[tuple[dict[str, Any], str | None]] = [
        ({}, ""),
        ({"scopes": ["a"], "values": [{"value": "a"}]}, ""),
        ({"scopes": ["a"], "variants": True}, "/variants"),
        ({"scopes": ["a\u0007b"]}, None),
        ({"scopes": []}, "/scopes"),
        ({"values": [{"value": "Ada Byron"}], "reason": "forget ada byron"}, "/reason"),
        ({"values": [{"value": "Ada"}], "reason": " "}, "/reason"),
    ]
    for what, pointer in wrong:
        refused = await order(rest, what, status=422)
        assert refused["code"] == "invalid_arguments"
        assert pointer is None or refused.get("pointer", "") == pointer, what
    for roles in (["auditor"], ["operator"], ["restorer", "invoker"]):
        answer = await rest.call("POST", PATH, {"scopes": ["a"], "reason": REASON}, roles=roles)
        assert answer.status_code == 403
    nothing = await rest.call("GET", f"{PATH}/0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11", roles=["eraser"])
    assert nothing.status_code == 404
    assert await events(rest, "action=erasure.done") == []


async def test_a_restored_backup_brings_back_nobody_whom_a_job_has_erased(rest: Rest, tmp_path: Path) -> None:
    await fill(rest, 2)
    vault, database, file = rest.vault, rest.vault.database, tmp_path / "erasures.jsonl"
    await order(rest, VALUES)
    await order(rest, {"scopes": ["talk-1"]})
    await jobs_of(rest, file).run()
    assert await counts(rest) == {"talk-0": {"PERSON": 1}}
    assert {json.loads(line)["kind"] for line in file.read_text().splitlines()} == {
        *("value", "scope", "receipt")
    }
    # The database as its backup has it: the lines outside are all that is left of the erasures.
    for line in map(json.loads, file.read_text().splitlines()):
        await as_owner(database, "DELETE FROM erasure WHERE tenant = :tenant", tenant=line["tenant"])
    for table in ("entry", "scope"):
        await as_owner(database, f"DELETE FROM {table} WHERE tenant = :tenant", tenant=rest.tenant)  # noqa: S608
    await fill(rest, 2)
    earlier = "UPDATE {} SET created = :at WHERE tenant = :tenant"
    for table in ("entry", "scope"):
        await as_owner(database, earlier.format(table), tenant=rest.tenant, at=_long_ago(rest))
    assert len(await counts(rest)) == 2
    marks = MarkKeeper(database, MarkFolder(tmp_path, shared=False), database.address)
    try:
        replay = ReplayService(database, vault.audit, vault.custodian, marks, [file])
        replayed = await replay.replay(HOST, [file])
        assert (replayed.repeated, replayed.jobs) == (len(file.read_text().splitlines()) - 2, 2)
        assert await counts(rest) == {"talk-0": {"PERSON": 1}}
    finally:
        await as_owner(database, "DELETE FROM installation WHERE name = 'restore_epoch'")


async def test_an_order_for_a_tenant_that_came_back_with_a_backup_goes_on_to_its_receipt(
    database_url: str, tmp_path: Path
) -> None:
    file, reason = tmp_path / "erasures.jsonl", f"Request {tmp_path.name[-20:]}"
    operator: dict[str, Any] = {"roles": ["operator"], "tenant": SYSTEM_TENANT}
    async with open_rest(database_url, sink=file) as rest:
        database, tenants = rest.vault.database, rest.services.tenants
        await fill(rest, 2)
        await tenants.disable(HOST, rest.tenant)
        job = await rest.call("POST", PATH, {"tenant": rest.tenant, "reason": reason}, **operator)
        assert [json.loads(line)["kind"] for line in file.read_text().splitlines()] == ["tenant", "order"]
        # The database as its backup has it: of the order and the erasure only the lines outside are left.
        await as_owner(database, "UPDATE tenant SET erased = NULL WHERE id = :tenant", tenant=rest.tenant)
        await as_owner(database, "DELETE FROM erasure_job WHERE reason = :reason", reason=reason)
        for name, kind in ((rest.tenant, "tenant"), (SYSTEM_TENANT, "order")):
            await as_owner(
                database, "DELETE FROM erasure WHERE tenant = :name AND kind = :kind", name=name, kind=kind
            )
        path = f"{PATH}/{job.json()['id']}"
        assert (await rest.call("GET", path, roles=["auditor"], tenant=SYSTEM_TENANT)).status_code == 404
        marks = MarkKeeper(database, MarkFolder(tmp_path, shared=False), database.address)
        replay = ReplayService(database, rest.vault.audit, rest.vault.custodian, marks, [file])
        try:
            replayed = await replay.replay(HOST, [file])
        finally:
            await as_owner(database, "DELETE FROM installation WHERE name = 'restore_epoch'")
        assert (replayed.repeated, replayed.jobs) == (1, 1)
        later = replace(
            rest.services.access, now=lambda: datetime.now(UTC) + timedelta(seconds=SETTLED_S + 1)
        )
        emptying = replace(rest.services.tenant_erasure, tenants=replace(tenants, access=later))
        for _ in range(2):
            await emptying.empty()
        await jobs_of(rest, file).run()
        done = (await rest.call("GET", path, roles=["auditor"], tenant=SYSTEM_TENANT)).json()
        assert (done["state"], done["reason"], done["counts"]) == ("done", reason, {"PERSON": 4, "PHONE": 2})
        assert checked(done["receipt"], await public_key(rest))["erased_tenant"] == rest.tenant


def _long_ago(rest: Rest) -> Any:
    moment = datetime.now(UTC) - timedelta(days=1)
    return moment.isoformat(sep=" ") if rest.vault.database.embedded else moment
