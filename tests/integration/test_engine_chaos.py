"""An engine elsewhere misbehaves in the bytes it sends: the embedded one serves in time and says so."""

import asyncio
import json
import logging
from contextlib import nullcontext
from dataclasses import replace

import pytest

import app.middlewares
from app.core.contracts.engines import EngineReport, Moderation, ToolCandidate
from app.core.contracts.registry import Registry
from app.core.deadlines import TimeLimit
from app.core.errors import UpstreamUnavailableError
from app.engines.choosing import Chooser
from app.engines.remote import RemoteOptions
from app.engines.remote.client import RemoteClient
from app.engines.remote.moderations import RemoteModerations
from app.engines.resilience import RemoteEngineError, Rules, State
from tests.fakes import FakeEmbedder, FakeToolRanker, engines
from tests.fakes_moderation import FakeModerator
from tests.integration.engine_server import (
    answering,
    chat,
    dripping,
    engine_server,
    flooding,
    hanging,
    http,
    resetting,
    sending,
)
from tests.integration.rest_app import open_rest

SIX = ("violence", "harassment", "hate", "sexual", "self_harm", "illicit")
LEAK = "words-of-the-upstream"
KEY = "sk-never-in-a-log"
CLEAN = dict.fromkeys(SIX, 0.01)
WELL = answering(lambda request: {"results": [{"category_scores": CLEAN}] * len(request.body["input"])})


def scored(number):
    return http(
        f'{{"results": [{{"category_scores": {{"violence": {number}}}}}], "said": "{LEAK}"}}'.encode()
    )


FAULTS = {
    "hangs": hanging,
    "drips": dripping,
    "resets": resetting,
    "cuts": sending(http(b'{"results": [{"category_scores": {}}]}')[:-9], cut=True),
    "floods": flooding,
    "garbage": sending(b"\x16\x03\x01\x02\x00" + LEAK.encode() + b"\r\n\r\n", cut=True),
    "no JSON": sending(http(f"<html>{LEAK}</html>".encode(), headers="content-type: text/html")),
    "error 500": sending(http(LEAK.encode(), "500 Internal Server Error")),
    "error 401": sending(http(f'{{"error": "{LEAK}"}}'.encode(), "401 Unauthorized")),
    "redirects": sending(http(b"", "307 Temporary Redirect", f"location: http://127.0.0.1:9/{LEAK}")),
    "wrong shape": sending(http(b'{"results": {"category_scores": []}}')),
    "a list": sending(http(b"[]")),
    "NaN": sending(scored("NaN")),
    "infinite": sending(scored("1e999")),
    "above one": sending(scored("7.5")),
    "a word": sending(scored(f'"{LEAK}"')),
    "two of one member": sending(scored('0.1, "violence": 0.2')),
    "too few": sending(http(b'{"results": []}')),
    "deep": sending(http(b"[" * 100_000)),
    "half a surrogate": sending(http(b'{"results": "\\ud800"}')),
    "compressed": sending(http(b"\x1f\x8b", headers="content-encoding: gzip")),
    "wrong length": sending(b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n{}", cut=True),
    "endless header": sending(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n", cut=True),
}


class Counter(dict):
    def __call__(self, capability, outcome):
        self[outcome] = self.get(outcome, 0) + 1


@pytest.fixture
async def chooser():
    chosen = Chooser(Counter())
    yield chosen
    await chosen.close()


def remote(server, kind="moderations", **rules):
    return RemoteOptions(server.url, kind, "big", KEY, Rules(**{"timeout_s": 30, "failures": 1000, **rules}))


def patience(fault):
    """Return the time limit: short where only it ends the call, else so long that a test would be seen to wait."""
    return 0.3 if fault in {"hangs", "drips", "floods"} else 60


def be_patient(moderator):
    """Give a healthy engine on a busy machine the time it needs."""
    moderator.guard.rules = replace(moderator.guard.rules, timeout_s=60)


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_embedded_engine_serves_in_time_and_no_word_leaks(chooser, caplog, fault):
    caplog.set_level(logging.DEBUG)
    async with engine_server(FAULTS[fault]) as server:
        moderator = chooser.moderator(remote(server, timeout_s=patience(fault)), FakeModerator())
        async with asyncio.timeout(30):
            found = await moderator.moderate(["I will kill you"], ["violence"])
        assert found == Moderation([{"violence": 0.95}], EngineReport("fake", "1", degraded=True))
        assert server.requests
        server.serve = WELL
        be_patient(moderator)
        found = await moderator.moderate(["I will kill you"], ["violence"])
        assert found == Moderation([{"violence": 0.01}], EngineReport("remote-moderations", "big"))
    assert LEAK not in caplog.text
    assert KEY not in caplog.text
    assert "kill you" not in caplog.text


@pytest.mark.parametrize("fault", FAULTS)
async def test_where_the_operator_forbids_the_fallback_the_call_is_refused(chooser, fault):
    async with engine_server(FAULTS[fault]) as server:
        moderator = chooser.moderator(
            remote(server, fallback=False, timeout_s=patience(fault)), FakeModerator()
        )
        with pytest.raises(UpstreamUnavailableError) as caught:
            await moderator.moderate(["I will kill you"], ["violence"])
    told = (
        f"{caught.value.message} {caught.value.details} {caught.value.__cause__} {caught.value.__context__!r}"
    )
    assert LEAK not in told
    assert KEY not in told


async def test_nobody_listening_is_a_failure_like_others(chooser):
    async with engine_server(WELL) as server:
        moderator = chooser.moderator(remote(server), FakeModerator())
    assert (await moderator.moderate(["t"], ["hate"])).report.degraded


async def test_a_score_is_believed_where_nothing_is_wrong_with_it(chooser):
    async with engine_server(sending(scored("0.5"))) as server:
        moderator = chooser.moderator(remote(server), FakeModerator())
        found = await moderator.moderate(["t"], ["violence"])
        assert found == Moderation([{"violence": 0.5}], EngineReport("remote-moderations", "big"))


async def test_an_answer_larger_than_allowed_is_let_go_of():
    body = {"results": [{"category_scores": CLEAN}], "pad": "x" * 2000}
    async with engine_server(answering(lambda _: body)) as server:
        for limit, refused in ((4000, False), (1000, True)):
            client = RemoteClient(remote(server), max_answer_bytes=limit)
            moderator = RemoteModerations(client, FakeModerator())
            with pytest.raises(RemoteEngineError, match="too large") if refused else nullcontext():
                await moderator.moderate(["t"], ["hate"])
            await client.close()


@pytest.mark.parametrize(
    "said",
    [
        "certainly! here you go",
        "```json\n{}\n```",
        json.dumps({**CLEAN, "violence": 2}),
        json.dumps({"violence": 0.1}),
        json.dumps(CLEAN) + json.dumps(CLEAN),
        "null",
        "",
    ],
)
async def test_a_chat_model_that_answers_anything_else_is_not_believed(chooser, said):
    async with engine_server(answering(lambda _: chat(said))) as server:
        moderator = chooser.moderator(remote(server, "chat"), FakeModerator())
        assert (await moderator.moderate(["t"], SIX)).report.degraded
        assert len(server.requests) == 1  # nothing is asked twice


@pytest.mark.parametrize("said", ["maybe", "unsafe", "unsafe\nS99", "safe\nS1", "unsafe\nviolence"])
async def test_a_llama_guard_that_answers_anything_else_is_not_believed(chooser, said):
    async with engine_server(answering(lambda _: chat(said))) as server:
        moderator = chooser.moderator(remote(server, "llama-guard"), FakeModerator())
        assert (await moderator.moderate(["t"], SIX)).report.degraded


RESULTS = {
    "too few": [(0, 0.5)],
    "the same twice": [(0, 0.5), (0, 0.4)],
    "a wrong index": [(0, 0.5), (2, 0.4)],
    "a negative index": [(0, 0.5), (-1, 0.4)],
    "a raw score": [(0, 0.5), (1, -3.2)],
}


@pytest.mark.parametrize("results", RESULTS)
async def test_a_reranker_that_loses_a_tool_is_not_believed(chooser, results):
    body = {"results": [{"index": index, "relevance_score": score} for index, score in RESULTS[results]]}
    async with engine_server(answering(lambda _: body)) as server:
        ranker = chooser.tools(remote(server, "rerank"), FakeToolRanker())
        found = await ranker.rank(["b"], [ToolCandidate("a"), ToolCandidate("b")])
        assert found.report == EngineReport("fake", "1", degraded=True)
        assert found.order == [[1, 0]]


VECTORS = {
    "too few": [],
    "zero": [{"index": 0, "embedding": [0.0, 0.0]}],
    "empty": [{"index": 0, "embedding": []}],
    "wrong index": [{"index": 1, "embedding": [1.0]}],
    "no base64": [{"index": 0, "embedding": "%%%%"}],
    "half a number": [{"index": 0, "embedding": "AAAA"}],
    "NaN in base64": [{"index": 0, "embedding": "AADAfw=="}],
    "words": [{"index": 0, "embedding": ["one"]}],
}


@pytest.mark.parametrize("vectors", VECTORS)
async def test_vectors_that_are_none_are_not_believed(chooser, vectors):
    async with engine_server(answering(lambda _: {"data": VECTORS[vectors]})) as server:
        embedder = chooser.embedder(remote(server, "embeddings"), FakeEmbedder())
        assert (await embedder.embed(["t"])).report == EngineReport("fake", "1", degraded=True)


async def test_the_fallback_has_half_of_the_caller_s_time(chooser):
    async with engine_server(hanging) as server:
        moderator = chooser.moderator(remote(server, timeout_s=100), FakeModerator())
        loop = asyncio.get_running_loop()
        until = loop.time() + 2
        async with TimeLimit(until):
            found = await moderator.moderate(["t"], ["hate"])
            assert found.report.degraded
            assert loop.time() < until


async def test_the_circuit_opens_after_failures_and_a_probe_closes_it(chooser):
    now = [0.0]
    async with engine_server(sending(http(b"", "503 Service Unavailable"))) as server:
        moderator = chooser.moderator(remote(server, failures=3, cool_down_s=10), FakeModerator())
        moderator.guard.breaker._clock = lambda: now[0]
        for _ in range(6):
            assert (await moderator.moderate(["t"], ["hate"])).report.degraded
        assert len(server.requests) == 3
        now[0] = 11
        assert (await moderator.moderate(["t"], ["hate"])).report.degraded  # the probe fails
        assert (await moderator.moderate(["t"], ["hate"])).report.degraded
        assert len(server.requests) == 4
        now[0] = 22
        server.serve = WELL
        assert not (await moderator.moderate(["t"], ["hate"])).report.degraded
        assert not (await moderator.moderate(["t"], ["hate"])).report.degraded
        assert moderator.guard.breaker.state is State.CLOSED
        assert moderator.guard.observe == {"fallback": 8, "served": 2}


async def test_an_open_circuit_waits_for_nobody(chooser):
    async with engine_server(hanging) as server:
        moderator = chooser.moderator(remote(server, failures=1, timeout_s=0.2), FakeModerator())
        await moderator.moderate(["t"], ["hate"])
        for _ in range(100):
            assert (await moderator.moderate(["t"], ["hate"])).report.degraded
        assert len(server.requests) == 1, "only who asks the engine can wait for it"


async def test_a_caller_who_leaves_takes_the_call_along_and_blames_nobody(chooser):
    async with engine_server(hanging) as server:
        moderator = chooser.moderator(remote(server, failures=1, timeout_s=60), FakeModerator())
        call = asyncio.create_task(moderator.moderate(["t"], ["hate"]))
        while not server.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert moderator.guard.breaker.state is State.CLOSED
        server.serve = WELL
        assert not (await moderator.moderate(["t"], ["hate"])).report.degraded


async def test_in_shadow_mode_the_embedded_engine_serves_and_agreement_is_counted(chooser):
    async with engine_server(WELL) as server:
        moderator = chooser.moderator(remote(server, shadow=True, timeout_s=30), FakeModerator())
        for text in ("hello", "I will kill you"):
            found = await moderator.moderate([text], ["violence"])
            assert found.report == EngineReport("fake", "1")
            await moderator.guard._shadows.wait()
        server.serve = sending(http(b"", "500 Internal Server Error"))
        await moderator.moderate(["hello"], ["violence"])
        await moderator.guard._shadows.wait()
        assert moderator.guard.observe == {"agreed": 1, "differed": 1, "shadow_failed": 1}


async def test_a_hanging_shadow_delays_nobody_and_is_bounded(chooser):
    async with engine_server(hanging) as server:
        moderator = chooser.moderator(remote(server, shadow=True, timeout_s=60), FakeModerator())
        for _ in range(20):
            assert not (await moderator.moderate(["t"], ["hate"])).report.degraded
        assert len(moderator.guard._shadows) == 4
        assert moderator.guard.observe == {"shadow_dropped": 16}
        await chooser.close()
        assert not moderator.guard._shadows


@pytest.fixture
async def rest(database_url):
    async with open_rest(database_url) as opened:
        yield opened


def install(rest, moderator):
    """Serve the middlewares with this moderator."""
    registry = Registry.discover(app.middlewares, engines(moderator=moderator))
    invoke = replace(rest.services.invoke, registry=registry)
    rest.app.state.route_services = replace(rest.services, invoke=invoke)


async def newest(rest):
    events = await rest.call("GET", "/api/v1/audit/events?action=middleware.invoke", roles=["auditor"])
    return events.json()["items"][0]


async def test_the_answer_and_the_record_say_that_the_fallback_served(rest, chooser):
    async with engine_server(hanging) as server:
        moderator = chooser.moderator(remote(server, timeout_s=0.3), FakeModerator())
        install(rest, moderator)
        answer = await rest.invoke("content_moderation", ["I will kill you"])
        assert answer.status_code == 200
        metadata = answer.json()["metadata"]
        assert metadata["degraded"] is True
        assert metadata["engine"] == {"name": "fake", "version": "1", "degraded": True}
        assert metadata["flags"] == ["violent_content"]
        event = await newest(rest)
        assert event["outcome"] == "ok"
        assert event["details"]["degraded"] is True
        assert event["details"]["engine"] == "fake"

        server.serve = WELL
        be_patient(moderator)
        answer = await rest.invoke("content_moderation", ["I will kill you"])
        metadata = answer.json()["metadata"]
        assert "degraded" not in metadata
        assert metadata["engine"] == {"name": "remote-moderations", "version": "big", "degraded": False}
        assert metadata["flags"] == []
        assert "degraded" not in (await newest(rest))["details"]


async def test_the_fallback_serves_within_the_policy_s_time_limit(rest, chooser):
    async with engine_server(dripping) as server:
        install(rest, chooser.moderator(remote(server, timeout_s=100), FakeModerator()))
        put = await rest.put_policy({"timeouts_ms": {"content_moderation": 3000}}, roles=["operator"])
        assert put.status_code == 200, put.text
        answer = await rest.invoke("content_moderation", ["I will kill you"])
        assert (answer.status_code, answer.json()["metadata"]["degraded"]) == (200, True)


async def test_without_a_fallback_the_call_is_refused_and_on_record(rest, chooser):
    async with engine_server(hanging) as server:
        install(rest, chooser.moderator(remote(server, fallback=False, timeout_s=0.3), FakeModerator()))
        answer = await rest.invoke("content_moderation", ["I will kill you"])
        assert answer.json()["code"] == "upstream_unavailable"
        event = await newest(rest)
        assert (event["outcome"], event["error_code"]) == ("refused", "upstream_unavailable")
