"""Read the fenced blocks of the pages in Markdown: what is to be run, what it prints, and what is not run and why.

A block is one of these:

* ``sh`` or ``python``: it is run, all blocks of a page in one folder and in their order. A comment before it,
  ``<!-- not run: REASON -->``, leaves it out.
* ``json`` or ``text`` that follows such a block: what it prints. ``…`` stands for anything.
* any language after ``<!-- file: NAME -->``: a file that the blocks after it use.
* anything else is only shown; ``json`` and ``yaml`` must be valid.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)\s*$")
COMMENT = re.compile(r"^ *<!-- (?P<word>not run|file|in|prints)(?:: (?P<value>.*?))? -->$")
RUN = {"sh", "python"}
SHOWN = {"json", "yaml", "toml", "text", "mermaid", "nginx", "haproxy", "http", "ini"}
OUTPUT = {"json", "text"}
ANY = "…"
SHORTEST_REASON = 12
ROUNDED = 0.05


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line it begins at, and what the comment before it says."""

    line: int
    language: str
    text: str
    not_run: str | None = None
    file: str | None = None
    output: bool = False
    """Whether it is what the block before it prints."""

    @property
    def is_run(self) -> bool:
        return self.language in RUN and self.not_run is None and self.file is None


def pages() -> list[Path]:
    """Return all pages that a reader may come to."""
    top = [
        ROOT / name
        for name in (
            "README.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "deploy/README.md",
            "clients/python/README.md",
        )
    ]
    return [path for path in [*top, *sorted((ROOT / "docs").rglob("*.md"))] if path.is_file()]


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page; ValueError where a fence is not closed or names no language that is known."""
    blocks: list[Block] = []
    for block in _fenced(page.splitlines()):
        if block.language not in RUN | SHOWN:
            raise ValueError(f"line {block.line}: a block names one of {', '.join(sorted(RUN | SHOWN))}")
        if block.not_run is not None and len(block.not_run) < SHORTEST_REASON:
            raise ValueError(f"line {block.line}: say why the block is not run")
        if block.output and not (blocks and blocks[-1].is_run and block.language in OUTPUT):
            raise ValueError(f"line {block.line}: an output of json or text follows a block that is run")
        blocks.append(block)
    return blocks


def _fenced(lines: list[str]) -> Iterator[Block]:
    """Yield each fenced block with the comment before it."""
    notes: dict[str, str] = {}
    after_run = False  # nothing but blank lines since a block that is run
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        if comment := COMMENT.match(line):
            notes[comment["word"]] = comment["value"] or ""
        elif fence := FENCE.match(line):
            text = _until_closed(numbered, fence["indent"], number)
            language = fence["language"]
            output = "prints" in notes or (after_run and language in OUTPUT and not notes)
            block = Block(number, language, text, notes.get("not run"), notes.get("file"), output)
            after_run = block.is_run
            notes = {}
            yield block
        elif line.strip():
            notes, after_run = {}, False


def _until_closed(numbered: Iterator[tuple[int, str]], indent: str, start: int) -> str:
    text = []
    for _, line in numbered:
        if line.strip() == "```":
            return "\n".join(text) + "\n"
        text.append(line.removeprefix(indent))
    raise ValueError(f"line {start}: the block is not closed")


def invalid(block: Block) -> str | None:
    """Return why a block of JSON or YAML cannot be read, or None."""
    try:
        if block.language == "json" and not block.output:
            json.loads(block.text)
        elif block.language == "yaml":
            yaml.safe_load(block.text)
    except ValueError as error:
        return f"line {block.line}: {error}"
    except yaml.YAMLError as error:
        return f"line {block.line}: {error}"
    return None


def printed_as_shown(shown: Block, printed: str) -> bool:
    """Say whether a block printed what the page shows."""
    if shown.language == "json":
        return matches(json.loads(shown.text), json.loads(printed))
    pattern = ".*?".join(re.escape(part) for part in _lines(shown.text).split(ANY))
    return re.fullmatch(pattern, _lines(printed), re.DOTALL) is not None


def matches(shown: Any, actual: Any) -> bool:
    """Compare JSON with what a page shows of it.

    ``…`` in a string stands for any text, a string that is nothing else for any value, and as a member's name or
    at the end of a list for whatever more there is. A number with a point, such as a score, is shown rounded.
    """
    if shown == ANY:
        return True
    if isinstance(shown, str) and isinstance(actual, str):
        pattern = ".*?".join(re.escape(part) for part in shown.split(ANY))
        return re.fullmatch(pattern, actual, re.DOTALL) is not None
    if isinstance(shown, dict) and isinstance(actual, dict):
        named = shown.keys() - {ANY}
        complete = ANY in shown or named == actual.keys()
        return (
            complete and named <= actual.keys() and all(matches(shown[name], actual[name]) for name in named)
        )
    if isinstance(shown, list) and isinstance(actual, list):
        if shown and shown[-1] == ANY:
            shown, actual = shown[:-1], actual[: len(shown) - 1]
        return len(shown) == len(actual) and all(map(matches, shown, actual))
    if isinstance(shown, float) and isinstance(actual, float):
        return abs(shown - actual) <= ROUNDED
    return type(shown) is type(actual) and bool(shown == actual)


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
