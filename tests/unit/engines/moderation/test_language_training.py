"""What other languages are learned from: our templates, and open sets without what judges."""

import gzip
import json
from collections import Counter

import numpy as np
import pytest

from app.core.contracts.moderation import POLICIES
from app.engines.moderation.languages import HARM, TOLD, UNTOLD, judged_language
from app.engines.moderation.training import other_languages
from app.engines.moderation.training.examples import labelled
from app.engines.moderation.training.open_sets import multijail_policy
from app.engines.moderation.training.other_languages import SETS, Text, open_texts, own_texts
from app.engines.moderation.training.train_languages import (
    LICENCES,
    SHARES,
    UNTOLD_SHARES,
    WEIGHTS,
    all_knots,
    harm_of,
    traffic,
)
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
[ok twin]
wash {thing} and {thing}
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
        long = [text.text for text in own_texts(code, 1) if len(text.text) > 90]
        wrong = [text for text in long if judged_language(text) not in {code, UNTOLD}]
        assert len(wrong) <= 0.02 * len(long), wrong


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
        "xx [ok twin] 1": {f"how do i wash {a} and {b}" for a in ("car", "bus") for b in ("car", "bus")},
    }
    assert {text.labels["illicit"] for text in texts if text.group == "xx [bad illicit] 1"} == {1}
    assert all(set(text.labels.values()) == {0} for text in texts if text.group.startswith("xx [ok"))
    assert {text.source for text in texts if " twin] " in text.group} == {"twin"}
    assert {text.source for text in texts if " twin] " not in text.group} == {"own"}


def test_a_line_is_drawn_for_each_of_its_slots(tmp_path, monkeypatch) -> None:
    values = "¦".join(f"v{number}" for number in range(999))
    lines = "[ask]\n{}\n[ok]\n{thing}\n[ok twin]\n{thing} {thing} {thing}\n[slot thing]\n"
    (tmp_path / "xx.txt").write_text(lines + values, encoding="utf-8")
    monkeypatch.setattr(other_languages, "FOLDER", tmp_path)
    sources = Counter(text.source for text in own_texts("xx", 1, each=(0, 10)))
    assert sources["own"] <= 10
    assert 25 < sources["twin"] <= 30


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
    assert {one.source for one in SETS} == set(LICENCES) == set(WEIGHTS) - {"own", "twin", "english"}


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
    texts.append(Text("e", labelled([]), "de", "twin", "5"))
    german = traffic(texts, "de")
    assert german[1] == german[3] == 0 < german[4] < german[2] < german[0]
    assert (traffic(texts, UNTOLD) > 0).tolist() == [True, False, True, True, True]


def test_each_kind_of_harm_lets_through_its_own_share_of_the_harmless_texts() -> None:
    texts = [
        Text(str(number), labelled([]), TOLD[number % len(TOLD)], "own", "1") for number in range(14_000)
    ]
    logits = np.random.default_rng(1).standard_normal((len(texts), len(HARM))).astype(np.float32)
    found = all_knots(texts, logits)
    for place, language in ((0, TOLD[0]), (len(TOLD), UNTOLD)):
        mine = logits[[language in {text.language, UNTOLD} for text in texts]]
        for kind, shares in enumerate(UNTOLD_SHARES if language == UNTOLD else SHARES):
            flagged = (mine[:, [kind]] >= found[place, kind]).mean(axis=0)
            assert flagged == pytest.approx(shares, abs=0.003)
