"""Tokens are cut in one linear pass, and their features know the word, its pieces and the lists that hold it."""

from zlib import crc32

import pytest

from app.engines.pii.names.spelling import lowered
from app.engines.pii.names.words import (
    MAX_WORD,
    TOKEN,
    Gazetteer,
    Rows,
    body,
    feature_word,
    features,
    key_of,
    normal_word,
    stem_of,
)

NOTHING = Gazetteer({})


def tokens(text: str) -> list[str]:
    return [body(token) for token in TOKEN.findall(text)]


def described(word: str, lists: Gazetteer = NOTHING) -> dict[str, list[int]]:
    found = features([normal_word(word)], lists)
    return {name: value.tolist() for name, value in found._asdict().items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Maria's laptop", ["Maria", "'s", "laptop"]),
        ("O'Brien’s don't", ["O'Brien", "’s", "don't"]),
        ("first_name=Jane", ["first", "_", "name", "=", "Jane"]),
        ("a......b\n\nc", ["a", "......", "b", "\n\n", "c"]),
        ("王伟 Wei", ["王", "伟", "Wei"]),
        ("Jose\u0301 10115", ["Jose\u0301", "10115"]),
        ("Zoë, Zoé", ["Zoë", ",", "Zoé"]),
        (" a\n  b", [" ", "a", "\n", "b"]),
    ],
)
def test_text_is_cut_into_words_numbers_and_runs_of_one_symbol(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "(a), [b]; Aé1_\u0301\ud800\x00-ß 😀²٣ॐी\u200b’S\n'",
        "  \t x \r\n\u3000y\u00a0",
        "'" * 50 + "a'" * 50 + "e\u0301" * 50 + "\u0301" * 50,
        "w" * 5_000 + "7" * 5_000 + " " * 5_000 + "=" * 5_000,
    ],
)
def test_the_tokens_with_the_blanks_behind_them_are_the_text(text: str) -> None:
    found = TOKEN.findall(text)
    assert "".join(found) == text
    assert max(map(len, found)) < 1_000


@pytest.mark.parametrize("end", [*" .,:;!?'\"-_/)1山’\n", "é", "'s", "\u0301"])
def test_plain_words_are_cut_as_words_with_accents_are(end: str) -> None:
    assert [len(token) for token in tokens(f"Zoe{end}x")] == [len(token) for token in tokens(f"Zoë{end}x")]


def test_a_decomposed_accent_makes_the_features_of_the_composed_one() -> None:
    assert described("Jose\u0301") == described("José")


def test_the_features_of_a_word_are_few_however_long_it_is() -> None:
    assert sum(map(len, described("a" * 1_000_000).values())) < 100
    assert normal_word("a" * 1_000_000) == "a" * MAX_WORD


def test_words_are_described_together_as_they_are_alone() -> None:
    words = ["Jane", "7", "山", "O'Brien", "-", "janesmith", "x", "2024", "JaneSmith", "a" * 40]
    lists = Gazetteer({crc32(b"jane"): 1, crc32(b"smith"): 2})
    together = features(words, lists)
    for name in ("whole", "grams", "listed"):
        rows: Rows = getattr(together, name)
        sizes = getattr(together, f"{name.removesuffix('s')}_sizes").tolist()
        assert len(rows) == sum(sizes)
        at = 0
        for word, size in zip(words, sizes, strict=True):
            assert rows[at : at + size].tolist() == described(word, lists)[name]
            at += size


def test_a_word_is_described_by_the_lists_that_hold_it_in_any_case() -> None:
    lists = Gazetteer({crc32(b"jane"): 0b11, crc32(b"smith"): 0b10})
    assert lists.kinds("jane") == "fl"
    assert len(described("Jane", lists)["listed"]) == 3
    assert len(described("smith", lists)["listed"]) == 2
    assert len(described("tree", lists)["listed"]) == 1
    assert described("Smith", lists)["listed"] != described("smith", lists)["listed"]


def test_names_written_as_one_word_are_recognised_by_their_parts() -> None:
    lists = Gazetteer({crc32(b"jane"): 1, crc32(b"smith"): 2})
    assert len(described("janesmith", lists)["listed"]) == 2
    assert len(described("janessmith", lists)["listed"]) == 1
    assert described("JaneSmith", lists)["listed"][-2:] == described("JaneSmithSmith", lists)["listed"][1:3]


def test_unpaired_surrogates_are_described_like_anything_else() -> None:
    assert described("\ud800") == described("\ud800")
    assert described("a\ud800") == described("a\ud800")


NUMBERS = [str(number) * times for number in (0, 7, 42, 123, 1999, 2024) for times in (1, 2, 5, 20)]


@pytest.mark.parametrize(
    "word", [*NUMBERS, "²e\u0301", "²", "½", "٣٤٥٦", "٣٤٥٦٧", "1" * 60, "Jose\u0301", "A" * 60, "a1"]
)
def test_the_word_that_stands_for_others_has_their_features(word: str) -> None:
    assert described(feature_word(word)) == described(word)
    assert feature_word(feature_word(word)) == feature_word(word)


def test_few_words_stand_for_all_numbers() -> None:
    assert len({feature_word(str(number)) for number in range(100_000)}) < 300


def test_lists_hold_a_word_without_the_end_behind_its_apostrophe() -> None:
    assert stem_of("Ankara'da", "ankara'da") == "ankara"
    assert stem_of("Ankara\u2019da", "ankara\u2019da") == "ankara"
    assert stem_of("Don't", "don't") == "don't"
    assert stem_of("don'dan", "don'dan") == "don'dan"
    assert stem_of("D'Arcy", "d'arcy") == "d'arcy"
    assert stem_of("Anna", "anna") == "anna"


def test_a_dotted_capital_i_is_a_plain_small_one() -> None:
    assert lowered("İzmir") == "izmir"
    assert lowered("IZMIR") == "izmir"
    lists = Gazetteer({key_of("izmir"): 1})
    assert (
        features(["İzmir'de"], lists).listed.tolist() != features(["İzmir'de"], Gazetteer({})).listed.tolist()
    )


def test_the_rows_of_a_word_are_those_of_its_letters_its_outline_and_its_n_grams() -> None:
    """Compute the rows once more, letter by letter."""

    def mixed(number: int) -> int:
        return (number * 0x9E3779B1 & 0xFFFFFFFF) >> 16

    def grams(lower: str) -> list[int]:
        letters, rows = [ord(letter) for letter in f"^{lower[:20]}$"], []
        for place in range(len(letters)):
            for size in (3, 4, 5):
                number = 0
                for letter in letters[place : place + size]:
                    number = (number * 0x01000193 + letter) & 0xFFFFFFFF
                if place + size <= len(letters):
                    rows.append(mixed(number + size - 1))
        return rows

    # The case, and 0 for a word in ASCII, 1 for one in Latin letters, 2 for any other.
    words = {
        "Anna": (1, 0),
        "an": (0, 0),
        "McDonald": (4, 0),
        "Ümit": (1, 1),
        "東": (3, 2),
        "KIMVEGAATHOMEOFALLPLACES": (2, 0),
    }
    others = {"2024": 3, "!": 2}
    found = features([*words, *others], NOTHING)
    starts = [0, *found.whole_sizes.cumsum().tolist()]
    assert found.whole_sizes.tolist() == [4] * len(words) + list(others.values())
    for place, (word, (case, script)) in enumerate(words.items()):
        lower, outline = word.lower(), (case * 4 + script) * 16 + min(len(word), 10)
        assert found.whole[starts[place] : starts[place + 1]].tolist() == [
            key_of(lower) % 65_536,
            mixed(key_of(lower) + (case + 1) * 0x85EBCA6B),
            mixed(outline + 7 * 0x85EBCA6B),
            mixed((ord(lower[0]) << 3) + case + 8 * 0x85EBCA6B),
        ]
    assert found.grams.tolist() == [row for word in words for row in grams(word.lower())]
    assert found.gram_sizes.tolist() == [*(len(grams(word.lower())) for word in words), 0, 0]
