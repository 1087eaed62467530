"""Text without names: prose of the standard library's documentation, its source code, and made-up logs."""

import ast
import random
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from pydoc_data import topics

from app.engines.pii.training.examples import Example
from app.engines.pii.training.lists import entries

_NAMES = re.compile(
    r"Guido|Rossum|[Aa]uthor|Copyright|Written|contributed|[Bb]y [A-Z]|Knuth|Peters|Hettinger|Smith|Monty|Fredrik"
    r"|Lundh|Montanaro|USA|Berkeley|Microsoft|Apple|Google|Barry|Eric|Jack|Jim|John|Fred|Bill|Mersenne|Gauss|Pareto"
    r"|Weibull|Bob|Alice|Ping|Steen|IBM|IEEE|NIST|RSA|Netscape|GNU|Kleene|W3C|New York|London|Paris|Tim |Zebra"
    r"|@\w+\.|Vinay|Sajip|Jane|Ka-Ping|Skip|Greg|Mark|Paul|Moore|Neil|Thomas|Martin|David|Peter|Lutz|Steve|Andrew"
    r"|Marc|Lemburg|Charles|Georg|Brandl|Donald|Chris|Nick|Piers|Lars|Gustäbel|Raymond|Americ|Europe|German|French"
)
_SHORTEST = 25
_FEWEST_WORDS = 12
_PROSE = re.compile(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}")
_HELD_OUT = re.compile(r"^[t-z]")
"""Modules whose names match are kept for the measurement and never trained on."""


def library_files(held_out: bool) -> list[Path]:
    """Return the standard library's modules: those for training, or those kept for the measurement."""
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = [
        *root.glob("*.py"),
        *(path for package in entries("library packages") for path in (root / package).glob("*.py")),
    ]
    return [path for path in sorted(paths) if bool(_HELD_OUT.match(path.stem)) is held_out]


def _docstrings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def _paragraphs(text: str, longest: int) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        plain = re.sub(r"\s+", " ", paragraph.replace("*", "")).strip()
        if _SHORTEST < len(plain) < longest and not _NAMES.search(plain):
            yield plain


def library_prose() -> list[Example]:
    """Return paragraphs of docstrings and of the language reference that hold no name."""
    found: list[str] = []
    for path in library_files(held_out=False):
        for docstring in _docstrings(path.read_text(encoding="utf-8")):
            found += _paragraphs(docstring, 400)
    for topic in topics.topics.values():
        found += [p for p in _paragraphs(topic, 600) if _PROSE.search(p)]
    return [Example(text, (), "library prose") for text in dict.fromkeys(found)]


def _code_blocks(held_out: bool) -> list[str]:
    blocks = []
    for path in library_files(held_out):
        lines = path.read_text(encoding="utf-8").splitlines()
        for begin in range(0, len(lines), 14):
            block = "\n".join(lines[begin : begin + 14])
            if len(block.split()) > _FEWEST_WORDS and not _NAMES.search(block):
                blocks.append(block)
    return blocks


def library_code(count: int, seed: int) -> list[Example]:
    """Return blocks of source code, fourteen lines each."""
    blocks = _code_blocks(held_out=False)
    chosen = random.Random(seed).sample(blocks, min(count, len(blocks)))
    return [Example(block, (), "library code") for block in chosen]


_LEVELS = ("INFO", "WARN", "ERROR", "DEBUG", "CRITICAL", "notice")
_EVENTS = (
    "Connection pool exhausted, waiting for a free slot",
    "Retry 3 of 5 after timeout",
    "Started in 4.2 seconds (process running for 5.1)",
    "Slow query: SELECT id, status FROM orders WHERE updated_at > now() - interval '1 hour'",
    "GET /api/v2/items?page=4 200 18ms",
    "Evicted 1204 keys, 88 MB freed",
    'Rejected request: field "limit" must be at most 500',
    "TLS handshake failed: certificate has expired",
    "Rolling back migration 0042_add_index",
    "Heartbeat missed from node eu-west-1b/i-0fa93c",
    "Deployed release 2.14.0-rc1 to staging",
    "OutOfMemoryError: Java heap space at ByteBuffer.allocate",
    "Container killed (exit code 137)",
    "Loaded 14 plugins from /usr/lib/app/plugins",
    "Mail [EMAIL_2] queued for [PERSON_1]",
    "Wrote checkpoint /var/data/model-final.bin in March run",
)


def log_lines(count: int, seed: int) -> list[str]:
    """Return made-up log lines without a name."""
    chance = random.Random(seed)
    lines = []
    for _ in range(count):
        stamp = (
            f"2026-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}T{chance.randint(0, 23):02d}:17:42Z"
        )
        part, level = chance.choice(entries("log parts")), chance.choice(_LEVELS)
        lines.append(f"{stamp} {level} [{part}-{chance.randint(1, 9)}] {chance.choice(_EVENTS)}")
    return lines


def code_and_logs() -> list[str]:
    """Return the text of the measurement: code of modules never trained on, and log lines."""
    blocks = random.Random(7).sample(_code_blocks(held_out=True), 300)
    return blocks + log_lines(300, 7)
