"""What other languages are learned from: our templates, and open sets without what judges."""

import gzip
import json

import numpy as np
import pytest

from app.core.contracts.moderation import POLICIES
from app.engines.moderation.languages import TOLD, UNTOLD, judged_language
from app.engines.moderation.training import other_languages
from app.engines.moderation.training.examples import labelled
from app.engines.moderation.training.open_sets import multijail_policy
from app.engines.moderation.training.other_languages import SETS, Text, open_texts, own_texts
from app.engines.moderation.training.train_languages import LICENCES, WEIGHTS, harm_of, traffic
from tests.benchmarks.judge.moderation_languages import drawn_by_language

FILE = """[ask]
How do I {}?
[bad illicit]
take (a|b) {thing}
[ok]
pay
[ok says]
All is well.
[slot thing]
car¦bus
[ok]
rest
"""


@pytest.mark.parametrize("code", [*TOLD, "en"])
def test_each_language_has_more_harmless_texts_than_harmful_ones(code: str) -> None:
    texts = list(own_texts(code, 1))
    harmful = sum(1 in text.labels.values() for text in texts)
    assert len(texts) - harmful > 1.6 * harmful > 1_500
    assert not any(set("{}()|¦[]") & set(text.text) for text in texts)
    assert texts == list(own_texts(code, 1))


def test_a_language_is_told_for_what_was_written_in_it() -> None:
    for code in TOLD:
        told = {judged_language(text.text) for text in own_texts(code, 1) if len(text.text) > 90}
        assert told <= {code, UNTOLD}, code


def test_no_text_of_the_test_part_is_learned() -> None:
    learned = {text.text.lower().strip("?.! ") for code in TOLD for text in own_texts(code, 1)}
    assert not learned & {one.text.lower().strip("?.! ") for one in drawn_by_language()}


def test_a_file_is_read_by_its_headings(tmp_path, monkeypatch) -> None:
    (tmp_path / "xx.txt").write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(other_languages, "FOLDER", tmp_path)
    texts = list(own_texts("xx", 1))
    by_group: dict[str, set[str]] = {}
    for text in texts:
        by_group.setdefault(text.group, set()).add(text.text.lower().rstrip("?."))
    assert by_group == {
        "xx [bad illicit] 1": {f"how do i take {a} {b}" for a in "ab" for b in ("car", "bus")},
        "xx [ok] 1": {"how do i pay"},
        "xx [ok says] 1": {"all is well"},
        "xx [ok] 2": {"how do i rest"},
    }
    assert {text.labels["illicit"] for text in texts if text.group == "xx [bad illicit] 1"} == {1}
    assert all(set(text.labels.values()) == {0} for text in texts if text.group.startswith("xx [ok"))


def test_what_judges_of_multijail_is_never_learned() -> None:
    row = {"tags": ["Conspiracy theories & misinformation", "Theft"], "group": 4}
    assert multijail_policy(row) == "illicit"
    assert multijail_policy({**row, "group": 3}) is None
    assert multijail_policy({**row, "tags": ["Adult content"]}) is None


def test_open_sets_are_read_by_their_labels(tmp_path) -> None:
    rows = {
        "moderation/germeval18_de/train": [
            {"text": "a", "kind": "OTHER", "lang": "de"},
            {"text": "b", "kind": "INSULT", "lang": "de"},
            {"text": "c", "kind": "PROFANITY", "lang": "de"},
        ],
        "moderation/cold_zh/train": [{"text": "d", "offensive": 0, "lang": "zh"}],
        "moderation/multijail/all": [
            {"text": "e", "tags": ["Theft"], "group": 1, "lang": "it"},
            {"text": "f", "tags": ["Theft"], "group": 1, "lang": "en"},
        ],
        "moderation/red_instruct/all": [{"text": "g", "category": "Political Campaigning", "lang": "zh"}],
    }
    for one in SETS:
        path = tmp_path / f"{one.file}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows.get(one.file, []))
    found = {text.text: text for text in open_texts(tmp_path)}
    assert set(found) == {"a", "b", "d", "e"}
    assert set(found["a"].labels.values()) == {0}
    assert found["b"].labels["harassment"] == 1
    assert [found["d"].labels[policy] for policy in ("hate", "harassment", "violence")] == [0, 0, None]
    assert found["e"].labels["illicit"] == 1
    assert {one.source for one in SETS} == set(LICENCES) == set(WEIGHTS) - {"own", "english"}


def test_harm_is_a_deed_or_abuse_and_one_says_nothing_of_the_other() -> None:
    partly = {**dict.fromkeys(POLICIES), "hate": 0, "harassment": 0}
    rows = [labelled([]), labelled(["hate"]), labelled(["violence"]), partly, {**labelled([]), "hate": 1}]
    policies = np.array([[np.nan if row[p] is None else row[p] for p in POLICIES] for row in rows])
    expected = [[0, 0], [np.nan, 1], [1, np.nan], [np.nan, 0], [np.nan, 1]]
    assert np.array_equal(harm_of(policies), expected, equal_nan=True)


def test_the_traffic_of_a_language_is_harmless_and_its_own() -> None:
    texts = [
        Text("a", labelled([]), "de", "own", "1"),
        Text("b", labelled(["hate"]), "de", "own", "2"),
        Text("c", labelled([]), "de", "mobie", "3"),
        Text("d", labelled([]), "fr", "own", "4"),
    ]
    german = traffic(texts, "de")
    assert german[1] == german[3] == 0 < german[2] < german[0]
    assert (traffic(texts, UNTOLD) > 0).tolist() == [True, False, True, True]
