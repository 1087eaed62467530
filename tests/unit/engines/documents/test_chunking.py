"""Documents are cut where a reader would, and nothing of them is lost."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engines.documents.chunking import chunked

WORDS = st.sampled_from(
    ["# Head\n", "## Sub\n", "word ", "A sentence. ", "\n", "\n\n", "```\n", "# no\n", "é", " "]
)


def test_a_short_document_is_one_chunk():
    assert [one.text for one in chunked("One.\n\nTwo.")] == ["One.\n\nTwo."]


def test_each_section_stands_under_its_headings():
    text = "# Plan\n\nIntro.\n\n## Budget\n\n$2M.\n\n# Notes\n\nDone."
    assert [(one.text, one.headings) for one in chunked(text)] == [
        ("# Plan\n\nIntro.", ("Plan",)),
        ("## Budget\n\n$2M.", ("Plan", "Budget")),
        ("# Notes\n\nDone.", ("Notes",)),
    ]


def test_a_heading_inside_code_is_none():
    (only,) = chunked("```sh\n# not a heading\nls\n```")
    assert only.headings == ()


def test_long_paragraphs_are_cut_between_sentences_and_overlap():
    text = " ".join(f"This is sentence number {n}." for n in range(200))
    found = chunked(text, size=300, overlap=60)
    assert all(one.text.endswith(".") and one.text.startswith("This") for one in found)
    assert all(later.start < earlier.end for earlier, later in itertools.pairwise(found))


def test_a_run_without_spaces_is_cut_all_the_same():
    found = chunked("x" * 5000, size=300, overlap=0)
    assert [len(one.text) for one in found] == [300] * 16 + [200]


def test_an_overlap_as_long_as_a_chunk_is_refused():
    with pytest.raises(ValueError, match="shorter"):
        chunked("x", size=100, overlap=100)


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=80).map("".join), st.integers(20, 200), st.integers(0, 15))
def test_chunks_hold_every_word_in_order_and_are_never_too_long(text, size, overlap):
    found = chunked(text, size=size, overlap=overlap)
    covered = bytearray(len(text))
    for one in found:
        assert text[one.start : one.end] == one.text
        assert 0 < len(one.text) <= size
        covered[one.start : one.end] = b"\1" * (one.end - one.start)
    assert [one.start for one in found] == sorted(one.start for one in found)
    assert not "".join(char for char, seen in zip(text, covered, strict=True) if not seen).strip()


@pytest.mark.parametrize(
    "unit", ["# " + "#" * 98 + "\n", "x" * 99 + "\n", "- " * 50 + "\n", " " * 100, "\n" * 100, "```\n"]
)
def test_a_hostile_document_is_cut_in_linear_time(unit):
    # Ten megabytes within the time limit of a test; quadratic work would take hours.
    assert len(chunked(unit * (10_000_000 // len(unit)))) <= 10_000_000 // 500
