"""Relevance means the same for every question, grows with what matches, and counts what the caller may read alone."""

import struct
from collections import Counter

import pytest

from app.engines.documents.passages import GAP, assembled_text
from app.engines.documents.scoring import Statistics, fused, lexical_scores, rarity, relevance, semantic_score
from app.engines.documents.vectors import PartKey, VectorMemory, assembled, likeness, nearest
from app.engines.documents.words import MOST_WORDS, StemFinder, asked_words, rarest_words, stems_of


def statistics(chunks: int = 100, words: int = 10_000, **matches: int) -> Statistics:
    return Statistics(chunks, words, matches)


def vector(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def test_a_question_is_its_words_that_say_something_once_per_stem() -> None:
    assert asked_words("What was discussed in the planning of plans?") == ("discussed", "planning")
    assert asked_words("to be or not to be") == ("to", "be", "or", "not")
    assert len(asked_words(" ".join(f"word{number}" for number in range(200)))) == MOST_WORDS


def test_truncated_words_are_looked_up_besides_and_add_to_no_limit() -> None:
    assert asked_words("Российские книги российского рынка") == (
        *("россииские", "книги", "россииского", "рынка"),
        "росси",
    )
    letters = "абвгдежзиклмнопрстуфхцчшщъыьэюя"
    question = [f"{first}{second}словами" for first in letters for second in letters[:2]]
    assert len(asked_words(" ".join(question))) == 2 * MOST_WORDS


def test_a_word_that_proposes_brings_its_truncated_form() -> None:
    matches = {"absent": 0, "россииские": 1, "рынка": 2, "книги": 3, "росси": 9, "common": 8}
    assert rarest_words(matches, 2) == ["россииские", "рынка", "росси"]
    assert rarest_words(matches, 9) == ["россииские", "рынка", "книги", "common", "росси"]


def test_another_form_of_a_word_counts_and_the_same_form_counts_more() -> None:
    known = statistics(россииские=1, росси=3)
    filler = "слово " * 99
    same, other, none = lexical_scores(
        asked_words("российские"),
        known,
        [("", "", f"{first} {filler}") for first in ("российские", "российского", "россыпь")],
    )
    assert same > other > 0.7 > none == 0


def test_rare_words_weigh_more_and_a_chunk_with_all_words_once_scores_about_one() -> None:
    known = statistics(alpha=2, beta=60)
    assert rarity(known, "alpha") > rarity(known, "beta") > 0
    body = "alpha beta " + "filler " * 98
    (both,) = lexical_scores(["alpha", "beta"], known, [("", "", body)])
    assert both == pytest.approx(1.0, abs=0.02)


def test_titles_count_twice_and_what_does_not_match_scores_nothing() -> None:
    known = statistics(alpha=2)
    filler = "filler " * 99
    titled, said, silent = lexical_scores(
        ["alpha"], known, [("alpha", "", filler), ("", "", f"alpha {filler}"), ("", "", filler)]
    )
    assert titled > said > silent == 0
    assert lexical_scores([], known, [("a", "b", "c")]) == [0.0]


def test_in_two_documents_a_common_word_still_counts() -> None:
    known = statistics(2, 20, q4=2, planning=1, meeting=0)
    (score,) = lexical_scores(["q4", "planning", "meeting"], known, [("", "", "q4 " + "x " * 9)])
    assert 0.15 < score < 0.5


def test_both_scores_count_alike_and_the_order_stays() -> None:
    assert fused(0.5, None) == 0.5
    assert fused(0.2, 0.8) == fused(0.8, 0.2) == 0.5
    assert semantic_score(-1) == semantic_score(0.1) == 0
    assert semantic_score(0.8) == semantic_score(1) == 1
    assert relevance(1.7) == 1
    assert relevance(0.3) == 0.3


def test_chunks_are_put_together_without_repetition() -> None:
    assert assembled_text([(0, "One. Two."), (1, "Two. Three.")]) == "One. Two. Three."
    assert assembled_text([(0, "One."), (1, "Three.")]) == "One.\n\nThree."
    assert assembled_text([(0, "One."), (4, "Five.")]) == f"One.{GAP}Five."


def test_vectors_are_compared_exactly() -> None:
    first = assembled([(3, vector(1, 0)), (5, vector(0, 1)), (9, vector(0.6, 0.8))])
    second = assembled([(4, vector(0.8, 0.6))])
    asked = vector(1, 0)
    assert list(nearest([first, second], asked, 2)) == [3, 4]
    assert likeness([first, second], asked, [9, 4, 77]) == pytest.approx({9: 0.6, 4: 0.8})
    assert nearest([assembled([])], asked, 2) == {}
    assert likeness([assembled([])], asked, [1]) == {}


def test_the_memory_of_vectors_knows_states_and_bounds() -> None:
    held = assembled([(1, vector(1, 0))])
    memory = VectorMemory(budget=2 * held.size)
    keys = [PartKey("acme", part, 1, "e") for part in range(3)]
    for key in keys:
        memory.put(key, held)
    assert memory.get(keys[0]) is None, "the one used longest ago made room"
    assert memory.get(keys[2]) is held
    assert memory.get(PartKey("acme", 2, 2, "e")) is None
    assert memory.get(PartKey("acme", 2, 1, "other")) is None
    memory.put(keys[0], assembled([(number, vector(1, 0)) for number in range(9)]))
    assert memory.get(keys[0]) is None, "too large to be kept at all"
    memory.forget("other")
    assert memory.get(keys[2]) is held
    memory.forget("acme")
    assert memory.get(keys[2]) is None


@pytest.mark.parametrize(
    "body",
    [
        "東京都の東京 iPhone15を, 猫",
        "ภาษาไทย ไทย",
        "Größe, größe! мир и миру",
        "Российская и российские, 東京российская; والكتاب",
        "plain words, plain",
        "",
    ],
)
def test_stems_are_counted_as_they_are_cut(body: str) -> None:
    counted = Counter(stems_of(body))
    assert StemFinder([*counted, "absent", "不在"]).counts(body) == counted
