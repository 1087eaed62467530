"""The way of a request is the one that docs/architecture.md shows, and does not grow unnoticed."""

import re
from pathlib import Path

import pytest

from tests.way import ROOT, Entry, Way, common, ways

PAGE = (Path(__file__).parents[2] / "docs/architecture.md").read_text("utf-8")
PICTURE = PAGE.partition("```mermaid")[2].partition("```")[0]
FILES = re.findall(r'\["([a-z_/]+\.py)<br>', PICTURE)
LIMITS = {
    way.replace("`", ""): int(files)
    for way, files in re.findall(
        r"^\| (.*`(?:middleware/invoke|tools/call)`.*) \| (\d+) \| \d+ \|$", PAGE, re.MULTILINE
    )
}
"""The most files of each way, as the page says; moves are counted too, but on a busy machine not exactly."""
MCP, REST = (f"middleware/invoke over {door}" for door in ("MCP, revision 2026-07-28", "REST"))


@pytest.fixture(scope="module")
def found() -> dict[str, Way]:
    import asyncio

    return asyncio.run(ways())


def test_every_file_on_the_page_exists():
    named = set(re.findall(r"\b((?:[a-z_]+/)+[a-z_0-9-]+\.py)\b", PAGE))
    assert len(FILES) > 10
    assert not [name for name in named if not any((root / name).is_file() for root in (ROOT, ROOT.parent))]


def test_the_picture_shows_files_that_requests_enter(found):
    only_rest = {"api/invoke/invoke.py"}
    assert set(FILES) - only_rest <= set(found[MCP].entries)
    assert only_rest <= set(found[REST].entries)


def test_the_picture_has_the_order_of_the_way(found):
    order = list(found[MCP].entries)
    places = [order.index(name) for name in FILES if name in order]
    assert places == sorted(places)


def test_the_page_has_a_row_for_each_way(found):
    assert LIMITS.keys() == found.keys()


@pytest.mark.parametrize("way", LIMITS)
def test_a_way_does_not_grow(found, way):
    assert len(found[way].entries) <= LIMITS[way]


def test_wiring_does_no_work_for_a_request(found):
    assert not {"main.py", "assembly.py", "engine_wiring.py", "places_wiring.py"} & {
        name for way in found.values() for name in way.entries
    }


def test_a_watcher_that_runs_during_some_traces_is_no_part_of_the_way():
    def traced(*files):
        return Way({file: Entry(file, "f", 1) for file in files}, len(files))

    tries = [traced("a.py", "watcher.py", "b.py"), traced("other.py", "a.py", "b.py"), traced("a.py", "b.py")]
    assert common(tries) == traced("a.py", "b.py")
