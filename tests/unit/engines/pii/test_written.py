"""The texts written for training parse, label consistently, and never meet the texts that judge them."""

import re
from collections import Counter

import pytest

from app.engines.pii.training.markup import FRAMES, HELD_OUT, LABELS, Slot, Written, read_written

TRAINING = read_written()
JUDGING = read_written(HELD_OUT)
FRAMED = read_written(FRAMES)
PARTS = pytest.mark.parametrize("texts", [TRAINING, JUDGING, FRAMED], ids=["training", "held out", "frames"])
TITLE = re.compile(r"(?i)(?:mrs?|ms|dr|prof|herr|frau|monsieur|madame|mme|sig|sr|sra|dott|mevr|dhr)\b\.? ")


def named(slot: Slot) -> str:
    return f"<{slot.kind}{slot.gender}{slot.same}>"


def word_set(text: Written) -> str:
    return " ".join(re.findall(r"\w+", text.example(named).text.lower()))


@PARTS
def test_every_name_is_whole_without_title_possessive_or_blanks(texts: tuple[Written, ...]) -> None:
    for text in texts:
        example = text.example(named)
        end = 0
        for start, stop, label in example.spans:
            name = example.text[start:stop]
            assert label in LABELS.values()
            assert end <= start < stop <= len(example.text)
            assert name == name.strip(), text.markup
            assert not TITLE.match(name), text.markup
            assert label == "ORGANIZATION" or not name.endswith(("'s", "’s", ",")), text.markup
            end = stop


@PARTS
def test_no_markup_is_left_over(texts: tuple[Written, ...]) -> None:
    for text in texts:
        assert not re.search(r"\[[A-Z]+[:=]|\[[PLOA] ", text.example(named).text), text.markup


def test_no_text_is_there_twice_and_none_both_teaches_and_judges() -> None:
    for part in (TRAINING, FRAMED):
        counts = Counter(word_set(text) for text in (*part, *JUDGING))
        assert not [text for text, count in counts.items() if count > 1]


def test_a_negative_names_nobody() -> None:
    for text in (*TRAINING, *JUDGING, *FRAMED):
        if text.kind.endswith("negative"):
            assert not any(label == "PERSON" for _, _, label in text.example(named).spans), text.markup


def test_a_slot_is_filled_in_the_language_of_its_text() -> None:
    text = Written(r"Hallo [P=first.f#1],\nherzlich, [P:Jan] [x](y) C:\\neu", "de", "mail")

    example = text.example(lambda slot: f"{slot.language}-{slot.kind}-{slot.gender}-{slot.same}")

    assert example.text == "Hallo de-first-f-1,\nherzlich, Jan [x](y) C:\\neu"
    assert [example.text[start:end] for start, end, _ in example.spans] == ["de-first-f-1", "Jan"]
    assert text.varies


@pytest.mark.parametrize(
    ("language", "least"),
    [("en", 1_000), ("de", 120), ("fr", 120), ("es", 120), ("it", 120), ("pt", 120), ("nl", 120)],
)
def test_each_language_has_its_share_and_a_part_that_only_judges(language: str, least: int) -> None:
    assert sum(text.language == language for text in TRAINING) >= least
    assert sum(text.language == language for text in JUDGING) >= 25


def test_a_third_of_the_texts_names_nobody_and_every_label_is_learnt() -> None:
    labels = [{label for _, _, label in text.example(named).spans} for text in TRAINING]

    assert 0.3 <= sum("PERSON" not in found for found in labels) / len(labels) <= 0.5
    counts = Counter(label for found in labels for label in found)
    assert all(counts[label] >= 150 for label in LABELS.values())
