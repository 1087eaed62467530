"""Words in every script: how stored text and questions are cut so that one finds the other."""

import pytest

from app.core.catalog.search_words import (
    count_words,
    search_text,
    search_words,
    truncated,
    words_beyond_ascii,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Café dÉJÀ_vu 2025", ["cafe", "deja", "vu", "2025"]),
        ("\uff34\uff4f\uff4b\uff59\uff4f", ["tokyo"]),
        ("東京都", ["東京", "京都"]),
        ("猫", ["猫"]),
        ("iPhone15を", ["iphone15", "を"]),
        # A voiced kana is a letter of its own, in one sign, in two, or of half width.
        ("データ", ["デー", "ータ"]),
        ("データ", ["デー", "ータ"]),
        ("\uff83\uff9e\uff70\uff80", ["デー", "ータ"]),
        ("대한 물", ["대한", "물"]),
        ("ภาษาไทย"[:4], ["ภาษ", "าษา"]),
        ("น้ำ", ["นา"]),
        # Marks are dropped, and part no word: the vowels of Hindi, the vowel points of Arabic and Hebrew.
        ("हिन्दी", ["हनद"]),
        ("كَتَبَ", ["كتب"]),
        ("россий", ["россии"]),
        ("\u201cquoted\u201d \u2013 dash", ["quoted", "dash"]),
    ],
)
def test_questions_are_cut_by_their_script(text: str, words: list[str]) -> None:
    assert search_words(text, asked=True) == words


def test_stored_text_has_single_characters_of_chinese_besides() -> None:
    assert search_words("東京") == ["東京", "東", "京"]
    assert search_words("猫を") == ["猫を", "猫"]
    assert search_words("猫") == ["猫"]


def test_a_database_s_parser_sees_pieces_and_keeps_the_rest() -> None:
    plain = "user@example.org is ASCII: Caf_1"
    assert search_text(plain) is plain
    assert search_text("Café, https://a.b/c?d") == "cafe, https://a.b/c?d"
    assert search_text("the 東京-x").split() == ["the", "東京", "東", "京", "-x"]


def test_words_beyond_ascii_are_those_that_no_ascii_index_has() -> None:
    assert words_beyond_ascii("plain words") == ""
    assert words_beyond_ascii("naïve \u201cquotes\u201d") == ""
    assert words_beyond_ascii("the 東京 naïve мир") == "東京 東 京 мир"


@pytest.mark.parametrize(
    ("forms", "kept"),
    [
        ("российский российского российским", "росси"),
        ("πληθυσμος πληθυσμου", "πληθυ"),
        # Vowels that are marks, or are not written, are none of the four letters.
        ("مدرسة المدرسة والمدرسة للمدرسة بالمدرسة ومدرسة مدرسية", "مدرس"),
        ("परकरतक परकरतकत", "परकर"),
        ("книга", "книга"),
        ("الله", "الله"),
        ("وزير", "وزير"),
        ("plainly", "plainly"),
        ("größenordnung", "größenordnung"),
        ("東京都東京", "東京都東京"),
        ("версия2025", "версия2025"),
        ("१२३४५६", "१२३४५६"),
    ],
)
def test_forms_of_a_word_are_truncated_to_what_they_share(forms: str, kept: str) -> None:
    assert {truncated(form) for form in forms.split()} == {kept}
    assert truncated(kept) == kept


def test_stored_words_are_followed_by_what_is_kept_of_them() -> None:
    assert search_words("Российская книга") == ["россииская", "росси", "книга"]
    assert search_words("Российская книга", asked=True) == ["россииская", "книга"]
    assert search_words("российская東京") == ["россииская", "росси", "東京", "東", "京"]
    assert search_text("a российская-b").split() == ["a", "россииская", "росси", "-b"]
    assert words_beyond_ascii("a российская b") == "россииская росси"


def test_without_spaces_two_characters_are_as_long_as_a_word() -> None:
    assert count_words("a b", "c") == 3
    assert count_words("東京都庁") == 1 + 2
    assert count_words("мир и труд") == 3
