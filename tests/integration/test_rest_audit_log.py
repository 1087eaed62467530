"""Checkpoint, keys and proofs over REST, verified by the program that auditors are given."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.access import Role
from app.core.transparency.notes import Note, VerifierKey
from app.engines.signing import checker
from tests.integration.rest_app import Rest, open_rest
from tests.integration.sealing import seal_all

pytestmark = pytest.mark.in_turn("database_url")

VERIFIER = Path(__file__).parents[2] / "deploy/verify_audit.py"
CALL = {"context": [{"type": "text", "text": "Ada Byron called."}]}


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as running:
        yield running


async def invoked(rest: Rest, count: int) -> list[str]:
    """Invoke a middleware and seal; return the ids of the events."""
    for _ in range(count):
        await rest.call("POST", "/api/v1/middleware/timestamp_injector/invoke", CALL, roles=[Role.INVOKER])
    await seal_all(rest.services.audit)
    page = await rest.call(
        "GET", "/api/v1/audit/events?action=middleware.invoke&limit=100", roles=[Role.AUDITOR]
    )
    return [event["id"] for event in page.json()["items"]]


def verified(folder: Path, proofs: bytes, key: str) -> tuple[int, str]:
    (folder / "proofs.jsonl").write_bytes(proofs)
    command = [sys.executable, "-I", str(VERIFIER), "proofs.jsonl", "--key", key]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout


async def test_an_auditor_reads_the_checkpoint_and_its_key(rest: Rest) -> None:
    await invoked(rest, 1)
    checkpoint = await rest.call("GET", "/api/v1/audit/checkpoint", roles=[Role.AUDITOR])
    keys = await rest.call("GET", "/api/v1/audit/keys", roles=[Role.AUDITOR])
    assert (checkpoint.status_code, keys.status_code) == (200, 200)
    assert checkpoint.headers["content-type"] == "text/plain; charset=utf-8"
    key = VerifierKey.parse(keys.json()["items"][-1]["key"])
    assert Note.parse(checkpoint.text).is_signed(key, checker(key))


async def test_events_are_proven_to_the_auditor_of_their_tenant(rest: Rest, tmp_path: Path) -> None:
    ids = await invoked(rest, 3)
    keys = await rest.call("GET", "/api/v1/audit/keys", roles=[Role.AUDITOR])
    key = keys.json()["items"][-1]["key"]
    path = "/api/v1/audit/proofs"
    whole = await rest.call("GET", path, roles=[Role.AUDITOR])
    assert verified(tmp_path, whole.content, key)[0] == 0
    proven = {json.loads(json.loads(line)["event"])["id"] for line in whole.text.splitlines()[1:]}
    assert {one.replace("-", "") for one in ids} <= proven
    single = await rest.call("GET", f"{path}?event={ids[0]}&event={ids[2]}", roles=[Role.AUDITOR])
    code, said = verified(tmp_path, single.content, key)
    assert (code, "2 events" in said) == (0, True)
    forged = single.content.replace(b"timestamp_injector", b"timestamp_rejector")
    assert verified(tmp_path, forged, key)[0] == 1
    assert "Ada" not in whole.text


async def test_proofs_of_others_do_not_exist(rest: Rest) -> None:
    ids = await invoked(rest, 1)
    unknown = await rest.call(
        "GET", "/api/v1/audit/proofs?event=00000000-0000-0000-0000-000000000001", roles=[Role.AUDITOR]
    )
    assert (unknown.status_code, "every one of these events" in unknown.text) == (404, True)
    refused = await rest.call("GET", f"/api/v1/audit/proofs?event={ids[0]}", roles=[Role.INVOKER])
    assert refused.status_code == 403
    wrong = await rest.call("GET", "/api/v1/audit/proofs?event=7", roles=[Role.AUDITOR])
    assert wrong.status_code == 422


async def test_reading_proofs_is_on_record(rest: Rest) -> None:
    await invoked(rest, 1)
    await rest.call("GET", "/api/v1/audit/proofs", roles=[Role.AUDITOR])
    page = await rest.call("GET", "/api/v1/audit/events?action=audit.prove", roles=[Role.AUDITOR])
    assert [event["outcome"] for event in page.json()["items"]] == ["ok"]


async def test_kept_content_needs_two_roles_and_a_reason_and_is_on_record(rest: Rest) -> None:
    await rest.put_policy({"audit_content": True})
    kept = [{"type": "text", "text": "Ada Byron called."}]
    await rest.invoke("audit_logging", kept, {"model": "m-1"}, roles=[Role.INVOKER])
    page = await rest.call("GET", "/api/v1/audit/events?middleware=audit_logging", roles=[Role.AUDITOR])
    (event,) = page.json()["items"]
    path, both = f"/api/v1/audit/events/{event['id']}/content", [Role.AUDITOR, Role.RESTORER]
    asked: list[tuple[list[Role], str, int]] = [
        ([Role.AUDITOR], "complaint 7", 403),
        ([Role.RESTORER], "complaint 7", 403),
        (both, " ", 422),
        (both, "a\nb\nc", 422),
        (both, "x" * 501, 422),
        (both, "complaint 7", 200),
    ]
    for roles, reason, status in asked:
        answer = await rest.call("POST", path, {"reason": reason}, roles=roles)
        assert answer.status_code == status, answer.text
        assert ("Byron" in answer.text) == (status == 200)
    assert answer.json() == {"id": event["id"], "content": kept}
    other = path.replace(event["id"], "00000000-0000-0000-0000-000000000001")
    assert (await rest.call("POST", other, {"reason": "complaint 7"}, roles=both)).status_code == 404
    assert (await rest.call("POST", path, {}, roles=both)).status_code == 422
    read = await rest.call("GET", "/api/v1/audit/events?action=audit.content", roles=[Role.AUDITOR])
    looks = list(reversed(read.json()["items"]))
    assert [look["outcome"] for look in looks] == ["refused"] * 5 + ["ok", "refused"]
    assert looks[5]["details"] == {"event": event["id"], "reason": "complaint 7"}
    assert "Byron" not in read.text
