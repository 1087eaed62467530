"""The surface on the real services: what the stand-ins of the other tests cannot show."""

import asyncio
import json

import pytest

from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, REVISIONS, client
from tests.protocol.requirements import covers

TEXT = "My name is John Doe and my SSN is 123-45-6789"


@pytest.fixture
def sqlite_url(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/sluice.db"


async def test_a_conversation_is_redacted_and_restored_over_either_revision(sqlite_url):
    async with service(sqlite_url, warm=True) as (url, _):
        for revision in REVISIONS:
            async with client(url, revision, str(KEY)) as wire:
                redacted = (await wire.invoke({"type": "text", "text": TEXT}, name="pii_redaction")).result
                shown = redacted["content"][0]["text"]
                restored = await wire.invoke(
                    {"type": "text", "text": f"Dear {shown}"},
                    name="pii_restoration",
                    arguments={"scope": redacted["metadata"]["scope"]},
                )
                assert shown == "My name is [PERSON_1] and my SSN is [SSN_1]"
                assert restored.result["content"][0]["text"] == f"Dear {TEXT}"


@covers("CM-EXACT", "CM-ARGUMENTS", "PROGRESS-TOKEN")
async def test_exactness_arguments_and_progress_hold_on_the_real_service(sqlite_url):
    item = {"type": "unheard_of", "z": None, "a": 10**29 + 7, "f": 0.1, "nested": [{"b": 1, "a": 2}]}
    text = {"type": "text", "text": "What's on?"}
    async with service(sqlite_url) as (url, _):
        for revision in REVISIONS:
            async with client(url, revision, str(KEY)) as wire:
                listed = await wire.call("middleware/list")
                names = [found["name"] for found in listed.result["middleware"]]
                assert {"pii_redaction", "pii_restoration", "timestamp_injector"} <= set(names)
                kept = (await wire.invoke(text, item)).result["content"]
                assert kept[1] == item
                assert list(kept[1]) == list(item)
                wrong = await wire.invoke(text, arguments={"no_such": 1})
                assert wrong.error["code"] == -32602
                assert wrong.error["data"]["pointer"] == "/arguments"
                assert "no_such" not in wrong.text
                told = await wire.invoke(text, meta={"progressToken": "p"})
                progress = [one["params"]["progress"] for one in told.notifications]
                assert progress == sorted(set(progress))
                assert progress
                unknown = await wire.invoke(text, name="nothing")
                assert (unknown.error["code"], unknown.error["data"]["pointer"]) == (-32602, "/name")


async def test_refusals_of_the_edge_guard_have_the_form_of_this_surface(sqlite_url):
    async with service(sqlite_url) as (url, _):
        for revision in REVISIONS:
            async with client(url, revision, str(KEY)) as wire:
                headers = {**wire.headers("middleware/list"), "content-type": "application/json"}
                twice = await wire.http.post(url, content=b'{"jsonrpc":"2.0","id":1,"id":2}', headers=headers)
                deep = await wire.http.post(url, content=b"[" * 90 + b"]" * 90, headers=headers)
                large = await wire.http.post(url, content=b" " * 9_000_000, headers=headers)
                foreign = await wire.call("middleware/list", headers={"host": "evil.example.com"})
                nobody = await wire.call("middleware/list", headers={"authorization": "Bearer x"})
        codes = [answer.json()["error"]["code"] for answer in (twice, deep, large)]
        assert codes == [-32700, 4130, 4130]
        assert [answer.status_code for answer in (twice, deep, large)] == [400, 413, 413]
        assert (foreign.status, foreign.error["data"]["code"]) == (421, "invalid_request")
        assert (nobody.status, nobody.error["data"]["code"]) == (401, "unauthenticated")
        assert nobody.headers["x-request-id"] == nobody.error["data"]["requestId"]


@covers("HS-REPLICAS")
async def test_two_services_on_one_postgresql_serve_one_handshake_client(own_postgres_url):
    async with (
        service(own_postgres_url) as (one, _),
        service(own_postgres_url) as (two, _),
        client(one, HANDSHAKE, str(KEY)) as wire,
    ):
        for n in range(12):
            wire.url = (one, two)[n % 2]
            reply = await wire.invoke({"type": "text", "text": "x"})
            assert reply.status == 200
            assert reply.result["content"][0]["text"].endswith("\n\nx")
        assert (await wire.http.delete(two, headers={"mcp-session-id": wire.session})).status_code == 204
        wire.url = one
        assert (await wire.call("middleware/list")).status == 404


async def test_an_open_stream_does_not_hold_up_a_stopping_service(sqlite_url):
    async with service(sqlite_url) as (url, app), client(url, HANDSHAKE, str(KEY)) as wire:
        headers = {"mcp-session-id": wire.session}
        async with wire.http.stream("GET", url, headers=headers) as response:
            lines = response.aiter_lines()
            await anext(lines)
            app.state.drain.begin()
            async with asyncio.timeout(20):
                rest = [line async for line in lines]

    assert not [json.loads(line[5:]) for line in rest if line.startswith("data:")]
