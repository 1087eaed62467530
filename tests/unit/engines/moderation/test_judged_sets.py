"""Which rows of open sets are judged and how they are labelled; what is unclear is left out."""

import gzip
import json

import pytest

from tests.benchmarks.judge import moderations


def wanted(title: str, row: dict) -> int | None:
    (one,) = (one for one in moderations._SETS if title in one.title)
    return one.wanted(row)


@pytest.mark.parametrize(
    ("title", "row", "label"),
    [
        ("in English", {"group": 3, "lang": "en"}, 1),
        ("in English", {"group": 4, "lang": "en"}, None),
        ("in English", {"group": 3, "lang": "it"}, None),
        ("nine other languages", {"group": 3, "lang": "it"}, 1),
        ("nine other languages", {"group": 3, "lang": "en"}, None),
        ("EDOS", {"category": "2. derogation"}, 1),
        ("EDOS", {"category": "none"}, None),
        ("ToLD-Br", {"votes": {"obscene": 3, "insult": 1}}, 0),
        ("ToLD-Br", {"votes": {"obscene": 0, "insult": 2}}, 1),
        ("xSID", {"src": "xsid"}, 0),
        ("xSID", {"src": "banking77_test"}, None),
    ],
)
def test_a_row_is_labelled_or_left_out(title, row, label):
    assert wanted(title, row) == label


def test_stories_that_were_learned_from_are_not_judged(tmp_path):
    path = tmp_path / "all.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(json.dumps({"text": f"{n}"}).encode() + b"\n" for n in range(6))))
    (stories,) = (one for one in moderations._SETS if "BBQ" in one.title)
    assert [text for text, _ in moderations._rows(path, stories)] == ["1", "4"]
    assert list(moderations._rows(tmp_path / "absent", stories)) == []


def test_the_mixed_set_counts_each_text_alike():
    table = moderations._of_mixed({"x": ([True, False, False, False] * 100, [0.9, 0.1, 0.2, 0.3] * 100)})
    assert "| x | 100 | 300 | 1.000" in table
    worse = moderations._of_mixed({"x": ([True, False] * 200, [0.1, 0.9] * 200)})
    assert "| x | 200 | 200 | .500" in worse
