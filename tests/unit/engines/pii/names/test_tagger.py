"""The embedded tagger finds names in prose, mail, chat and records; it stays quiet and linear on all else."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from app.engines.pii.names.tagger import LABELS, TaggedSpan, Tagger
from tests.proportion import assert_in_proportion


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger.embedded()


def names(tagger: Tagger, text: str, label: str = "PERSON") -> list[str]:
    return [text[span.start : span.end] for span in tagger(text) if span.label == label]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My name is John Doe and my SSN is 123-45-6789", ["John Doe"]),
        (
            "Please review this contract for Jane Smith (jane.smith@example.com, SSN: 987-65-4321)",
            ["Jane Smith"],
        ),
        ("my name is jane smith", ["jane smith"]),
        ('{"name": "Jane Smith"}', ["Jane Smith"]),
        ('{"id": 7, "customer_name":"Priya Raghunathan","status":"open"}', ["Priya Raghunathan"]),
        ("Hi Maria,", ["Maria"]),
        ("Kind regards,\nThomas Okafor\nAccount Manager", ["Thomas Okafor"]),
        ("Ask Wang Xiaoming or Trần Văn Hùng about it.", ["Wang Xiaoming", "Trần Văn Hùng"]),
        ("Ask José Álvarez or Zoë Müller.", ["José Álvarez", "Zoë Müller"]),
        ("2026-11-20 10:00:00 INFO user=Carlos Mendez action=login", ["Carlos Mendez"]),
        ("JOHN SMITH called again.", ["JOHN SMITH"]),
    ],
)
def test_names_of_people_are_found_with_exact_offsets(tagger: Tagger, text: str, expected: list[str]) -> None:
    assert names(tagger, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20 10:00:00 ERROR [worker-3] com.example.OrderService - Connection refused",
        "def parse_header(self, name: str) -> Header:\n    return self._headers[name.lower()]",
        "See README.md and config/settings.yaml, then run make test.",
        "The meeting moved from Monday to a Tuesday in April or May.",
        "Windows 11, Kubernetes and PostgreSQL were upgraded in March.",
        "[PERSON_1] met [PERSON_2] in [LOCATION_1] on Monday.",
        "Please reset my password and send the invoice again.",
        "",
        " \n\t ",
        "write a haiku about autumn leaves",
        "12345 67890 -- ++ //",
    ],
)
def test_code_logs_months_products_files_and_redaction_handles_are_no_names(
    tagger: Tagger, text: str
) -> None:
    assert names(tagger, text) == []


def test_a_possessive_is_not_part_of_the_name(tagger: Tagger) -> None:
    assert names(tagger, "I borrowed Maria's laptop and Peter’s charger.") == ["Maria", "Peter"]


@pytest.mark.parametrize(
    "address",
    [
        "12 Main Street, Springfield, IL 62704",
        "742 Evergreen Terrace, Apt 4, Portland, OR 97201",
        "221B Baker Street, London NW1 6XE",
    ],
)
def test_street_city_state_and_post_code_are_one_address(tagger: Tagger, address: str) -> None:
    assert names(tagger, f"Please ship it to {address}.", "ADDRESS") == [address]


def test_letters_and_digits_in_one_run_are_no_address(tagger: Tagger) -> None:
    for digest in (
        "86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "deadbeef42",
        "a1b2c3d4",
    ):
        assert names(tagger, f"sha256: {digest} is the digest of {digest}", "ADDRESS") == []


def test_places_and_organizations_have_their_own_labels(tagger: Tagger) -> None:
    text = "Siemens opened an office in Madrid."
    assert names(tagger, text, "ORGANIZATION") == ["Siemens"]
    assert names(tagger, text, "LOCATION") == ["Madrid"]


def test_a_higher_threshold_only_removes_findings(tagger: Tagger) -> None:
    text = "Mark and Dr. Okafor met Grace at Acme in Jordan. lol ask taylor. Hunter will see April."
    counts = [sum(s.end - s.start for s in tagger(text, threshold)) for threshold in (0.05, 0.3, 0.5, 0.9)]
    assert counts == sorted(counts, reverse=True)
    assert all(span.score >= 0.9 for span in tagger(text, 0.9))


PIECES = [
    "John Doe",
    " ",
    "\n",
    "\x00",
    "\ud800",
    "é",
    "e\u0301",
    "山田太郎",
    "مرحبا",
    "🙂",
    "'s",
    "’",
    "7",
    ",",
    "\u200b",
    "A" * 90,
    "St.",
]


def test_spans_are_sorted_apart_and_inside_the_text_for_any_unicode(tagger: Tagger) -> None:
    chance = random.Random(3)
    for _ in range(300):
        text = "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 40)))
        spans = tagger(text, 0.1)
        assert all(
            0 <= s.start < s.end <= len(text)
            and s.label in LABELS
            and 0 <= s.score <= 1
            and 0 <= s.share <= 1
            for s in spans
        )
        assert all(before.end <= after.start for before, after in pairwise(spans))


@pytest.mark.parametrize(
    "unit", ["a", "A", "'", "a'", "1", "\n", "é", "e\u0301", "山", "a1", "\ud800", "Jo.", "Jo "]
)
def test_a_long_run_of_anything_costs_time_in_proportion_to_its_length(tagger: Tagger, unit: str) -> None:
    assert_in_proportion(lambda size: tagger(unit * (size // len(unit))), 20_000, 80_000)


def test_a_megabyte_without_a_space_is_safe(tagger: Tagger) -> None:
    assert tagger("x" * 1_000_000 + " My name is John Doe.")[-1].label == "PERSON"


def test_a_name_is_found_wherever_it_stands_in_a_long_text(tagger: Tagger) -> None:
    line = "The patient, Maria Gonzales, was seen on Monday. "
    found = tagger(line * 900)
    assert [span.start for span in found] == [13 + len(line) * index for index in range(900)]
    assert len({span.end - span.start for span in found}) == 1


def test_more_distinct_words_than_the_cache_holds_change_nothing(tagger: Tagger) -> None:
    filler = " ".join(
        f"w{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}zq" for i in range(40_000)
    )
    text = f"My name is Jane Smith. {filler}. My name is Jane Smith."
    assert names(tagger, text)[0] == "Jane Smith"
    assert names(tagger, text)[-1] == "Jane Smith"


def test_threads_that_share_a_tagger_get_the_answers_of_one(tagger: Tagger) -> None:
    texts = [
        f"Dear Ms. Tanaka, invoice {i} for Omar Haddad in Lyon is due. {chr(97 + i % 26) * i}"
        for i in range(60)
    ]
    fresh = Tagger.embedded()
    expected: list[list[TaggedSpan]] = [tagger(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert [[(s.start, s.end, s.label) for s in spans] for spans in pool.map(fresh, texts)] == [
            [(s.start, s.end, s.label) for s in spans] for spans in expected
        ]
