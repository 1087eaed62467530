"""People are told from the company that a tagger takes them for a part of."""

import pytest

from app.engines.pii.names.companies import people_apart
from app.engines.pii.names.decoding import TaggedSpan
from app.engines.pii.names.words import GAZETTEER_KINDS, Gazetteer, key_of

LISTS = {
    "anna": "f",
    "tom": "f",
    "philip": "f",
    "berg": "l",
    "morris": "l",
    "smith": "l",
    "jones": "lf",
    "brown": "l",
    "bank": "s",
    "deutsche": "o",
}


@pytest.fixture
def lists() -> Gazetteer:
    return Gazetteer(
        {
            key_of(word): sum(1 << GAZETTEER_KINDS.index(kind) for kind in kinds)
            for word, kinds in LISTS.items()
        }
    )


def apart(text: str, lists: Gazetteer, *tagged: tuple[str, str]) -> list[tuple[str, str]]:
    spans = [TaggedSpan(text.index(what), text.index(what) + len(what), label, 0.9) for what, label in tagged]
    return [(text[one.start : one.end], one.label) for one in people_apart(text, spans, lists)]


@pytest.mark.parametrize("company", ["Siemens AG", "Deutsche Bank AG", "Iberdrola S.A."])
def test_a_name_before_a_company_is_a_person(lists: Gazetteer, company: str) -> None:
    text = f"Regards, Anna Berg {company}"
    expected = [("Anna Berg", "PERSON"), (company, "ORGANIZATION")]
    assert apart(text, lists, (f"Anna Berg {company}", "ORGANIZATION")) == expected
    assert apart(text, lists, ("Anna", "PERSON"), (f"Berg {company}", "ORGANIZATION")) == expected


def test_last_names_in_a_row_are_people(lists: Gazetteer) -> None:
    assert apart("PRESENT: SMITH, JONES, BROWN", lists, ("SMITH, JONES, BROWN", "ORGANIZATION")) == [
        ("SMITH", "PERSON"),
        ("JONES", "PERSON"),
        ("BROWN", "PERSON"),
    ]


def test_one_finding_of_three_last_names_is_three_people(lists: Gazetteer) -> None:
    assert apart("STAFF: Smith, Jones, Brown", lists, ("Smith, Jones, Brown", "PERSON")) == [
        ("Smith", "PERSON"),
        ("Jones", "PERSON"),
        ("Brown", "PERSON"),
    ]
    assert apart("Name: Berg, Anna", lists, ("Berg, Anna", "PERSON")) == [("Berg, Anna", "PERSON")]


@pytest.mark.parametrize(
    "company",
    ["Anna Berg AG", "Philip Morris International Inc", "Smith, Jones & Brown LLP", "Anna Berg Foundation"],
)
def test_a_company_that_is_called_after_people_stays_one(lists: Gazetteer, company: str) -> None:
    assert apart(f"at {company} today", lists, (company, "ORGANIZATION")) == [(company, "ORGANIZATION")]
