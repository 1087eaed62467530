"""Elements of a list form one value where they have the form of one, or where a name says so."""

import pytest

from app.core.content.shapes.split_values import lists_of, split_value, written_elements


@pytest.mark.parametrize(
    ("elements", "cue", "value"),
    [
        ("412689937", "ssn", "412689937"),
        ("412689937", "", ""),
        ("908", "cvv", "908"),
        ("90", "cvv", ""),
        ("5424180123456789", "", "5424180123456789"),
        ("5424180123456780", "", ""),
        ("1424180123456783", "", ""),
        ("4444444444444448", "", "4444444444444448"),
        ("4444444444444444", "", ""),
        ("0000000000000000", "", ""),
        (["5424", "1801", "2345", "6789"], "", "5424180123456789"),
        (["4111", "1111", "1111", "1111"], "", "4111111111111111"),
        (["542", "41801", "2345", "6789"], "", ""),
        (["412", "68", "9937"], "ssn", "412689937"),
        (["412", "68", "9937"], "", ""),
        (["60614", "20095", "94110"], "zip", ""),
        (["GB82", "WEST", "1234", "5698", "7654", "32"], "", "GB82WEST12345698765432"),
        (["GB82", "WEST", "1", "5698", "7654", "32"], "", ""),
        ("ko@net.de", "", "ko@net.de"),
        ("xoxoxoxox", "", ""),
        ("ab1de", "", ""),
        (["1234567", "1", "2"], "ssn", ""),
        (["1", "", "2"], "ssn", ""),
        ("1" * 513, "ssn", ""),
    ],
)
def test_what_elements_form_together(elements: str | list[str], cue: str, value: str) -> None:
    assert split_value(list(elements), cue) == value


def test_only_strings_and_whole_numbers_are_written() -> None:
    assert written_elements([4, "1", -2]) == ["4", "1", "-2"]
    assert written_elements([4, True]) == written_elements([4, 1.5]) == written_elements([4, None]) == []


def test_lists_are_elements_that_follow_each_other() -> None:
    pointers = ["/a/0", "/a/1", "/a/2", "/b", "/c/0", "/c/1", "", "/d/0", "/d/1", "/d/2", "/d/3"]
    assert lists_of(pointers) == [range(3), range(7, 11)]
