"""Whatever a text holds, every character of every reading maps back to characters of the text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from app.engines.views.mapping import Substitution, respelled
from app.engines.views.reading import readings

ODD = [
    *("%41", "%25%34%31", "%", "%e4%", "&amp;", "&#64;", "&amp;#x40;", "&", "\\u0041", "\\\\x41", "\\n1"),
    *(
        "\\ud83d\\ude00",
        "=C3=A4",
        "=\n",
        "=4",
        "[at]",
        " (dot) ",
        "1 2 3 - 4 5 - 6 7 8 9",
        "j o h n @ x . d e",
    ),
    *("\u202e321\u202c", "\u202e", "\U000e0041\U000e0042", "\ufe0f" * 5, "\u200b", "o\u0301", "\uff11"),
    *("\u0430b", "\u2014", "Sm9obiBEb2UgMTIz", "YWJj", "4a6f686e20446f6531", "U205b2JpQkViMlVnTVRJeg=="),
    *("\ud800", "\u00e9", "\ufb01", "\u2167", "a"),
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(ODD) | st.text(max_size=6), max_size=10).map("".join))
def test_every_character_of_a_reading_stands_for_characters_of_the_text(text: str) -> None:
    told = readings(text)
    for view in told.views:
        for start in range(len(view.text)):
            low, high = view.original_span(start, start + 1)
            assert 0 <= low < high <= len(text)
            if not view.way(start, start + 1):
                assert view.text[start] == text[low]
        for low, high in view.windows():
            assert 0 <= low <= high <= len(view.text)
    assert sum(len(view.text) for view in told.views) <= 10 * len(text) + 100
    assert all(0 <= low < high <= len(text) for low, high in told.sealed)


def test_pieces_map_by_character_backwards_or_as_a_whole() -> None:
    view = respelled(
        "ab321cdXYe", [Substitution(2, 5, "123", "r", backwards=True), Substitution(7, 9, "long", "w")]
    )
    assert view.text == "ab123cdlonge"
    assert view.original_span(1, 2) == (1, 2)
    assert view.original_span(2, 3) == (4, 5)
    assert view.original_span(2, 5) == (2, 5)
    assert view.original_span(1, 3) == (1, 5)
    assert view.original_span(8, 9) == (7, 9)
    assert view.original_span(6, 12) == (6, 10)
    assert (view.way(0, 2), view.way(2, 3), view.way(8, 9), view.ways) == ("r", "r", "w", "r+w")


def test_plain_text_has_no_other_reading() -> None:
    assert readings("My name is Jo, 50% of x=20 at /usr/lib/python3 & more.").views == []


def test_a_way_names_every_encoding_from_the_outside_in() -> None:
    told = readings("see U205b2JpQkViMlVnTVRJekxUUTFMVFkzT0RrPQ== now")
    inner = told.views[-1]
    place = inner.text.index("123-45")
    assert inner.way(place, place + 6) == "base64"
    told = readings("see %26%2364%3B now")
    place = told.views[-1].text.index("@")
    assert told.views[-1].way(place, place + 1) == "percent+html"


def test_a_part_of_the_text_below_is_found_in_the_view_of_it() -> None:
    view = respelled("ab%41cd%42e", [Substitution(2, 5, "A", "percent"), Substitution(7, 10, "", "percent")])
    assert view.text == "abAcde"
    parts = [(0, 2), (1, 5), (2, 5), (3, 4), (5, 7), (6, 10), (7, 10)]
    assert [view.text[slice(*view.own_span(*part))] for part in parts] == [
        *("ab", "bA", "A", "A", "cd", "d", ""),
    ]
