"""The gateway beside LiteLLM's proxy and a bare forwarder: what it adds to a turn, to an event, to 1,000 streams."""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp

from tests.benchmarks.speed import gateway_streams as many
from tests.benchmarks.speed.gateway_client import CHAT, NAME, Through, headers_in, stream, url
from tests.benchmarks.speed.processes import Measured, free_port, sluice, started
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.texts import mail
from tests.benchmarks.speed.wire import exchange, request, store_policy
from tests.outside.litellm_proxy import MASTER_KEY, PYTHON, command, configuration, environment

TURNS = 30
UNSEEN = 1_000
LIMITS = {"requests_per_second": 1e6, "burst": 10**6, "in_flight": 10**4, "deadline_ms": 600_000}
REDACTION = "gateway_redaction"


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the tables of turns, of events and of many streams."""
    with ExitStack() as stack:
        port = free_port()
        serve = ["-m", "tests.benchmarks.speed.gateway_provider", str(port)]
        provider = stack.enter_context(started(serve, port, "/sent", {}, ""))
        address = f"http://127.0.0.1:{port}"
        cases = dict(case for start in STARTS for case in start(stack, address, folder))
        yield asyncio.run(_turns(cases, sizes))
        yield asyncio.run(_events(cases, provider, sizes))
        yield asyncio.run(many.table_of(cases, sizes))


def ours(stack: ExitStack, address: str, folder: Path) -> Iterator[tuple[str, Through]]:
    """Yield the gateway with the policy's usual redactions, and one whose policy names none."""
    for name, gateway in (("Sluice", {}), ("Sluice, no redaction", {"pipelines": [{"outbound": []}]})):
        server = stack.enter_context(sluice(folder, SLUICE_UPSTREAMS__ALLOWED_NETWORKS="127.0.0.0/8"))
        asyncio.run(_prepared(server, address, gateway))
        yield name, Through(server, f"/openai{CHAT}")


async def _prepared(server: Measured, address: str, gateway: Any) -> None:
    entry = {"kind": "openai", "baseUrl": f"{address}/v1", "apiKey": "sk-of-the-provider-0123456789"}
    entry |= {"models": ["gpt-*"], "allowedNetworks": ["127.0.0.0/8"]}
    entry["limits"] = {"firstByteS": 1800, "idleS": 1800}  # while others open, the first streams wait
    await exchange(server, request(server, "/api/v1/providers/main", entry, method="PUT"))
    await store_policy(server, {"limits": LIMITS, "gateway": gateway})
    steps = [{"name": "pii_redaction"}, {"name": "secret_redaction"}]
    await exchange(server, request(server, f"/api/v1/pipelines/{REDACTION}", {"steps": steps}, method="PUT"))


def litellm(stack: ExitStack, address: str, folder: Path) -> Iterator[tuple[str, Through]]:
    """Yield LiteLLM's proxy, where it is installed."""
    if not PYTHON.exists():
        return
    port, file = free_port(), configuration(folder / "litellm.json", f"{address}/v1")
    server = started(command(file, port), port, "/health/liveliness", environment(), MASTER_KEY, PYTHON)
    yield "LiteLLM 1.106.2, no masking", Through(stack.enter_context(server))


def forwarder(stack: ExitStack, address: str, _folder: Path) -> Iterator[tuple[str, Through]]:
    """Yield the bare forwarder."""
    port = free_port()
    serve = ["-m", "tests.benchmarks.speed.gateway_forwarder", str(port), address]
    yield "bare aiohttp forwarder", Through(stack.enter_context(started(serve, port, "/", {}, "")))


STARTS: tuple[Callable[[ExitStack, str, Path], Iterator[tuple[str, Through]]], ...] = (
    ours,
    forwarder,
    litellm,  # last: what it asks for again and again stays with the provider for minutes
)


def conversation() -> list[Any]:
    """Return what was said in thirty turns, half a KB each."""
    return [
        {"role": ("user", "assistant")[number % 2], "content": mail(512, number)}
        for number in range(2 * TURNS)
    ]


def turn(number: int) -> dict[str, Any]:
    """Return a new turn of 4 KB, of which no other turn has a line."""
    return {"role": "user", "content": f"My name is {NAME}. Number {number}. {mail(4_000, 1_000 + number)}"}


async def _turns(cases: dict[str, Through], sizes: Sizes) -> str:
    """Measure new turns of an old conversation, one after the other, in interleaved rounds."""
    old, count = conversation(), max(sizes.redactions // 10, 3)
    cpu: dict[str, list[float]] = {}
    took: dict[str, list[float]] = {}
    alone = Through(cases["Sluice"].server, f"/api/v1/middleware/{REDACTION}/invoke")
    every = {**cases, "the same redaction over REST": alone}
    for shift in range(sizes.rounds + 1):
        for name, through in every.items():
            # Texts of its own for each: the detector of one server remembers what it has seen.
            first = (shift + UNSEEN * (through is alone)) * count
            numbers = range(first, first + count)
            bodies = [_turn_of(through, through is alone, old, turn(number)) for number in numbers]
            before = through.server.cpu_s()
            seconds = await _sent(through, bodies)
            if shift:  # the first round only makes the conversation an old one
                cpu.setdefault(name, []).append((through.server.cpu_s() - before) / count * 1000)
                took.setdefault(name, []).extend(seconds)
    medians = {name: statistics.median(values) for name, values in cpu.items()}
    base = medians["bare aiohttp forwarder"]
    added = medians["Sluice"] - medians["the same redaction over REST"]
    rows = [
        (name, medians[name], medians[name] - base, *(percentile(took[name], p) * 1000 for p in (0.5, 0.95)))
        for name in every
    ]
    return table(
        "A new turn of 4 KB in a conversation of 30 turns, through a gateway",
        ("through", "CPU ms", "above the forwarder", "ms p50", "ms p95"),
        rows,
        f"Whole answers of chat completions, one after the other; each request has all 30 KB before it. CPU of all "
        f"processes of the server. Sluice above its own redaction of the same conversation over REST (which "
        f"authenticates and records, too): {added:.1f} ms; without redaction it still authenticates, records three "
        f"times, keeps the vault and checks what leaves. LiteLLM's own masking calls two Presidio services over HTTP, "
        f"which nothing here has.",
    )


def _turn_of(through: Through, alone: bool, old: list[Any], last: dict[str, Any]) -> bytes:
    if not alone:
        return through.asked([*old, last])
    body = {"arguments": {"scope": "bench-alone"}, "context": [*old, last]}
    return request(through.server, through.path, body)


async def _sent(through: Through, requests: list[bytes]) -> list[float]:
    took = []
    async with aiohttp.ClientSession() as session:
        for data in requests:
            head, _, body = data.partition(b"\r\n\r\n")
            begin = time.perf_counter()
            async with session.post(url(through), data=body, headers=headers_in(head)) as answer:
                text = await answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"{answer.status}: {text[:300]!r}")
            took.append(time.perf_counter() - begin)
    return took


async def _events(cases: dict[str, Through], provider: Measured, sizes: Sizes) -> str:
    """Measure CPU of a streamed event, and how long the name is on its way."""
    events = 2_000 if sizes.rounds > 1 else 50
    rows = []
    for name, through in cases.items():
        each, delays = [], []
        async with aiohttp.ClientSession() as session:
            await stream(session, through, "events=5")
            for _ in range(sizes.rounds):
                spent = []
                for count in (0, events):
                    before = through.server.cpu_s()
                    for _ in range(3):
                        seen = await stream(session, through, f"events={count}")
                        if not seen.text.startswith(NAME) or seen.text.count("word") != count:
                            raise RuntimeError(f"{name} changed the text: {seen.text[:80]!r}")
                        async with session.get(f"http://127.0.0.1:{provider.port}/sent") as sent:
                            delays.append((seen.first - await sent.json()) * 1000)
                    spent.append(through.server.cpu_s() - before)
                each.append((spent[1] - spent[0]) / (3 * events) * 1e6)
        rows.append((name, statistics.median(each), percentile(delays, 0.5), percentile(delays, 0.95)))
    return table(
        "Streams through a gateway",
        ("through", "CPU µs an event", "ms to the name p50", "p95"),
        rows,
        f"Chat completions of {events:,} events, one after the other. The time begins when "
        "the provider writes the handle (or the name, where nothing was hidden) and ends when the client has the name.",
    )
