"""The head of a column says what its cells hold; only cells are hidden, and numbers under other heads stay."""

import pytest

from app.engines.views.tables import table_view
from tests.unit.engines.pii.conftest import Find

TABLES = [
    (
        "employee_id,last_name,dob,department\nE41213,Jensen,1990-02-03,Sales\nE99120,Okafor,1985-11-30,Legal\n",
        {
            ("E41213", "EMPLOYEE_ID"),
            ("E99120", "EMPLOYEE_ID"),
            ("1990-02-03", "DATE"),
            ("1985-11-30", "DATE"),
        },
    ),
    (
        'name;account_number;note\n"Chen; Amy";565178800;"a;b"\nRavi Iyer;158108620;c',
        {("565178800", "BANK_ACCOUNT"), ("158108620", "BANK_ACCOUNT")},
    ),
    ("id\tpassport_no\tcity\r\n7\tO59934265\tOslo\r\n", {("O59934265", "PASSPORT")}),
    ("| Room | MRN |\n|------|-----|\n| 12 | 00482913 |\n| 14 | 00482955 |", {("00482955", "MRN")}),
    (
        (
            "insert into `staff` (emp_no, birth_date, remark) values ('E41213', '1990-02-03', 'it''s (tea)'), "
            "('E99120', DATE('1985-11-30'), 'a, b');"
        ),
        {
            ("E41213", "EMPLOYEE_ID"),
            ("E99120", "EMPLOYEE_ID"),
            ("1990-02-03", "DATE"),
            ("1985-11-30", "DATE"),
        },
    ),
]

PLAIN = [
    "region,total,share\nNorth,565178800,12\nSouth,158108620,88\n",
    "Dear all, the account number, the name and the date are missing.\nPlease, see below, soon.\n",
    "year,quarter,units\n2023,1,48213377\n2023,2,48213388\n",
    "INSERT INTO sales (region, total) VALUES ('North', 565178800);",
]


@pytest.mark.parametrize(("text", "expected"), TABLES)
def test_cells_are_found_by_the_head_of_their_column(
    find: Find, text: str, expected: set[tuple[str, str]]
) -> None:
    assert expected <= set(find(text))


@pytest.mark.parametrize("text", PLAIN)
def test_numbers_below_heads_that_name_nothing_personal_are_left(find: Find, text: str) -> None:
    assert find(text) == []


def test_a_row_with_another_number_of_cells_ends_a_table(find: Find) -> None:
    text = "employee_id,city\nE41213,Oslo\n\nE99120,E99121,E99122\n"
    assert find(text) == [("E41213", "EMPLOYEE_ID")]


@pytest.mark.parametrize(("text", "expected"), TABLES)
def test_every_cell_of_the_view_stands_for_its_place_in_the_text(
    text: str, expected: set[tuple[str, str]]
) -> None:
    view = table_view(text)
    assert view is not None
    for value, _ in expected:
        place = view.text.index(value)
        start, end = view.original_span(place, place + len(value))
        assert text[start:end] == value


def test_a_text_without_a_table_has_no_view() -> None:
    assert table_view("My name is Jo, and this is no table; it is | prose.\n" * 50) is None
