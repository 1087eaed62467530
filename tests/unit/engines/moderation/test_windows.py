"""Texts are cut into windows at sentences, and disguises are undone."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.engines.moderation.windows import LONGEST, plain, windows


def test_a_short_text_is_one_window_without_the_blanks_around() -> None:
    assert windows("  How are you? Fine.\n") == [(2, 20)]


def test_paragraphs_stand_apart_and_sentences_stay_whole() -> None:
    text = "One. Two.\n\n" + "A sentence of some length. " * 20
    found = [text[slice(*span)] for span in windows(text)]
    assert found[0] == "One. Two."
    assert all(one.endswith("length.") for one in found[1:])


@given(st.text(max_size=2000))
def test_windows_are_bounded_in_order_and_hold_every_character_that_counts(text: str) -> None:
    spans = windows(text)
    assert all(0 < end - start <= LONGEST for start, end in spans)
    assert all(before[1] <= behind[0] for before, behind in pairwise(spans))
    covered = {place for span in spans for place in range(*span)}
    assert all(char.isspace() or char in ".!?\"')]" or place in covered for place, char in enumerate(text))


def test_wide_letters_invisible_marks_and_accents_disguise_nothing() -> None:
    assert plain("\uff4b\uff49\uff4c\uff4c y\u200bou, \u00e9t\u00e9") == "kill you, ete"
