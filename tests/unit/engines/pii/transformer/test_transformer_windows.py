"""The accurate tagger sees a text in windows: every token is judged once, and windows end where sentences do."""

import random
from itertools import pairwise

import pytest
from tokenizers import Tokenizer

from app.engines.encoder.model import TOKENIZER, WEIGHTS
from app.engines.pii.transformer.pieces import MOST_PIECES, OUTLINES, Cutter, outline
from app.engines.pii.transformer.windows import MAX_PIECES, SEEN_AROUND, windows

SENTENCE = "The courier left two parcels at the gate, and nobody signed for them. "


@pytest.fixture(scope="module")
def cutter():
    return Cutter(Tokenizer.from_file(str(WEIGHTS / TOKENIZER)), {})


def made_text(chance):
    parts = [
        "word",
        "Name",
        " ",
        ". ",
        "\n",
        "42",
        "\u4f60\u597d",
        "\U0001f600",
        "e\u0301te\u0301",
        "!? ",
        "-",
        "x" * 70,
    ]
    return "".join(chance.choice(parts) + chance.choice(("", " ")) for _ in range(chance.randint(0, 900)))


@pytest.mark.parametrize("seed", range(12))
def test_every_token_is_judged_once_and_in_order(cutter, seed):
    text = made_text(random.Random(seed))
    judged = [
        token for window in windows(text, cutter) for token in window.tokens[window.first : window.last]
    ]
    assert judged == list(cutter.tokens(text))


@pytest.mark.parametrize("seed", range(12))
def test_no_window_is_larger_than_the_network_reads(cutter, seed):
    text = made_text(random.Random(seed))
    begin = 0
    for window in windows(text, cutter):
        assert window.size <= MAX_PIECES
        assert window.begin == begin
        before = sum(len(token.ids) for token in window.tokens[: window.first])
        assert before <= SEEN_AROUND
        begin += window.last - window.first


def test_a_text_that_fits_is_one_window(cutter):
    (window,) = windows(SENTENCE * 7, cutter)
    assert (window.first, window.begin) == (0, 0)
    assert window.last == len(window.tokens)


def test_a_long_text_is_cut_behind_sentences(cutter):
    text = SENTENCE * 60
    cuts = [window.tokens[window.last - 1] for window in windows(text, cutter)]
    assert len(cuts) > 5
    assert all(text[token.start : token.end] == "." for token in cuts)


def test_a_long_text_is_rather_cut_behind_lines(cutter):
    text = (SENTENCE * 4 + "and so on\n") * 20
    cuts = [window.tokens[window.last - 1] for window in windows(text, cutter)]
    assert all(text[token.start] == "\n" for token in cuts)


def test_no_window_ends_behind_a_title_or_an_initial(cutter):
    text = "we spoke with Dr. Mabel and with J. Ferris there and " * 60
    for window in windows(text, cutter):
        last = window.tokens[window.last - 1]
        assert text[last.start : last.end] != "."


def test_what_is_cut_within_a_sentence_is_read_on_both_sides(cutter):
    text = "one two three " * 300
    found = list(windows(text, cutter))
    assert all(window.last < len(window.tokens) for window in found[:-1])
    assert all(window.first > 0 for window in found[1:])


def test_offsets_of_tokens_are_those_of_the_text(cutter):
    text = "\U0001f600 Zo\u00eb O'Neil's re\u0301sume\u0301,\u4f60\u597d\n\n\u0645\u0631\u062d\u0628\u0627 7\u00b2_x"
    tokens = list(cutter.tokens(text))
    assert all(one.end <= two.start for one, two in pairwise(tokens))
    assert "".join(text.split()) == "".join(text[token.start : token.end].strip() for token in tokens)
    assert all(1 <= len(token.ids) <= MOST_PIECES for token in tokens)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("\n", "newline"),
        ("42", "number"),
        ("#", "sign"),
        ("\u4f60", "caseless"),
        ("mark", "lower"),
        ("Mark", "Capital"),
        ("O'Neil", "MixEd"),
        ("Zoe\u0308", "Capital"),
        ("J", "X"),
        ("NASA", "UPPER"),
        ("iPhone", "mIxed"),
        ("JaneSmith", "MixEd"),
    ],
)
def test_the_outline_says_how_a_word_is_written(word, expected):
    assert OUTLINES[outline(word)] == expected
