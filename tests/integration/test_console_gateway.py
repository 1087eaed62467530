"""The gateway in the console: providers, tokens and their share from caches, and whether masking is on for a client."""

import html
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.request import RequestInfo
from app.services.access.access import HOST
from app.services.gateway.records import GatewayRecord
from tests.integration.console_app import Console, fields_of, open_console, text_of

pytestmark = pytest.mark.in_turn("database_url")

PAGE = "/console/gateway"
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}"


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url) as opened:
        yield opened


async def provided(console: Console, name: str = "main") -> None:
    body = {
        "kind": "openai",
        "baseUrl": "https://api.openai.com/v1",
        "apiKey": "sk-c4nary-Sesame",
        "models": ["gpt-*"],
        "aliases": {"fast": "gpt-5-mini"},
        "description": HOSTILE,
    }
    answer = await console.rest.call("PUT", f"/api/v1/providers/{name}", body, roles=[Role.OPERATOR])
    assert answer.status_code == 200, answer.text


async def answered(console: Console, model: str, usage: Mapping[str, Any], fault: str | None = None) -> None:
    """Put one answer of a model on record, as the gateway does."""
    caller = Caller(console.rest.tenant, "0123abcd", frozenset({Role.INVOKER}))
    record = GatewayRecord(
        console.rest.vault.audit,
        caller,
        RequestInfo("r", None, None, math.inf),
        "chat",
        provider="main",
        model=model,
    )
    record.usage, record.status, record.error_code = usage, 200, fault
    await record.ended()


async def test_tokens_and_the_share_from_caches_are_those_of_the_providers(console: Console) -> None:
    claude = {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30}
    await answered(console, "claude", {**claude, "output_tokens": 7})
    openai = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    await answered(console, "gpt", {**openai, "prompt_tokens_details": {"cached_tokens": 25}})
    await answered(console, "gpt", {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}})
    await answered(console, HOSTILE, {"prompt_tokens": HOSTILE, "input_tokens": -5}, fault="client_gone")
    async with console.browsing(Role.AUDITOR) as browser:
        page = await browser.open(PAGE)
    text = text_of(page)
    assert "main claude 1 0 0 100 60 % 7" in text
    assert "main gpt 2 0 0 200 12 % 5" in text
    assert "1 0 1 0 – 0" in text
    assert "<script>alert" not in page.text
    assert HOSTILE in html.unescape(page.text)
    assert "Where requests go" not in text
    usage = await console.rest.call("GET", "/api/v1/gateway/usage", roles=[Role.AUDITOR])
    shares = {row["model"]: row["cached_share"] for row in usage.json()["models"]}
    assert (shares["claude"], shares["gpt"], shares[HOSTILE]) == (0.6, 0.125, None)


async def test_an_operator_sees_providers_without_secrets_and_routes(console: Console) -> None:
    await provided(console)
    routes = [
        {"when": {"types": ["health"]}, "refuse": True},
        {"when": {"types": ["MRN"]}, "provider": "main"},
    ]
    assert (await console.rest.put_policy({"gateway": {"routes": routes}})).status_code == 200
    async with console.browsing(Role.OPERATOR) as browser:
        page = await browser.open(PAGE)
        text = text_of(page)
        assert "fast is gpt-5-mini" in text
        assert "health: refused" in text
        assert "MRN: main" in text
        assert "c4nary" not in page.text
        assert "<script>alert" not in page.text
        assert HOSTILE in html.unescape(page.text)
        assert "Tokens of the last" not in text
        assert "No request or stream." in text


async def test_a_client_is_told_from_its_key_with_a_sample(console: Console) -> None:
    made = await console.rest.services.access.create_key(
        HOST, [Role.INVOKER], tenant=console.rest.tenant, name=HOSTILE
    )
    auditor = await console.rest.services.access.create_key(HOST, [Role.AUDITOR], tenant=console.rest.tenant)

    async with console.browsing(Role.OPERATOR) as browser:

        async def looked(key_id: str, **more: str) -> str:
            form = fields_of(await browser.open(PAGE))
            browser.shown = await browser.send(PAGE, {**form, "key": key_id, **more})
            assert "<script>alert" not in browser.shown.text
            return text_of(browser.shown)

        text = await looked(made.key.id)
        assert "Masking is on" in text
        assert "its answers get the originals back" in text
        assert "I am [PERSON_1], [EMAIL_1], SSN [SSN_1]." in text
        assert HOSTILE in text
        assert "not the role invoker" in await looked(auditor.key.id)
        assert "There is no such key." in await looked("ffffffff")
        pipelines = [
            {"models": ["local-*"], "outbound": []},
            {"models": ["mild"], "outbound": [{"name": "secret_redaction"}], "inbound": []},
        ]
        assert (await console.rest.put_policy({"gateway": {"pipelines": pipelines}})).status_code == 200
        off = await looked(made.key.id, model="local-7")
        assert "Masking is off" in off
        assert "No step of the pipeline hides anything." in off
        assert "Masking is on" in await looked(made.key.id, model="other")
        assert "its answers keep the handles" in await looked(made.key.id, model="mild")
        assert (await console.rest.put_policy({"gateway": {"mode": "observe"}})).status_code == 200
        assert "Masking is off" in await looked(made.key.id)
        await console.rest.services.access.revoke_key(HOST, made.key.id)
        assert "The key has ended" in await looked(made.key.id)


async def test_masking_of_a_client_is_told_over_rest(console: Console) -> None:
    key = await console.rest.key(Role.INVOKER)
    path = f"/api/v1/gateway/clients/{key.split('_')[1]}"
    shown = (await console.rest.call("GET", path, roles=[Role.OPERATOR])).json()
    assert (shown["is_on"], shown["steps"]) == (True, ["pii_redaction", "secret_redaction"])
    assert shown["outcome"]["content"][0]["text"] == "I am [PERSON_1], [EMAIL_1], SSN [SSN_1]."
    foreign = await console.rest.call("GET", "/api/v1/gateway/clients/ffffffff", roles=[Role.OPERATOR])
    assert foreign.status_code == 404
    live = await console.rest.call("GET", "/api/v1/gateway/under-way", roles=[Role.OPERATOR])
    assert live.json() == {"doors": {}}


async def test_who_neither_operates_nor_audits_sees_no_gateway(console: Console) -> None:
    await provided(console)
    async with console.browsing(Role.INVOKER, Role.ERASER) as browser:
        assert PAGE not in (await browser.open("/console/")).text
        assert (await browser.open(PAGE)).status_code == 403
    async with console.browsing(Role.AUDITOR) as browser:
        await browser.open(PAGE)
        for path in (PAGE, f"{PAGE}/test"):
            assert (await browser.send(path, {"name": "main", "key": "0123abcd"})).status_code == 403
