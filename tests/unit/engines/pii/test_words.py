"""Tokens are cut in one linear pass, and their features know the word, its pieces and the lists that hold it."""

from zlib import crc32

import pytest

from app.engines.pii.words import MAX_WORD, TOKEN, Gazetteer, hashed, normal_word, word_features

NOTHING = Gazetteer({})


def tokens(text: str) -> list[str]:
    return [match[0] for match in TOKEN.finditer(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Maria's laptop", ["Maria", "'s", "laptop"]),
        ("O'Brien’s don't", ["O'Brien", "’s", "don't"]),
        ("first_name=Jane", ["first", "_", "name", "=", "Jane"]),
        ("a......b\n\nc", ["a", "......", "b", "\n\n", "c"]),
        ("王伟 Wei", ["王", "伟", "Wei"]),
        ("Jose\u0301 10115", ["Jose\u0301", "10115"]),
    ],
)
def test_text_is_cut_into_words_numbers_and_runs_of_one_symbol(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_every_character_but_blanks_belongs_to_exactly_one_token() -> None:
    text = "(a), [b]; Aé1_\u0301\ud800\x00-ß 😀²٣ॐी\u200b’S\n'"
    assert "".join(tokens(text)) == "".join(c for c in text if not c.isspace() or c == "\n")


def test_a_decomposed_accent_makes_the_features_of_the_composed_one() -> None:
    assert word_features(normal_word("Jose\u0301"), NOTHING) == word_features("José", NOTHING)


def test_the_features_of_a_word_are_few_however_long_it_is() -> None:
    surface, listed = word_features(normal_word("a" * 1_000_000), NOTHING)
    assert len(surface) + len(listed) < 50
    assert normal_word("a" * 1_000_000) == "a" * MAX_WORD


def test_a_word_is_described_by_the_lists_that_hold_it_in_any_case() -> None:
    lists = Gazetteer({crc32(b"jane"): 0b11, crc32(b"smith"): 0b10})
    assert lists.kinds("jane") == "fl"
    assert "GfU" in word_features("Jane", lists)[1]
    assert "Gll" in word_features("smith", lists)[1]
    assert word_features("walrus", lists)[1] == ["GGl"]


def test_names_written_as_one_word_are_recognised_by_their_parts() -> None:
    lists = Gazetteer({crc32(b"jane"): 1, crc32(b"smith"): 2})
    assert word_features("janesmith", lists)[1][-1] == "Jfl"
    assert word_features("JaneSmith", lists)[1][-2:] == ["Cf", "Cl"]


def test_unpaired_surrogates_are_hashed_like_anything_else() -> None:
    assert hashed(["L:\ud800"]) == hashed(["L:\ud800"])
