"""What both name taggers promise: exact offsets, order, determinism, and an answer to any text."""

from itertools import pairwise

import pytest

from app.engines.pii.names.tagger import Tagger
from app.engines.pii.transformer.model import TransformerTagger

PLAIN = [
    ("My name is John Doe and I live in Berlin.", {"John Doe"}),
    (
        "Hi Tom,\n\nplease call Maria Keller tomorrow.\n\nRegards,\nSusan Miller",
        {"Tom", "Maria Keller", "Susan Miller"},
    ),
    ('{"id": 7, "customer": {"name": "Peter Johnson", "vip": false}}', {"Peter Johnson"}),
]
ODD = [
    "",
    " \n\t\n ",
    "\ud800 and \udfff alone",
    "e\u0301" * 400,
    "a" * 20_000,
    "7" * 20_000,
    "\n" * 5_000,
    '"' * 5_000,
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002" * 200,
    "\U0001f600" * 2_000,
    "a.b,c;" * 1_000,
]


@pytest.fixture(scope="module", params=[Tagger, TransformerTagger], ids=["fast", "accurate"])
def tagger(request):
    return request.param.embedded()


@pytest.mark.parametrize(("text", "people"), PLAIN)
def test_people_are_found_where_anybody_sees_them(tagger, text, people):
    found = {text[span.start : span.end] for span in tagger(text) if span.label == "PERSON"}
    assert found >= people


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\U0001f469\u200d\U0001f4bb ", " \U0001f600\U0001f680"),
        ("cafe\u0301 \u00e0 la carte, ", " (nai\u0308ve)"),
        ("\u4f60\u597d\uff0c ", "\u3002\u4e16\u754c"),
        ("\u0645\u0631\u062d\u0628\u0627 ", " \u0648\u0634\u0643\u0631\u0627"),
        ("\r\n\t\u00a0", "\u2028\x85"),
    ],
)
def test_offsets_are_exact_beside_any_script(tagger, before, after):
    text = f"{before}My name is John Miller, I work here.{after}"
    found = [text[span.start : span.end] for span in tagger(text) if span.label == "PERSON"]
    assert "John Miller" in found


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_any_text_has_an_answer_within_its_bounds(tagger, text):
    for span in tagger(text, 0.3):
        assert 0 <= span.start < span.end <= len(text)


def test_findings_are_sorted_apart_and_sure_enough(tagger):
    text = "Anna Schmidt met Bob Taylor in Paris; Carla Gomez of Initech Ltd. wrote to David Brown. " * 12
    for threshold in (0.2, 0.5, 0.8):
        spans = tagger(text, threshold)
        assert all(one.end <= two.start for one, two in pairwise(spans))
        assert all(threshold <= span.score <= 1 for span in spans)


def test_what_was_read_before_changes_nothing(tagger):
    text = "Please ask Linda Park whether Omar has the keys."
    before = tagger(text)
    for number in range(30):
        tagger(f"Another text about nothing, number {number}, by Frank Meyer.\n" * 5)
    assert tagger(text) == before
