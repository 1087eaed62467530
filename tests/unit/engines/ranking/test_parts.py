"""Words, steps, the calibration recipe: the parts that the ranker is made of."""

import asyncio
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from app.core.contracts.engines import ToolCandidate
from app.engines.ranking.index import ToolFeatures, grams_of
from app.engines.ranking.postings import Cells
from app.engines.ranking.steps import MAX_STEPS, steps
from app.engines.ranking.training.calibrate import fitted, rows_of
from app.engines.ranking.training.sets import tool_sets
from app.engines.ranking.words import stem, terms


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("getUserById", ["get", "user", "id"]),
        ("get_user_by_id", ["get", "user", "id"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("math.factorial", ["math", "factorial"]),
        ("convert-2024", ["convert", "2024"]),
    ],
)
def test_identifiers_are_read_as_words(name: str, expected: list[str]) -> None:
    assert terms(name) == [stem(word) for word in expected]


@pytest.mark.parametrize(
    "forms",
    [
        ("calculate", "calculates", "calculated", "calculating", "calculation", "calculator"),
        ("plan", "plans", "planned", "planning"),
        ("query", "queries"),
        ("box", "boxes"),
        ("translate", "translation", "translating"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["news", "bus", "s3", "été", "日本"])
def test_short_and_foreign_words_stay_themselves(word: str) -> None:
    assert stem(word) in {word, "new"}


def test_a_request_for_one_thing_has_no_steps() -> None:
    assert steps("Find the area of a triangle with a base of 10 and a height of 5.") == []
    assert steps("") == steps("hello") == []


def test_sentences_list_items_and_clauses_are_steps() -> None:
    assert steps("First, scan the network. Then translate the report, and finally send it to the team") == [
        "First, scan the network",
        "Then translate the report",
        "send it to the team",
    ]
    assert steps("Please:\n1. clone the repository\n2. build the image\n- push the image") == [
        "clone the repository",
        "build the image",
        "push the image",
    ]
    assert len(steps(". ".join(f"step number{one} about thing{one}" for one in range(50)))) == MAX_STEPS


def written(folder: Path) -> Path:
    chance = random.Random(1)
    nouns = [f"{a}{b}" for a in ("car", "dog", "map", "sun", "tea") for b in ("top", "way", "set", "run")]
    tools = [{"name": f"get_{noun}", "description": f"Get the {noun}", "parameters": {}} for noun in nouns]
    asked = [
        {"query": f"I want a {noun} now", "gold": [f"get_{noun}"]} for noun in chance.choices(nouns, k=60)
    ]
    (folder / "made_tools.jsonl").write_text("\n".join(map(json.dumps, tools)))
    (folder / "made_queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    return folder


def test_the_recipe_gives_the_same_numbers_twice_and_never_turns_the_order(tmp_path: Path) -> None:
    folder = written(tmp_path)
    first, second = (fitted(asyncio.run(rows_of(list(tool_sets(folder)), None))) for _ in range(2))
    assert first == second
    assert first.fused > 0 <= min(first.grams, first.meaning)


def test_the_halves_of_a_set_are_always_the_same_and_share_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (one,), (again,) = list(tool_sets(folder)), list(tool_sets(folder))
    assert one == again
    assert len(one.choosing) == len(one.reporting) == 30


def test_cells_are_counted_as_column_by_column() -> None:
    chance = np.random.default_rng(3)
    columns = [chance.integers(0, 2**32, size=size) % 97 for size in (0, 5, 300, 1, 0, 80)]
    columns[1][:] = 2**32 - 1
    expected = sorted(
        (int(key), tool, int(often))
        for tool, column in enumerate(columns)
        for key, often in zip(*np.unique(column, return_counts=True), strict=True)
    )
    cells = Cells.of(columns)
    assert list(zip(*(part.tolist() for part in cells), strict=True)) == expected
    spread = Counter(key for key, _, _ in expected)
    assert cells.per_cell().tolist() == [spread[key] for key, _, _ in expected]
    assert [len(part) for part in Cells.of([])] == [len(part) for part in Cells.of([columns[0]])] == [0] * 3


def test_many_definitions_are_read_as_each_alone() -> None:
    tools = [
        ToolCandidate(f"getThing{number}", "Find a thing. " * (number % 40), (f"thingId{number} of it",))
        for number in range(600)
    ] + [ToolCandidate("", "", ()), ToolCandidate("x", "", ())]
    together = ToolFeatures.of(tools)
    for tool, read in zip(tools, together, strict=True):
        [alone] = ToolFeatures.of([tool])
        assert np.array_equal(read.words, alone.words)
        assert sorted(read.grams.tolist()) == sorted(
            grams_of(f"{tool.name} {tool.description[:500]}").tolist()
        )
    assert ToolFeatures.of([]) == []
