"""Where names are mentioned: as whole words only, with the parts behind them, whatever else is looked for."""

import random

import pytest

from app.engines.pii.names.names import Names, mentions

PIECES = (
    "Anna",
    "Ann",
    "anna",
    "Öz",
    "öz",
    "山田",
    "²",
    "ª",
    "1",
    "_",
    "-",
    "'",
    "’",
    " ",
    "  ",
    ".",
    ",",
    "\n",
    "ǰ",
)


def found(text: str, *names: str) -> list[str]:
    return [text[span.start : span.end] for span in mentions(text, names, 0.5)]


@pytest.mark.parametrize(
    "text",
    ["McAnna", "Jean-Anna", "O’Anna", "Annabel", "Anna’s", "Anna-Lena", "ANNABEL", "éAnna", "anna", "²Anna"],
)
def test_a_part_of_a_word_is_no_mention(text: str) -> None:
    assert found(f"There is {text}.", "Anna Berg") == []


@pytest.mark.parametrize(
    "text", ["-Anna", "'Anna'", "1Anna", "_Anna_", "Anna1", "Anna-", "Anna’", "(Anna)", "\nAnna"]
)
def test_what_is_no_letter_ends_a_mention(text: str) -> None:
    assert found(f"x {text} x", "Anna Berg") == ["Anna"]


def test_a_name_in_small_letters_is_mentioned_as_a_whole() -> None:
    assert found("so jane smith and Jane and smith", "jane smith") == ["jane smith"]
    assert found("so jane smith and Anna and ANNA", "jane smith", "Anna Berg") == [
        "jane smith",
        "Anna",
        "ANNA",
    ]


def test_a_whole_name_takes_the_parts_behind_it_up_to_a_real_gap() -> None:
    text = "Anna  van-Berg, Anna, van Berg. Anna van: Berg"
    assert found(text, "Anna van Berg") == ["Anna", "Anna, van Berg", "Anna", "Berg"]


def test_names_that_no_text_mentions_change_nothing() -> None:
    draw = random.Random(7)

    def drawn(most: int) -> str:
        return "".join(draw.choice(PIECES) for _ in range(draw.randint(1, most)))

    for _ in range(3_000):
        text, names = drawn(14), [drawn(4) for _ in range(3)]
        spans, relevant = Names(names).searched(text, 0.5)
        # The last begins with a small letter, so every word is looked at and not only those in capitals.
        assert Names([*names, "nobody at all"]).searched(text, 0.5) == (spans, relevant)
