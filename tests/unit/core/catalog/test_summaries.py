"""Short descriptions that nobody wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.catalog.summaries import MAX_SUMMARY, spoken_name, summary


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reads a file. Returns its text.", "Reads a file."),
        ("Reads a file", "Reads a file"),
        ("reads a file. returns its text.", "reads a file."),
        (
            "Reads files, e.g. Markdown files, from disk. Then returns.",
            "Reads files, e.g. Markdown files, from disk.",
        ),
        ("Converts units (i.e. Metres to feet). More.", "Converts units (i.e. Metres to feet)."),
        ("Compares A vs. B and more. Then.", "Compares A vs. B and more."),
        ("Lists files, folders etc. in a tree. More.", "Lists files, folders etc. in a tree."),
        ("Lists files, folders etc. Then stops.", "Lists files, folders etc."),
        ("Finds the works of J. Smith in version 2.0. More.", "Finds the works of J. Smith in version 2.0."),
        ("Calls api.example.com. More.", "Calls api.example.com."),
        ("Is it up? Tells so.", "Is it up?"),
        ('Says "hello." Then leaves.', 'Says "hello."'),
        ("Waits... and then goes on. More.", "Waits... and then goes on."),
        ("Reads a page\n   of the book\n   from disk.\n\nMore.", "Reads a page of the book from disk."),
        ("Reads a file\n\nArgs:\n    path: where", "Reads a file"),
        ("Reads a file\nArgs:\n    path: where", "Reads a file"),
        ("Reads a file\n- path: where", "Reads a file"),
        ("Reads a file\n```json\n{}\n```", "Reads a file"),
        ("Reads a file\n:param path: where", "Reads a file"),
        ("# Read a file\nThis reads a file.", "Read a file"),
        ("**Read** a file. More.", "Read a file."),
        ("読み取ります。次の文。", "読み取ります。"),
        ("Read a file! Now.", "Read a file!"),
    ],
)
def test_a_summary_is_the_first_sentence(text, expected):
    assert summary(text) == expected


@pytest.mark.parametrize(
    "text", ["", "  \n ", "...", "Args:\n  x: 1", "```json\n{}\n```", '{"type": "object"}']
)
def test_what_has_no_sentence_has_no_summary(text):
    assert summary(text) is None


def test_a_long_sentence_is_cut_between_words():
    text = "Reads " + "many words " * 40 + "."

    found = summary(text)

    assert len(found) <= MAX_SUMMARY
    assert found.endswith(("many…", "words…"))


def test_a_long_sentence_is_not_cut_behind_an_abbreviation():
    text = "x" * 140 + " things (e.g. " + "y" * 60 + ")."

    assert summary(text) == "x" * 140 + " things…"


def test_a_long_word_is_not_cut_inside_a_character():
    text = "e\u0301" * 200

    assert summary(text) == "e\u0301" * 79 + "…"


@given(st.text(max_size=600))
def test_a_summary_of_any_text_is_one_bounded_line(text):
    found = summary(text)

    assert found is None or (0 < len(found) <= MAX_SUMMARY and "\n" not in found and found == found.strip())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("files__readTextFile", "Read text file"),
        ("get_data", "Get data"),
        ("getHTTPResponse2", "Get HTTP response 2"),
        ("__", "__"),
        ("поиск", "Поиск"),
    ],
)
def test_a_name_can_be_spoken(name, expected):
    assert spoken_name(name) == expected
