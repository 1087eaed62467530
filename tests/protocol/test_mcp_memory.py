"""Of a body that was answered or refused nothing stays in memory, although the collector counts objects, not bytes."""

import gc
import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.edge import memory
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import REVISIONS, Wire, client

SIZE = 600_000
"""Large enough for the threads that parse, too small for memory to be given back after it."""

TIMES = 6
LAST = 3 * SIZE
"""What the last request may still hold in another thread: its bytes, its text and its value."""

SECRET = "my key is AKIA5KJ7QWERTZU2MNB3 "


@contextmanager
def kept_bytes(kept: list[int]) -> Iterator[None]:
    """Put into ``kept`` how many more bytes there are behind the block, with what only the collector would free."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        yield
        kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.enable()


@dataclass(frozen=True)
class Invocation:
    """A middleware with one text and its arguments; only this part of the body is sent."""

    name: str
    text: str
    arguments: dict[str, Any] = field(default_factory=dict)
    part: slice = field(default_factory=lambda: slice(None))


def sent(wire: Wire, door: str, invocation: Invocation) -> tuple[str, bytes, dict[str, str]]:
    """Return address, body and headers of an invocation."""
    body: dict[str, Any] = {
        "context": [{"role": "user", "content": invocation.text}],
        "arguments": invocation.arguments,
    }
    address = wire.url.removesuffix("/mcp") + f"/api/v1/middleware/{invocation.name}/invoke"
    headers = {"content-type": "application/json"}
    if door == "mcp":
        body = wire.body("middleware/invoke", {"name": invocation.name, **body})
        address = wire.url
        headers |= wire.headers("middleware/invoke")
    return address, json.dumps(body).encode()[invocation.part], headers


async def kept_of(wire: Wire, door: str, invocation: Invocation) -> tuple[int, int]:
    """Return the status of an invocation, and how many bytes ``TIMES`` of them keep."""
    address, body, headers = sent(wire, door, invocation)
    kept: list[int] = []
    status = 0
    for times, watch in (1, nullcontext()), (TIMES, kept_bytes(kept)):  # what the first call loads stays
        with watch:
            for _ in range(times):
                answer = await wire.http.post(address, content=body, headers=headers)
                status = answer.status_code
                del answer
    return status, kept[0]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_nothing_of_a_body_outlives_its_answer(tmp_path, revision):
    cases = {
        "answered": Invocation("timestamp_injector", "a" * SIZE),
        "not JSON": Invocation("timestamp_injector", "a" * SIZE, part=slice(-1)),
        "refused by the parser": Invocation("timestamp_injector", "a" * SIZE, {"format": float("nan")}),
    }
    async with (
        service(f"sqlite:///{tmp_path}/sluice.db") as (url, _),
        client(url, revision, str(KEY)) as wire,
    ):
        found = {
            (door, case): await kept_of(wire, door, cases[case]) for door in ("rest", "mcp") for case in cases
        }
    assert [status for status, _ in found.values()] == [200, 400, 400] * 2
    assert {case: kept for case, (_, kept) in found.items() if kept > LAST} == {}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_a_refusal_leaves_in_cycles_is_collected_after_some_bytes(tmp_path, revision, monkeypatch):
    blocked = Invocation("secret_redaction", SECRET + "a" * SIZE, {"mode": "block"})
    monkeypatch.setattr(memory, "_MOST_UNCOLLECTED_BYTES", SIZE)
    async with (
        service(f"sqlite:///{tmp_path}/sluice.db") as (url, _),
        client(url, revision, str(KEY)) as wire,
    ):
        found = {door: await kept_of(wire, door, blocked) for door in ("rest", "mcp")}
    assert found["rest"][0] == 403
    # What the last one leaves is collected behind the next.
    assert {door: kept for door, (_, kept) in found.items() if kept > 2 * LAST} == {}


def test_what_only_the_collector_would_free_is_seen():
    kept: list[int] = []
    with kept_bytes(kept):
        for _ in range(TIMES):
            cycle: list[Any] = [bytes(SIZE)]
            cycle.append(cycle)
            del cycle
    assert kept[0] > TIMES * SIZE
