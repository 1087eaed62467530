"""What is found, and what is left alone, in whole texts."""

import base64
import itertools
import subprocess
import sys

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.languages import warnings_for
from app.engines.pii.search.analyzer import Analyzer
from app.engines.pii.search.searching import CHUNK, chunks
from tests.proportion import assert_in_proportion
from tests.unit.engines.pii.conftest import Find


def test_the_first_example_gives_exactly_the_name_and_the_number(find: Find) -> None:
    assert find("My name is John Doe and my SSN is 123-45-6789") == [
        ("John Doe", "PERSON"),
        ("123-45-6789", "SSN"),
    ]


def test_the_second_example_gives_exactly_three_findings(find: Find) -> None:
    text = "Please review this contract for Jane Smith (jane.smith@example.com, SSN: 987-65-4321)"
    expected = [("Jane Smith", "PERSON"), ("jane.smith@example.com", "EMAIL"), ("987-65-4321", "SSN")]
    assert find(text) == expected


def test_a_text_without_personal_data_has_no_findings(find: Find) -> None:
    assert find("Find my meeting notes from last week about the marketing campaign") == []
    assert find("") == []
    assert find(" \n\t ") == []


@pytest.mark.parametrize("strict", [False, True])
def test_handles_are_never_findings(find: Find, strict: bool) -> None:
    text = "See [PERSON_1] and [EMAIL_12], [CARD_3~abcd] and [SSN_123456789]."
    assert find(text, strict=strict) == []


def test_a_finding_beside_a_handle_does_not_swallow_it(analyzer: Analyzer) -> None:
    text = "Write to [PERSON_1] John Doe [EMAIL_2] at john@example.com"
    for span in analyzer.analyze(text, DetectionOptions(strict=True)):
        assert "[" not in text[span.start : span.end]


def test_standard_keeps_organizations_places_dates_and_links(find: Find) -> None:
    text = "Acme Corporation in Berlin published https://www.example.com/news on 2024-05-06."
    assert find(text) == []
    labels = {label for _, label in find(text, strict=True)}
    assert {"URL", "DATE", "LOCATION"} <= labels


def test_naming_a_label_finds_it_in_standard_too(find: Find) -> None:
    text = "John Doe met us on 2024-05-06."
    assert find(text, entities=frozenset({"DATE"})) == [("2024-05-06", "DATE")]


def test_excluded_labels_are_not_found(find: Find) -> None:
    assert find("John Doe, john@example.com", exclude=frozenset({"EMAIL"})) == [("John Doe", "PERSON")]


def test_a_date_of_birth_is_found_in_standard(find: Find) -> None:
    assert find("She was born on 12 March 1980.") == [("12 March 1980", "DATE")]
    assert find('"dob": "1980-03-12"') == [("1980-03-12", "DATE")]


def test_allowed_texts_are_never_findings(find: Find) -> None:
    text = "Ask JANE SMITH or jane.smith@example.com"
    assert find(text, allow_list=("jane  smith",)) == [("jane.smith@example.com", "EMAIL")]


def test_denied_texts_are_always_findings_as_whole_words(find: Find) -> None:
    text = "Project Bluebird and bluebird's budget; bluebirds fly. Blue\u200bbird too."
    found = find(text, deny_list=("bluebird",))
    assert found == [("Bluebird", "CUSTOM"), ("bluebird", "CUSTOM"), ("Blue\u200bbird", "CUSTOM")]


def test_denied_texts_may_hold_any_characters(find: Find) -> None:
    assert find("the (x+y)* rule of C++", deny_list=("(x+y)*", "c++")) == [
        ("(x+y)*", "CUSTOM"),
        ("C++", "CUSTOM"),
    ]


def test_denied_texts_that_overlap_are_all_found(find: Find) -> None:
    found = find("the red kite project runs", deny_list=("red kite", "kite project"))
    assert found == [("red kite project", "CUSTOM")]


@pytest.mark.parametrize(
    "text", ["RED KITE", "red" + " " * 40 + "kite", "Red\n\t\u00a0Kite", "RE\u200bD KITE"]
)
def test_white_space_and_case_do_not_hide_what_is_denied(find: Find, text: str) -> None:
    assert find(f"the {text} runs", deny_list=("Red  Kite",)) == [(text, "CUSTOM")]


def test_letters_that_are_two_in_capitals_do_not_hide_what_is_denied(find: Find) -> None:
    found = find("Die WEISSE straße, İSTANBUL, istanbul", deny_list=("weiße strasse,", "Istanbul"))
    assert found == [("WEISSE straße,", "CUSTOM"), ("İSTANBUL", "CUSTOM"), ("istanbul", "CUSTOM")]


def test_a_long_deny_list_and_many_findings_in_one_encoded_run_take_linear_time(analyzer: Analyzer) -> None:
    steps = tuple("a " * count + "b" for count in range(1, 400))
    denied = DetectionOptions(entities=frozenset({"SSN"}), deny_list=steps)

    def scanned(count: int) -> None:
        assert analyzer.scan("a " * 10 * count, denied) == []
        encoded = base64.b64encode(b"jane@example.com paid; " * count).decode()
        assert len(analyzer.scan(encoded, DetectionOptions(allow_list=("nobody",)))) == 1

    assert_in_proportion(scanned, 750, 3_000)


def test_the_same_text_gives_the_same_findings_every_time(analyzer: Analyzer) -> None:
    text = (
        "John Doe, 212-555-0143, 4111 1111 1111 1111, DE89 3704 0044 0532 0130 00, 10.0.0.1, NINO AB123456C. "
        * 20
    )
    for strict in (False, True):
        options = DetectionOptions(strict=strict)
        assert (
            analyzer.analyze(text, options)
            == analyzer.analyze(text, options)
            == Analyzer().analyze(text, options)
        )


def test_findings_do_not_depend_on_what_follows_far_behind(analyzer: Analyzer) -> None:
    head = "My name is John Doe and my SSN is 123-45-6789. " + "The weather is fine today. " * 40
    short = analyzer.scan(head, DetectionOptions())
    long = analyzer.scan(head + "Nothing new to say. " * 3000, DetectionOptions())
    assert long[: len(short)] == short


def test_spans_are_sorted_apart_and_without_blanks_at_their_ends(analyzer: Analyzer) -> None:
    text = (
        "Name:  John Doe  \n SSN 123-45-6789, card 4111 1111 1111 1111 john@example.com +1-202-555-0173 \n"
        * 30
    )
    for strict in (False, True):
        spans = analyzer.analyze(text, DetectionOptions(strict=strict))
        assert all(before.end <= after.start for before, after in itertools.pairwise(spans))
        assert all(text[s.start : s.end] == text[s.start : s.end].strip() != "" for s in spans)


@pytest.mark.parametrize("offset", [*range(-30, 31, 3)])
def test_nothing_is_lost_where_two_chunks_meet(find: Find, offset: int) -> None:
    filler = "and so on " * 2000
    text = filler[: CHUNK + offset] + " 219-09-9999 or jane@example.com " + filler[: CHUNK - offset]
    assert ("219-09-9999", "SSN") in find(text)
    assert ("jane@example.com", "EMAIL") in find(text)


def test_chunks_cover_the_text_and_overlap() -> None:
    for text in ("word " * 9000, "x" * 40_000, "", "short"):
        parts = list(chunks(text, 0, len(text)))
        assert all(after[0] < before[1] for before, after in itertools.pairwise(parts))
        assert (parts[0][0], parts[-1][1]) == (0, len(text)) if text else parts == []


def test_a_language_without_a_tagger_is_told_but_patterns_still_work(find: Find) -> None:
    assert (
        warnings_for(["hello"], "auto") == warnings_for(["hello"], "en") == warnings_for(["x"], "en-GB") == []
    )
    assert "'pl'" in warnings_for(["hallo"], "pl")[0]
    assert "not a language code" in warnings_for(["x"], "klingon language")[0]
    assert warnings_for(["東京都に住んでいる山田太郎さんの電話番号は何番ですか、教えてください。"], "auto")
    assert find("Meine IBAN ist DE89370400440532013000", language="de")[-1] == (
        "DE89370400440532013000",
        "IBAN",
    )


def test_detection_opens_no_connection() -> None:
    program = (
        "import socket\n"
        "def refuse(*_): raise OSError('no network here')\n"
        "socket.socket.connect = refuse\nsocket.getaddrinfo = refuse\n"
        "from app.engines.pii.search.analyzer import Analyzer\n"
        "from app.core.contracts.engines import DetectionOptions\n"
        "found = Analyzer().analyze('user@corp.internal or a@example.com', DetectionOptions(strict=True))\n"
        "print([span.label for span in found])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['EMAIL', 'EMAIL']"
