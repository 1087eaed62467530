"""How fast secrets are found, how many findings are none on ordinary code, and that every format is found."""

import asyncio
import importlib.util
import random
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from app.core.contracts.engines import SecretOptions
from app.engines.secrets.rules import FORMATS
from app.engines.secrets.scanner import RuleScanner
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import SMOKE, Sizes

_SHORT = 4_096
_RIVAL_SHARE = 20
"""The rival reads one of so many files: it is hundreds of times slower."""

Count = Callable[[Sequence[str]], int]


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield one table for the scanner and, where it is installed, detect-secrets on the same files and examples."""
    texts = _code(300_000 if sizes is SMOKE else 20_000_000)
    examples = _examples(1 if sizes is SMOKE else 3)
    rows = [("Sluice", *_figures(_ours(), texts, examples), *_latency(texts, 20 if sizes is SMOKE else 500))]
    if importlib.util.find_spec("detect_secrets") is not None:
        share = _RIVAL_SHARE
        rows.append(
            ("detect-secrets", *_figures(_detect_secrets(), texts[::share], examples[::share]), "-", "-")
        )
    yield table(
        "Secrets",
        (
            "scanner",
            "MB/s of CPU time",
            "findings per MB of code",
            "examples found",
            "p50 ms, 4 KB",
            "p95 ms, 4 KB",
        ),
        rows,
        "Code is the standard library's source, with its tests. Examples are drawn from the descriptions of the "
        f"formats; detect-secrets reads one file and one example in {_RIVAL_SHARE} and has no rules for most.",
    )


def _figures(count: Count, texts: Sequence[str], examples: Sequence[str]) -> tuple[Any, ...]:
    count(["password = 'warm-9-up'"])
    megabytes = sum(map(len, texts)) / 1e6
    start = time.process_time()
    findings = count(texts)
    speed = megabytes / (time.process_time() - start)
    found = sum(count([text]) > 0 for text in examples)
    return speed, findings / megabytes, found / len(examples)


def _ours() -> Count:
    scanner = RuleScanner()

    def count(texts: Sequence[str]) -> int:
        return sum(map(len, asyncio.run(scanner.scan(texts, SecretOptions())).spans))

    return count


def _detect_secrets() -> Count:
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    def count(texts: Sequence[str]) -> int:
        secrets = SecretsCollection()
        with tempfile.TemporaryDirectory() as folder, default_settings():
            for number, text in enumerate(texts):
                path = Path(folder, f"{number}.py")
                path.write_text(text, encoding="utf-8")
                secrets.scan_file(str(path))
        return sum(len(found) for found in secrets.data.values())

    return count


def _latency(texts: Sequence[str], rounds: int) -> tuple[float, float]:
    scanner, whole = RuleScanner(), "".join(texts[:50])

    async def timed() -> list[float]:
        times = []
        await scanner.scan([whole], SecretOptions())  # compiles what is compiled on first use
        for number in range(rounds):
            at = number * _SHORT % max(len(whole) - _SHORT, 1)
            start = time.perf_counter()
            await scanner.scan([whole[at : at + _SHORT]], SecretOptions())
            times.append((time.perf_counter() - start) * 1000)
        return times

    times = asyncio.run(timed())
    return percentile(times, 0.5), percentile(times, 0.95)


def _code(most: int) -> list[str]:
    texts, total = [], 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" not in path.parts and total < most:
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
            total += len(texts[-1])
    return texts


def _examples(each: int) -> list[str]:
    draw = random.Random(2026)
    return [kind.in_context(kind.example(draw)) for kind in FORMATS for _ in range(each)]
