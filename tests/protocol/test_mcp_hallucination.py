"""Hallucination detection through the whole service with its own engines, at every door."""

import contextlib

import httpx2
import pytest

from app.main import create_app
from tests.protocol.mcp_service import KEY, listening, settings_of, unchanged_logging
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client

NAME = "hallucination_detection"
KNOWN = "Our guide is at https://docs.acme.dev/guide/installation. The team has 14 engineers in Zanzibar."
ANSWER = "See https://docs.acme.dev/guide/instalation. The team has 41 engineers in Zanzibar."
TALK = [{"role": "user", "content": KNOWN}, {"role": "assistant", "content": ANSWER}]


@contextlib.asynccontextmanager
async def opened(database_url):
    with unchanged_logging():
        async with (
            listening(create_app(settings_of(database_url))) as url,
            httpx2.AsyncClient(timeout=60) as http,
        ):
            http.headers["authorization"] = f"Bearer {KEY}"
            yield url, http


def judged(content, metadata):
    assert content[0] == TALK[0]
    assert content[1] == {"role": "assistant", "content": ANSWER.replace("instalation", "installation")}
    assert metadata["supported"] is False
    assert 0.5 <= metadata["score"] <= 1
    assert {"url", "number"} <= {one["kind"] for one in metadata["findings"]}
    assert metadata["engine"]["name"] == "embedded-grounding"
    assert metadata["rerunHint"]


@pytest.mark.parametrize("door", [HANDSHAKE, MODERN])
async def test_an_answer_is_judged_and_mended_over_mcp(sqlite_database_url, door):
    async with opened(sqlite_database_url) as (url, _), client(url, door, str(KEY)) as wire:
        done = await wire.call("middleware/invoke", name=NAME, context=TALK, arguments={"action": "fix"})
        judged(done.result["content"], done.result["metadata"])
        refused = await wire.call("middleware/invoke", name=NAME, context=TALK, arguments={"checkUrls": True})
        assert (refused.error["code"], refused.error["data"]["pointer"]) == (-32602, "/arguments/checkUrls")
        assert "acme.dev" not in str(refused.error)


async def test_an_answer_is_judged_over_rest_and_wrong_evidence_is_named(sqlite_database_url):
    async with opened(sqlite_database_url) as (url, http):
        path = url.replace("/mcp", f"/api/v1/middleware/{NAME}/invoke")
        done = await http.post(path, json={"arguments": {"action": "fix"}, "context": TALK})
        judged(done.json()["content"], done.json()["metadata"])
        wrong = await http.post(path, json={"arguments": {"evidence": [{"type": "text"}]}, "context": TALK})
        assert (wrong.status_code, wrong.json()["pointer"]) == (422, "/arguments/evidence/0/text")
