"""English in one case is spelled as usual before names are looked for a second time."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.recasing import recased
from app.engines.pii.search.analyzer import Analyzer

COMMON = frozenset({"tell", "that", "we", "moved", "please", "call", "is", "can", "wait", "for", "us"})


def kinds(word: str) -> str:
    return "w" if word in COMMON else ""


def spelled(text: str) -> list[tuple[int, str]]:
    return list(recased(text, kinds))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tell quelda that we moved", [(0, "tell Quelda that we moved")]),
        ("TELL QUELDA THAT WE MOVED", [(0, "tell Quelda that we moved")]),
        ("Hi,\nPLEASE CALL QUELDA\nBye", [(4, "please call Quelda")]),
        ("we can't wait for o'quell", [(0, "we can't wait for O'quell")]),
        ("Tell quelda that we moved", []),
        ("TELL QUELDA", []),
        ("TELL QUELDA ZELBRIN QVORST NERVI", []),
        ("tell(quelda) that we moved", []),
        ("tell quelda.zorn that we moved", []),
        ("tell that we moved", []),
        ("tell \u0149quel that we moved", []),
    ],
)
def test_only_prose_in_one_case_is_spelled_anew(text: str, expected: list[tuple[int, str]]) -> None:
    assert spelled(text) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("please forward this to hugo frolich before the meeting", "hugo frolich"),
        ("WE ARE STILL WAITING FOR MS KOWALSKI TO SIGN THE FORM", "KOWALSKI"),
        ("i spoke to samira haddad about the refund", "samira haddad"),
    ],
)
def test_people_are_found_in_one_case(analyzer: Analyzer, text: str, name: str) -> None:
    covered = {
        place
        for span in analyzer.analyze(text, DetectionOptions())
        if span.label == "PERSON"
        for place in range(span.start, span.end)
    }
    start = text.index(name)
    assert covered >= set(range(start, start + len(name)))


def test_nobody_is_found_in_one_case_where_nobody_is(analyzer: Analyzer) -> None:
    for text in ("please close the door when you leave", "PLEASE CLOSE THE DOOR WHEN YOU LEAVE"):
        assert analyzer.analyze(text, DetectionOptions()) == []
