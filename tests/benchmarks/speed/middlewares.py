"""What each middleware takes for 4 KB with its engine warm, and the memory of a process that has loaded them all."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.speed.processes import Measured, sluice
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.texts import mail
from tests.benchmarks.speed.wire import drive, exchange, lift_limits, request, rest

KIB = 1024
DOCUMENTS = 300
TOOLS = [
    {
        "name": f"{verb}_{thing}",
        "description": f"{verb.title()} {thing.replace('_', ' ')} records of the company by id, date or customer.",
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "since": {"type": "string"}},
        },
    }
    for verb in ("list", "create", "update", "delete", "search", "export")
    for thing in ("invoice", "parcel", "meeting", "contract", "customer", "ticket", "audit_report", "backup")
]


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of times, then that of memory."""
    with sluice(folder) as server:
        idle = server.rss_mib()
        rows = asyncio.run(measured(server, sizes))
        loaded = server.rss_mib()
    yield table(
        "Each middleware on 4 KB, one call after the other over REST",
        ("middleware", "p50 ms", "p95 ms", "CPU ms"),
        rows,
        f"Engines warm, a different text each time; tool_filter ranks {len(TOOLS)} definitions, document_retrieval "
        f"searches {DOCUMENTS} documents. Authentication, policy, audit and answer included. SQLite.",
    )
    yield table(
        "Memory of the service with every engine loaded, resident",
        ("", "server MiB", "detector and its parent MiB"),
        [("idle", idle[0], sum(idle[1:])), ("all loaded", loaded[0], sum(loaded[1:]))],
        "Pages that processes share are counted in each.",
    )


async def measured(server: Measured, sizes: Sizes) -> list[tuple[Any, ...]]:
    """Return name, p50, p95 and CPU, in milliseconds, of each middleware."""
    await lift_limits(server)
    await fill(server, min(DOCUMENTS, sizes.redactions))
    rows = []
    for seed, name in enumerate(CALLS):
        made = [CALLS[name](server, name, mail(4 * KIB, seed * 100_000 + n)) for n in range(sizes.redactions)]
        # The first calls load the engine.
        await drive(
            server, [CALLS[name](server, name, mail(4 * KIB, seed * 100_000 - n - 1)) for n in range(5)], 1
        )
        before = server.cpu_s()
        took = await drive(server, made, 1)
        cpu = (server.cpu_s() - before) / len(took)
        rows.append((f"`{name}`", *(percentile(took, part) * 1e3 for part in (0.5, 0.95)), cpu * 1e3))
    return rows


async def fill(server: Measured, count: int) -> None:
    """Put documents into one collection."""
    await exchange(server, request(server, "/api/v1/collections/notes", {}, method="PUT"))
    for number in range(count):
        document = {
            "external_id": f"n{number}",
            "title": f"Note {number}",
            "text": mail(KIB, 7_000_000 + number),
        }
        await exchange(server, request(server, "/api/v1/collections/notes/documents", document))


def plain(server: Measured, name: str, text: str) -> bytes:
    """Return a call with one text."""
    return rest(server, name, [{"type": "text", "text": text}])


def tools(server: Measured, name: str, text: str) -> bytes:
    """Return a call that ranks tools for a conversation."""
    return rest(server, name, [{"role": "user", "content": text}], availableTools=TOOLS)


def answer(server: Measured, name: str, text: str) -> bytes:
    """Return a call with an answer of 1 KB to a context of 3 KB, a part of it made up."""
    sentences = text.split(". ")
    random.Random(text).shuffle(sentences)
    said = ". ".join(sentences)[:KIB].replace("Thursday", "Friday")
    return rest(
        server, name, [{"role": "user", "content": text[: 3 * KIB]}, {"role": "assistant", "content": said}]
    )


CALLS = {
    "pii_redaction": plain,
    "secret_redaction": plain,
    "content_moderation": plain,
    "prompt_injection": plain,
    "tool_filter": tools,
    "document_retrieval": plain,
    "hallucination_detection": answer,
    "timestamp_injector": plain,
    "audit_logging": plain,
}
