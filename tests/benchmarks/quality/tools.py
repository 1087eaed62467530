"""How well the tool filter finds, on open sets where their folder is given; how long it takes, and what it saves."""

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.core.content.context import Context
from app.core.contracts.engines import Embedder, ToolCandidate
from app.core.tools.definitions import CHARACTERS_PER_TOKEN, tokens_of
from app.core.tools.offered import OfferedTools, VisibleTools
from app.core.tools.requests import request_of
from app.core.tools.selection import SelectionLimits, selected
from app.engines.encoder import Encoder
from app.engines.ranking.memory import embedded_text
from app.engines.ranking.ranker import EmbeddedToolRanker
from app.engines.ranking.training.sets import Asked, ToolSet, tool_sets
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import SMOKE, Sizes

FOLDER = "SLUICE_TEST_TOOLS_DATA"
SUGGESTED = SelectionLimits(max_tools=10, min_score=0.001, gap=0.0)
"""What tool_filter does where its arguments say nothing."""

_PATIENCE_S = 600.0
_WORDS = re.compile(r"\w+")
_SENTENCES = (
    "Could you look up how many orders we shipped to Norway in the last quarter and put that into a table?",
    "I also talked to the people in the warehouse, who think that the numbers of March are still missing.",
    "Then please write a short mail to the team, and tell them when we meet to talk about next year's plan.",
)

Order = Callable[[str], Awaitable[Sequence[int]]]


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the table of speed, and those of quality where there are sets."""
    yield asyncio.run(_speed(40 if sizes is SMOKE else 400, (200,) if sizes is SMOKE else (1_000, 10_000)))
    given = os.environ.get(FOLDER)
    if not given:
        return
    sets = list(tool_sets(Path(given)))
    yield asyncio.run(_recall(sets, 20 if sizes is SMOKE else None))
    yield asyncio.run(_savings(sets, 20 if sizes is SMOKE else None))


async def _recall(sets: Sequence[ToolSet], limit: int | None) -> str:
    rows = []
    encoder = Encoder(remembered=32_768)
    for one in sets:
        asked = one.reporting[:limit]
        steps = [each for each in asked if len(each.gold) > 1]
        for name, order in await orders(one.tools, encoder):
            rows.append(
                (one.name, len(one.tools), name, *await _figures(order, asked), *await _figures(order, steps))
            )
    return table(
        "Tool filter: which part of the tools that a query needs is among the best 5 and 10",
        ("set", "tools", "ranked by", "R@5", "R@10", "several tools: R@5", "R@10"),
        rows,
        "The half of the queries that no constant was chosen on (a fixed split, in the code). rank-bm25 is the usual "
        "alternative; names, descriptions and parameters are its text, too.",
    )


async def orders(tools: tuple[ToolCandidate, ...], encoder: Embedder) -> list[tuple[str, Order]]:
    """Return the tool filter and its rivals, each by its name."""
    found: list[tuple[str, Order]] = []
    usual = _usual(tools)
    if usual is not None:
        found.append(("rank-bm25", usual))
    rows = (await encoder.embed([embedded_text(tool) for tool in tools])).vectors
    matrix = np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(rows), -1)

    async def by_meaning(text: str) -> Sequence[int]:
        vector = np.frombuffer((await encoder.embed([text])).vectors[0], dtype="<f4")
        return [int(place) for place in np.argsort(-(matrix @ vector), kind="stable")]

    found.append(("the encoder alone", by_meaning))
    for name, ranker in (
        ("words alone (no encoder)", EmbeddedToolRanker()),
        ("tool_filter", EmbeddedToolRanker(encoder, patience_s=_PATIENCE_S)),
    ):
        found.append((name, _ours(ranker, tools)))
    return found


def _usual(tools: Sequence[ToolCandidate]) -> Order | None:
    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        return None
    texts = [" ".join((tool.name, tool.description, *tool.parameters)) for tool in tools]
    index = BM25Okapi([_WORDS.findall(text.lower()) for text in texts])

    async def order(text: str) -> Sequence[int]:
        return [
            int(place) for place in np.argsort(-index.get_scores(_WORDS.findall(text.lower())), kind="stable")
        ]

    return order


def _ours(ranker: EmbeddedToolRanker, tools: tuple[ToolCandidate, ...]) -> Order:
    async def order(text: str) -> Sequence[int]:
        return (await ranker.rank([text], tools)).order[0]

    return order


async def _figures(order: Order, asked: Sequence[Asked]) -> tuple[Any, Any]:
    if not asked:
        return "-", "-"
    found = [(await order(one.text), one.gold) for one in asked]
    five, ten = (
        sum(len(gold.intersection(best[:size])) / len(gold) for best, gold in found) / len(found)
        for size in (5, 10)
    )
    return f"{five:.3f}", f"{ten:.3f}"


async def _savings(sets: Sequence[ToolSet], limit: int | None) -> str:
    """Measure what is suggested with the arguments left alone: tools, tokens, and what is missed."""
    rows = []
    encoder = Encoder(remembered=32_768)
    for one in sets:
        ranker = EmbeddedToolRanker(encoder, patience_s=_PATIENCE_S)
        costs = [tokens_of(_definition(tool)) for tool in one.tools]
        places = {tool.name: place for place, tool in enumerate(one.tools)}
        asked = one.reporting[:limit]
        kept, tokens, recall = 0, 0, 0.0
        for each in asked:
            request = request_of(Context.parse([{"type": "text", "text": each.text}]))
            chosen = await selected(ranker, request, one.tools, SUGGESTED)
            those = [places[name] for name in chosen.chosen]
            kept += len(those)
            tokens += sum(costs[place] for place in those)
            recall += len(each.gold.intersection(those)) / len(each.gold)
        count = len(asked)
        saved = 1 - tokens / count / sum(costs)
        rows.append(
            (one.name, sum(costs), kept / count, tokens // count, f"{saved:.1%}", f"{recall / count:.3f}")
        )
    return table(
        "Tool filter: what a model is shown, with the arguments left alone",
        (
            "set",
            "tokens of all definitions",
            "tools suggested",
            "their tokens",
            "saved",
            "needed tools among them",
        ),
        rows,
        f"{CHARACTERS_PER_TOKEN} characters of JSON a token.",
    )


def _definition(tool: ToolCandidate) -> dict[str, Any]:
    named = [one.partition(" ") for one in tool.parameters]
    properties = {name: {"type": "string", "description": described} for name, _, described in named}
    schema = {"type": "object", "properties": properties}
    return {"name": tool.name, "description": tool.description, "inputSchema": schema}


async def _speed(rounds: int, counts: Sequence[int]) -> str:
    """Measure in CPU time of the process, whose encoder runs in it."""
    conversations = [_conversation(number) for number in range(rounds)]
    rows: list[tuple[Any, ...]] = []
    for count in counts:
        definitions = tuple(_made_up(number) for number in range(count))
        visible = VisibleTools()
        for name, embedder in (
            ("words alone", None),
            ("with the encoder", Encoder(remembered=count + rounds)),
        ):
            ranker = EmbeddedToolRanker(embedder, patience_s=_PATIENCE_S)
            taken = []
            for conversation in conversations:
                started = time.process_time()
                offered: OfferedTools = await visible.offered(definitions)
                await selected(ranker, request_of(conversation), offered.candidates, SUGGESTED)
                taken.append((time.process_time() - started) * 1000)
            cold, *warm = taken
            rows.append((name, count, percentile(warm, 0.5), percentile(warm, 0.95), f"{cold / 1000:.1f} s"))
    return table(
        "Tool filter: CPU for a conversation of 4 KB, never seen before",
        ("engine", "tools", "p50 ms", "p95 ms", "first request for a new list"),
        rows,
        "One process, one request at a time; the request is read, ranked and cut. With the encoder, the encodings of "
        "the last message, of its three steps and of what was said before are part of it, and in a list of more than "
        "2,048 tools those of tools that no request before came near.",
    )


def _made_up(number: int) -> dict[str, Any]:
    does = ("list", "create", "update", "delete", "search", "export", "archive", "share")[number % 8]
    what = ("order", "invoice", "ticket", "report", "meeting", "contract", "shipment")[number // 8 % 7]
    where = f"{('north', 'south', 'east', 'west')[number // 56 % 4]} region {number // 224}"
    text = f"{does.title()} the {what}s of the {where}, with their owners, dates and current state."
    properties = {"limit": {"type": "integer", "description": f"How many {what}s are returned at most."}}
    return {
        "name": f"{does}_{what}_{number}",
        "description": text,
        "inputSchema": {"type": "object", "properties": properties},
    }


def _conversation(number: int) -> Context:
    """Return messages of about 4 KB together: earlier turns, a tool's result, and a request in three steps."""
    told = " ".join(_SENTENCES)
    turns: list[Any] = []
    for turn in range(4):
        turns.append({"role": "user", "content": f"{told} ({number}, {turn})"})
        turns.append({"role": "assistant", "content": f"Here is what I found in round {turn}. {told}"})
    items = f"{told} Rows {number}: " + "; ".join(f"item {row} of case {number}" for row in range(50))
    turns.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": items}]})
    turns.append(
        {"role": "user", "content": f"{_SENTENCES[number % 3]} Search the ticket {number}, then archive it."}
    )
    return Context.parse(turns)
