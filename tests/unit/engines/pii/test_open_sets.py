"""Open sets are read with their labels; where only people are labelled, other capitals teach nothing."""

import gzip
import json
from pathlib import Path

import pytest

from app.engines.pii.training.examples import UNKNOWN, Example
from app.engines.pii.training.markup import Written
from app.engines.pii.training.open.sets import SETS, open_examples, without_offices


def stored(folder: Path, text: str, start: int, end: int) -> None:
    row = {"text": text, "spans": [[start, end, "PERSON"]], "lang": "xx"}
    for chosen in SETS:
        for file in chosen.files:
            (folder / chosen.folder).mkdir(exist_ok=True)
            path = folder / chosen.folder / f"{file}.jsonl.gz"
            path.write_bytes(gzip.compress(json.dumps(row).encode()))


def test_capitals_beside_people_are_unknown_only_where_nothing_else_is_labelled(tmp_path: Path) -> None:
    text = "I booked in Leeds for Anna Berg"
    stored(tmp_path, text, text.index("Anna"), len(text))
    read = open_examples(tmp_path, 1)
    assert len(read) == sum(len(chosen.files) for chosen in SETS)
    labels = [{text[start:end]: label for start, end, label in example.spans} for example in read]
    assert labels.count({"Anna Berg": "PERSON", "Leeds": UNKNOWN}) == sum(s.people_alone for s in SETS) == 1
    assert labels.count({"Anna Berg": "PERSON"}) == len(read) - 1


def test_a_set_that_is_missing_stops_the_recipe(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_examples(tmp_path, 1)


def test_slots_without_a_label_name_nobody_and_case_is_the_kinds() -> None:
    text = Written("The [N=last] rule and [P=first]", "en", "lower").example(lambda slot: slot.kind.upper())
    assert text.text == "the last rule and first"
    assert [(text.text[start:end], label) for start, end, label in text.spans] == [("first", "PERSON")]


def test_offices_that_a_set_labels_as_people_teach_no_names() -> None:
    texts = [
        ("Ministrul Dalic pleacă", "Ministrul Dalic"),
        ("Ministrul pleacă", "Ministrul"),
        ("vine ministrul Brod", "ministrul Brod"),
    ]
    examples = [
        Example(text, ((text.index(name), text.index(name) + len(name), "PERSON"),)) for text, name in texts
    ]
    place = Example("Vine Ministrul din Deva", ((5, 14, "LOCATION"),))
    read = without_offices([*examples, place])
    assert [[each.text[start:end] for start, end, _ in each.spans] for each in read] == [
        ["Dalic"],
        [],
        ["Brod"],
        ["Ministrul"],
    ]
