"""Every door that streams, behind nginx whose settings say nothing of streams: what is sent arrives at once."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.outside.proxies import proxied
from tests.outside.test_proxies import SOON_S, initialized
from tests.protocol.mcp_wire import ACCEPT, ENVELOPE, HANDSHAKE, MODERN

pytestmark = [pytest.mark.outside, pytest.mark.needs("nginx")]

TEXT = "I am Ottilie Brandstätter."
QUESTION = [{"role": "user", "content": TEXT}]
DOORS = {
    "/openai/v1/chat/completions": {"model": "gpt-5-mini", "messages": QUESTION},
    "/openai/v1/responses": {"model": "gpt-5-mini", "input": TEXT},
    "/anthropic/v1/messages": {"model": "claude-x", "max_tokens": 100, "messages": QUESTION},
}
PAUSE_S = 0.2
LISTEN = "subscriptions/listen"


@contextmanager
def behind(name: str, gateway: Any, folder: Path) -> Iterator[httpx2.Client]:
    """Yield a client of the service behind a proxy."""
    headers = {"authorization": f"Bearer {gateway.key}"}
    with (
        proxied(name, gateway.service.port, folder) as url,
        httpx2.Client(
            base_url=url, headers=headers, timeout=httpx2.Timeout(30, read=SOON_S), trust_env=False
        ) as client,
    ):
        yield client


@pytest.fixture(params=["nginx as it comes", "nginx that packs"])
def http(request: pytest.FixtureRequest, gateway: Any, tmp_path: Path) -> Iterator[httpx2.Client]:
    with behind(request.param, gateway, tmp_path) as client:
        yield client


@pytest.fixture
def keeping(gateway: Any, tmp_path: Path) -> Iterator[httpx2.Client]:
    """Return a client behind an nginx that is told to overlook what the service says of buffers."""
    with behind("nginx that keeps", gateway, tmp_path) as client:
        yield client


@contextmanager
def listening(http: httpx2.Client, revision: str) -> Iterator[httpx2.Response]:
    """Open the stream of notifications on a revision of MCP."""
    if revision == HANDSHAKE:
        headers = {**initialized(http), "accept": "text/event-stream"}
        with http.stream("GET", "/mcp", headers=headers) as stream:
            yield stream
    else:
        headers = {"accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": LISTEN}
        params = {"notifications": {"groupsListChanged": True}, "_meta": ENVELOPE}
        body = {"jsonrpc": "2.0", "id": 1, "method": LISTEN, "params": params}
        with http.stream("POST", "/mcp", json=body, headers=headers) as stream:
            yield stream


def changed(http: httpx2.Client) -> None:
    """Make a group, of which every stream of notifications tells."""
    group = {"name": f"g{time.time_ns()}", "members": [{"kind": "tool", "name": "mail__*"}]}
    made = http.put(f"/api/v1/groups/{group['name']}", json=group)
    assert made.is_success, made.text


def waits(http: httpx2.Client, gateway: Any, path: str) -> int:
    """Return how often a client waits for more of a streamed answer; the provider pauses five times."""
    gateway.provider.pause_s, gateway.provider.pieces = PAUSE_S, 10
    with http.stream("POST", path, json={**DOORS[path], "stream": True}) as answer:
        assert answer.status_code == 200
        arrivals = [time.monotonic() for _ in answer.iter_bytes()]
    return sum(later - earlier > PAUSE_S / 2 for earlier, later in pairwise(arrivals))


@pytest.mark.parametrize("path", DOORS)
def test_an_answer_of_a_model_arrives_as_it_is_written(http: httpx2.Client, gateway: Any, path: str) -> None:
    assert waits(http, gateway, path) >= 3


@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
def test_a_notification_arrives_while_its_stream_is_open(http: httpx2.Client, revision: str) -> None:
    with listening(http, revision) as stream:
        assert stream.status_code == 200
        lines = (line[5:] for line in stream.iter_lines() if line.startswith("data:") and line[5:].strip())
        if revision == MODERN:
            assert "acknowledged" in json.loads(next(lines))["method"]
        asked = time.monotonic()
        changed(http)
        message = json.loads(next(lines))
    assert message["method"] == "notifications/groups/list_changed"
    assert time.monotonic() - asked < SOON_S


@pytest.mark.parametrize("path", DOORS)
def test_a_proxy_that_keeps_an_answer_is_seen(keeping: httpx2.Client, gateway: Any, path: str) -> None:
    """Negative control: without what the service says, what follows the first bytes comes at the end."""
    assert waits(keeping, gateway, path) <= 1


def test_a_proxy_that_keeps_notifications_is_seen(keeping: httpx2.Client) -> None:
    """Negative control: not even the head of the stream arrives."""
    with pytest.raises(httpx2.ReadTimeout), listening(keeping, HANDSHAKE):
        pass
