"""A statement that follows a sentence and turns or exchanges something in it is found; what restates it is not."""

import random

import pytest

from app.engines.grounding.numbers import KnownQuantities
from app.engines.grounding.quantities import quantities_in
from tests.benchmarks.judge.contradiction_texts import statements
from tests.benchmarks.judge.contradictions import share_found
from tests.proportion import assert_in_proportion
from tests.unit.engines.grounding.checking import findings

KNOWN = (
    "The orchard behind the school was planted in 1974 by Ruth Adler and is not open to visitors. "
    "Brightwater lent Coldspring 40,000 dollars in May, and the loan is due after the harvest. "
    "At least 12 of the 30 trees carry fruit every autumn, the gardener Paul Weiss told the Daily Post. "
    "The south wall may collapse, so all visitors must wear helmets."
)
TURNED = [
    "The orchard behind the school is open to visitors.",
    "The orchard behind the school was planted in 1984 by Ruth Adler.",
    "The orchard behind the school was planted by Hanna Stern.",
    "Coldspring lent Brightwater 40,000 dollars.",
    "Brightwater borrowed 40,000 dollars.",
    "Brightwater lent Coldspring 40,000 dollars in June.",
    "Brightwater lent Coldspring 40,000 euros in May.",
    "Brightwater lent Coldspring 60,000 dollars in May.",
    "Brightwater did not lend Coldspring 40,000 dollars.",
    "The loan is due before the harvest.",
    "At most 12 of the 30 trees carry fruit every autumn.",
    "At least 12 of the 30 trees carry fruit every spring.",
    "The north wall may collapse.",
    "The south wall must collapse.",
    "Some visitors must wear helmets.",
]
RESTATED = [
    "Visitors cannot enter the orchard behind the school.",
    "The orchard was planted by Ruth Adler in 1974.",
    "Coldspring was lent 40,000 dollars by Brightwater in May.",
    "In May, Brightwater lent 40k dollars to Coldspring.",
    "The loan is due once the harvest is over.",
    "According to Paul Weiss, at least 12 trees carry fruit every autumn.",
    "All visitors must wear helmets because the south wall may collapse.",
    "The wall in the south may collapse.",
    "The orchard has not been opened to visitors.",
]


PAIRS = [
    (
        "The tank holds 40 litres of water.",
        "The tank holds 40 gallons of water.",
        "The tank takes 40 l of water.",
    ),
    (
        "The lease runs for 18 months.",
        "The lease runs for 18 weeks.",
        "The lease runs for a year and a half.",
    ),
    ("Patients waited six weeks.", "Patients waited six months.", "Patients waited for six weeks."),
    (
        "The oven has 200 degrees Celsius.",
        "The oven has 200 degrees Fahrenheit.",
        "The oven has 200 \u00b0C.",
    ),
    ("Most members voted for it.", "Few members voted for it.", "The majority of the members voted for it."),
    ("Few residents own a car.", "Most residents own a car.", "Most residents do not own a car."),
    ("Half the staff works at night.", "All the staff works at night.", "Half of the staff works at night."),
    ("The board meets weekly.", "The board meets monthly.", "The board meets every week."),
    ("Dozens of people came.", "Hundreds of people came.", "People came by the dozen."),
    ("Kepler Foods opened a store.", "Orion Foods opened a store.", "The store was opened by Kepler Foods."),
    ("Marlow sued the publisher.", "Denton sued the publisher.", "The author sued the publisher."),
    ("Zephyr has opened a plant.", "Denton has opened a plant.", "A plant has opened at Zephyr."),
    ("Tell me about the pump.", "Never tell me about the pump.", "Speak to me about the pump."),
    ("Engineers repaired the pump.", "Engineers broke the pump.", "Technicians repaired the pump."),
    ("The council built a bridge.", "The council demolished a bridge.", "The council constructed a bridge."),
    (
        "The authority extended the deadline.",
        "The authority shortened the deadline.",
        "The deadline was extended.",
    ),
]


@pytest.mark.parametrize(("known", "turned", "restated"), PAIRS)
async def test_an_exchange_is_found_and_other_words_for_the_same_are_not(
    known: str, turned: str, restated: str
) -> None:
    known = f"The weather was mild. {known} Ruth Adler lives near the sea."
    assert [finding.kind for finding in await findings("contradictions", turned, known)] == ["contradiction"]
    assert await findings("contradictions", restated, known) == []


async def kinds(answer: str) -> list[str]:
    return [finding.kind for finding in await findings("contradictions", answer, KNOWN)]


@pytest.mark.parametrize("answer", TURNED)
async def test_what_turns_a_sentence_is_a_contradiction(answer: str) -> None:
    assert await kinds(answer) == ["contradiction"]


PARCEL = "The parcel that I ordered in March has still not arrived, and the page shows nothing new."


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (PARCEL, []),
        ("the parcel that I ordered in March  has still not arrived, and the page shows nothing new", []),
        ("The parcel that I ordered in March has still not arrived.", []),
        ("The parcel that I'd ordered in March has not arrived, and the page shows nothing new.", []),
        (PARCEL.replace("March", "April"), ["contradiction"]),
        (PARCEL.replace("still not ", ""), ["contradiction"]),
    ],
)
async def test_a_sentence_of_the_sources_is_no_contradiction_of_itself(
    answer: str, expected: list[str]
) -> None:
    other = "The parcel that Ruth ordered in April has arrived."
    found = await findings("contradictions", answer, f"{PARCEL} Thank you for your help.")

    assert [finding.kind for finding in found] == expected
    assert not await findings("contradictions", PARCEL, f"{other} {PARCEL}")


@pytest.mark.parametrize("answer", RESTATED)
async def test_what_restates_a_sentence_is_none(answer: str) -> None:
    assert await kinds(answer) == []


async def test_a_finding_names_the_sentence_on_both_sides() -> None:
    answer = "A remark. The north wall may collapse."
    [finding] = await findings("contradictions", answer, "Nothing here.", KNOWN)
    assert answer[finding.start : finding.end] == "The north wall may collapse."
    assert finding.place is not None and finding.place.source == 1
    assert KNOWN[finding.place.start : finding.place.end].startswith("The south wall")
    assert finding.severity == "high" and finding.fix is None


async def test_an_article_before_a_name_does_not_hide_that_it_is_another() -> None:
    known = "Curators at the Halden Museum restored nine panels."
    assert await findings("contradictions", "Curators at Orrin Hall restored nine panels.", known) != []


async def test_a_sentence_that_another_one_supports_is_no_contradiction() -> None:
    answer = "The shop is open on Monday."
    assert await findings("contradictions", answer, "The shop is closed on Monday.") != []
    both = "The shop is closed on Monday. Since June the shop is open on Monday."
    assert await findings("contradictions", answer, both) == []


@pytest.mark.parametrize("written", ["3, 800", "3,800", "3 , 800", "3\u00a0800"])
def test_a_number_with_a_blank_is_one_number(written: str) -> None:
    [quantity] = quantities_in(f"about {written} people")
    assert quantity.values == (3800.0,)
    assert KnownQuantities([]).has(quantity) is False


def test_a_list_of_numbers_stays_a_list() -> None:
    assert [quantity.values for quantity in quantities_in("rooms 3, 80 and 12, 1400")] == [
        (3.0,),
        (80.0,),
        (12.0,),
        (1400.0,),
    ]


def test_the_test_part_is_found_as_it_was_measured() -> None:
    """The whole of it is in docs/judgement.md; a fall of the sample says that a rule was broken."""
    some = random.Random(4).sample(list(statements(2)), 120)
    corrupted, restated = share_found(some)
    assert corrupted >= 0.85
    assert restated <= 0.1


@pytest.mark.parametrize("unit", ["not high ", "Ann Bell and ", "12 cats, ", "low. "])
def test_hostile_texts_take_time_in_proportion_to_their_length(unit: str) -> None:
    import asyncio

    def checked(size: int) -> None:
        text = unit * (size // len(unit))
        asyncio.run(findings("contradictions", text, text))

    assert_in_proportion(checked, 5_000, 20_000)
