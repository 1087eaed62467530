"""A guarded engine takes the calls of its contract to the guard, and is the remote engine otherwise."""

import pytest

from app.core.contracts.engines import Embedder, Embeddings, EngineReport, SecretFindings, SecretScanner
from app.core.errors import UpstreamUnavailableError
from app.engines.choosing import guarded
from app.engines.remote.embeddings import requests_for
from app.engines.resilience import EngineFallback, RemoteEngineError, Rules


class Scanner:
    def __init__(self, name, *, fails=False):
        self.name = name
        self.fails = fails
        self.calls = []

    async def scan(self, texts, options):
        self.calls.append((texts, options))
        if self.fails:
            raise RemoteEngineError("broken")
        return SecretFindings([], EngineReport(self.name, "1"))

    def providers(self):
        return frozenset({self.name})


class EmbedderOfNothing:
    async def embed(self, texts):
        return Embeddings([], EngineReport("none", "1"))


def guard(**rules):
    return EngineFallback("secrets", Rules(**rules), lambda expected, result: expected == result)


async def test_the_remote_engine_receives_the_arguments_and_the_embedded_one_is_left_alone():
    remote, embedded = Scanner("remote"), Scanner("embedded")
    scanner = guarded(SecretScanner.scan, remote, embedded, guard())
    assert (await scanner.scan(["a"], options="b")).report == EngineReport("remote", "1")
    assert (remote.calls, embedded.calls) == ([(["a"], "b")], [])
    assert scanner.providers() == {"remote"}


async def test_the_embedded_engine_serves_where_the_remote_one_fails():
    remote, embedded = Scanner("remote", fails=True), Scanner("embedded")
    scanner = guarded(SecretScanner.scan, remote, embedded, guard())
    assert (await scanner.scan(["a"], options="b")).report == EngineReport("embedded", "1", degraded=True)
    assert embedded.calls == [(["a"], "b")]
    alone = guarded(SecretScanner.scan, remote, embedded, guard(fallback=False))
    with pytest.raises(UpstreamUnavailableError):
        await alone.scan(["a"], options="b")


@pytest.mark.parametrize(("texts", "requests"), [(0, 1), (1, 1), (64, 1), (65, 2), (129, 3)])
async def test_the_time_limit_is_that_of_all_requests_of_one_call(monkeypatch, texts, requests):
    limits = []

    async def call(self, remote, embedded, *, parts=1):
        limits.append(parts)
        return await remote()

    monkeypatch.setattr(EngineFallback, "call", call)
    engine = EmbedderOfNothing()
    await guarded(Embedder.embed, engine, engine, guard(), requests_for).embed(["x"] * texts)
    await guarded(Embedder.embed, engine, engine, guard()).embed(["x"] * texts)
    assert limits == [requests, 1]
