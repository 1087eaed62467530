"""Putting originals back beside LLM Guard's way, string replacement over the answer: what each leaves or mangles."""

import asyncio
import importlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from app.core.content.context import Context
from app.middlewares.pii_restoration import PiiRestoration, PiiRestorationArguments
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.texts import SENTENCES, addresses
from tests.fakes import engines

STRATEGIES = ("exact", "case_insensitive", "fuzzy")
SLOW, FEW = "fuzzy", 20
"""What takes its time for each handle, and how many of the same text it gets."""

ENDLESS = "case_insensitive"


class Engine(NamedTuple):
    """The form of an engine's placeholders, with ``#`` for the number, and how it puts ``originals`` back."""

    form: str
    restore: Callable[[str, dict[str, str]], str]

    def placeholder(self, number: int) -> str:
        """Return the placeholder of that number."""
        return self.form.replace("#", str(number))


class Case(NamedTuple):
    """An answer with the placeholders ``{1}`` and ``{2}``, as a model may spell them, and the originals behind them."""

    what: str
    text: str
    originals: tuple[str, ...]
    spelled: Callable[[str], str] = str


CASES = (
    Case("as written", "Dear {1}, hello {2}.", ("Ana Roe", "Ben Li")),
    Case("in lower case", "dear {1}, hello", ("Ana Roe",), str.lower),
    Case("without brackets", "Dear {1}, hello", ("Ana Roe",), lambda shown: shown[1:-1]),
    Case("escaped for Markdown", "Dear {1}, hello", ("Ana Roe",), lambda shown: shown.replace("_", r"\_")),
    Case("an original that looks like a placeholder", "{1} wrote to {2}", ("{2}", "Ben Li")),
    Case("an original with backslashes", "It lies in {1}.", (r"C:\Users\1\new",)),
    Case("an original with quotes, inside of JSON", '{"note": "{1}"}', ('He said "no".\nBye',)),
    Case("a placeholder with another number", "Dear {2}, hello", ("Ana Roe",)),
    Case("no placeholder", "It was a sad day in 1968, as PERSONS said.", ("Ana Roe",)),
)


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield what comes of answers, and how long a text full of placeholders takes."""
    known = {"Sluice": Engine("[PERSON_#]", _ours), **_llm_guard()}
    yield table(
        "What comes of an answer with placeholders",
        ("answer", *known),
        [(case.what, *(_verdict(case, engine) for engine in known.values())) for case in CASES],
        "Each engine with placeholders of its own form and the originals in memory. *left*: the placeholder stays; "
        "*mangled*: the answer comes out as something else.",
    )
    yield table(
        f"Restoration in {sizes.kilobytes} KB, in process",
        ("engine", "handles", "CPU ms"),
        [_timed(name, engine, sizes) for name, engine in known.items() if not name.endswith(ENDLESS)],
        "Without vault, audit and HTTP, which the table of restoration over REST has. LLM Guard's case_insensitive is "
        "left out: it takes a placeholder for a class of characters, and puts an original for each, until memory ends.",
    )


def _ours(text: str, originals: dict[str, str]) -> str:
    async def restored() -> str:
        context = Context.parse([{"type": "text", "text": text}])
        arguments = PiiRestorationArguments(redactions={name[1:-1]: one for name, one in originals.items()})
        outcome = await _middleware().apply(context, arguments)
        answer: Any = outcome.context.to_json()
        return str(answer[0]["text"])

    return asyncio.run(restored())


@cache
def _middleware() -> PiiRestoration:
    return PiiRestoration(engines())


def _llm_guard() -> dict[str, Engine]:
    """Return LLM Guard's ways, where `make bench` has installed it.

    Its packages import torch and models for what else they do; the one module that restores needs none of it, so it
    is imported from the installed package without them.
    """
    folder = next((Path(path, "llm_guard") for path in sys.path if Path(path, "llm_guard").is_dir()), None)
    if folder is None:
        return {}
    for name, place in (("llm_guard", folder), ("llm_guard.output_scanners", folder / "output_scanners")):
        package = ModuleType(name)
        package.__path__ = [str(place)]
        sys.modules[name] = package
    importlib.import_module("llm_guard.util").configure_logger("ERROR")
    module: Any = importlib.import_module("llm_guard.output_scanners.deanonymize")
    vault: Any = importlib.import_module("llm_guard.vault")

    def way(strategy: str) -> Callable[[str, dict[str, str]], str]:
        def restore(text: str, originals: dict[str, str]) -> str:
            scanner = module.Deanonymize(vault.Vault(list(originals.items())), matching_strategy=strategy)
            answer: str = scanner.scan("", text)[0]
            return answer

        return restore

    return {f"LLM Guard, {one}": Engine("[REDACTED_PERSON_#]", way(one)) for one in STRATEGIES}


def _verdict(case: Case, engine: Engine) -> str:
    """Return what an engine makes of a case, in a word."""
    shown = [engine.placeholder(number) for number in (1, 2)]
    originals = [_filled(one, shown) for one in case.originals]
    given = _filled(case.text, [case.spelled(one) for one in shown])
    in_json = case.text.startswith("{")
    put = [json.dumps(one)[1:-1] if in_json else one for one in originals]
    expected = _filled(case.text, put + shown[len(put) :])
    try:
        answer = engine.restore(given, dict(zip(shown, originals, strict=False)))
    except Exception as error:
        return f"fails: {type(error).__name__}"
    return "right" if answer == expected else "left" if answer == given else "mangled"


def _filled(template: str, values: list[str]) -> str:
    """Return ``template`` with its placeholders filled in one pass."""
    return re.sub(r"\{([12])\}", lambda found: values[int(found[1]) - 1], template)


def _timed(name: str, engine: Engine, sizes: Sizes) -> tuple[object, ...]:
    """Return the time for a text full of placeholders."""
    values = addresses(sizes.handles)
    gap = max(1, sizes.kilobytes * 1024 // len(values) - len(engine.placeholder(len(values))))
    filler = (" ".join(SENTENCES) + " ") * (gap // 500 + 1)
    shown = [engine.placeholder(number) for number in range(1, len(values) + 1)]
    text = "".join(f"{one} {filler[: gap - 1]}" for one in shown)
    slow = name.endswith(SLOW)
    originals = dict(list(zip(shown, values, strict=True))[: FEW if slow else None])
    took = []
    for _ in range(1 if slow else sizes.rounds):
        begin = time.process_time()
        answer = engine.restore(text, originals)
        took.append(time.process_time() - begin)
        if not slow and answer.count("@example.com") != len(values):
            raise RuntimeError("not every original came back")
    return name, len(originals), percentile(took, 0.5) * 1e3
