"""Values in pieces become one where together they have the form of a value, and nothing else changes."""

import pytest

from app.engines.views.mapping import apart, respelled
from app.engines.views.pieces import numbers, strings


def joined(text: str) -> str:
    return respelled(text, apart([*numbers(text), *strings(text)])).text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("5424/1801/2345/6789", "5424180123456789"),
        ("5424\n1801\n2345\n6789", "5424180123456789"),
        ("no [5, 4, 2, 4, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9] end", "no [5424180123456789] end"),
        ("54/24/18/01/23/45/67/89", "5424180123456789"),
        ("3782/822463/10005", "378282246310005"),
        ("4111/1111/1111/1111", "4111111111111111"),
        ("4444/4444/4444/4448", "4444444444444448"),
        ("rated 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 8", "rated 4444444444444448"),
        ("- item 3\n- 4111\n1111\n1111\n1111\n- item 4", "- item 3\n- 4111111111111111\n- item 4"),
        ("3: [4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", "3: [4111111111111111]"),
        ("item 3: 4111|1111|1111|1111", "item 3: 4111111111111111"),
        ("3782-8224-6310-005", "378282246310005"),
        ("3056 9309 0259 04", "30569309025904"),
        ("1117, 219\n09\n9999 x", "1117, 219-09-9999 x"),
        ('"+", "4", "4", " ", "2", "0"', "+44 20"),
        ("5 4 2 4 1 8 0 1 2 3 4 5 6 7 8 9", "5424180123456789"),
        ("row 12:5424/1801/2345/6789", "row 12:5424180123456789"),
        ("12, 5424/1801/2345/6789, 7", "12, 5424180123456789, 7"),
        ("219/09/9999", "219-09-9999"),
        ("219\n09\n9999", "219-09-9999"),
        ("3782/8224/6310/005", "378282246310005"),
        ("3056/930902/5904", "30569309025904"),
        ('["219", "09", "9999"]', '["219", "09", "9999"]'),
        ('["219","09","9999"]', '["219-09-9999"]'),
        ("DE89|3704|0044|0532|0130|00", "DE89 3704 0044 0532 0130 00"),
        ("kim@\nvega.example", "kim@vega.example"),
        ("kim\n@vega.example", "kim@vega.example"),
        ("kim \r\n> @vega.example", "kim@vega.example"),
        ('"kim@ve" + "ga.example"', '"kim@vega.example"'),
        ("'k','i','m','@','x'", "kim@x"),
        ("[k][i][m][@][x]", "kim@x"),
        ("(k) (i) (m) (@) (x)", "kim@x"),
    ],
)
def test_pieces_of_a_value_are_joined(text: str, seen: str) -> None:
    assert joined(text) == seen


@pytest.mark.parametrize(
    "text",
    [
        "5424/1801/2345/6780",
        "1424/1801/2345/6783",
        "4242/4242/4242/4243",
        "rated 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 7",
        "4444, 4444, 4444, 4448, 12",
        "12; 4444, 4444, 4444, 4448, 12; 7",
        "1117\n219\n09\n9999",
        "1117, 219\n09\n9999\n17",
        "542/41801/2345/6789",
        "5424 1801 2345 6789",
        "219, 09, 9999",
        "219\n09\n9999\n17",
        "219\n\n09\n\n9999",
        "2024/05/06 12:30:45",
        "10, 20, 30, 40, 50, 60, 70, 80",
        "[a][b][c]",
        "'a', 'b'",
        "Best,\n@kim",
        "a @\nb",
        '"one" "two"',
    ],
)
def test_other_numbers_and_signs_stay_apart(text: str) -> None:
    assert joined(text) == text


def test_a_piece_maps_back_to_what_stands_for_it() -> None:
    text = "pay 5424/1801/2345/6789 now"
    view = respelled(text, apart([*numbers(text), *strings(text)]))
    assert view.original_span(4, 20) == (4, 23)
    assert view.way(4, 20) == "pieces"
