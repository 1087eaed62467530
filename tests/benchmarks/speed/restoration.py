"""Putting originals back: many handles in a long text over REST, and token by token."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

from app.core.content.handles import Handle, Original, StreamingRestoration
from tests.benchmarks.speed.processes import Measured, sluice
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.texts import SENTENCES, addresses, mail
from tests.benchmarks.speed.wire import drive, exchange, lift_limits, rest

SCOPE = "bench"
CHARACTERS_A_TOKEN = 4


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the tables of whole and of streaming restoration."""
    with sluice(folder) as server:
        took, cpu = asyncio.run(whole(server, sizes))
    yield table(
        f"Restoration of {sizes.handles:,} handles in {sizes.kilobytes} KB, over REST",
        ("p50 ms", "p99 ms", "CPU ms"),
        [(percentile(took, 0.5) * 1e3, percentile(took, 0.99) * 1e3, cpu * 1e3)],
        "Every handle is read from the vault and opened, and the restoration recorded, before the answer. SQLite.",
    )
    rows = [(name, streamed(text, sizes)) for name, text in streams().items()]
    yield table(
        "Streaming restoration, in process",
        ("text", "µs a token"),
        rows,
        f"Tokens of {CHARACTERS_A_TOKEN} characters; only an open handle is held back.",
    )


async def whole(server: Measured, sizes: Sizes) -> tuple[list[float], float]:
    """Return the seconds of each restoration, and the CPU seconds of one."""
    await lift_limits(server)
    lines = [{"type": "text", "text": "\n".join(addresses(sizes.handles))}]
    _, body = await exchange(server, rest(server, "pii_redaction", lines, scope=SCOPE))
    handles = json.loads(body)["content"][0]["text"].split("\n")
    gap = max(1, sizes.kilobytes * 1024 // len(handles) - len(handles[-1]))
    filler = (" ".join(SENTENCES) + " ") * (gap // 500 + 1)
    text = [{"type": "text", "text": "".join(f"{handle} {filler[: gap - 1]}" for handle in handles)}]
    asked = rest(server, "pii_restoration", text, scope=SCOPE)
    _, body = await exchange(server, asked)
    if json.loads(body)["content"][0]["text"].count("@example.com") != len(handles):
        raise RuntimeError("not every handle came back")
    before = server.cpu_s()
    took = await drive(server, [asked] * sizes.restorations, 1)
    return took, (server.cpu_s() - before) / len(took)


def streams() -> dict[str, str]:
    """Return texts as models stream them."""
    answer = " ".join(f"Dear [PERSON_{i % 50 + 1}], {SENTENCES[i % len(SENTENCES)]}" for i in range(100))
    return {
        "prose without handles": mail(10_000, 3),
        "one handle a sentence": answer,
        "JSON": json.dumps({"notes": answer.split(", ")}),
    }


def streamed(text: str, sizes: Sizes) -> float:
    """Return µs per token."""
    originals = {Handle("PERSON", i): Original(f"Maria Keller {i}") for i in range(1, 51)}
    tokens = [text[at : at + CHARACTERS_A_TOKEN] for at in range(0, len(text), CHARACTERS_A_TOKEN)]
    rounds = max(1, sizes.tokens // len(tokens))
    begin = time.perf_counter()
    for _ in range(rounds):
        stream = StreamingRestoration(originals.get)
        for token in tokens:
            stream.feed(token)
        stream.finish()
    return (time.perf_counter() - begin) / (rounds * len(tokens)) * 1e6
