"""Things called like people are told by the words around them, and people in like sentences stay people."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.things import thing_at, things_among
from app.engines.pii.search.analyzer import Analyzer
from tests.proportion import assert_in_proportion


def kind(marked: str) -> str:
    """Return what stands between the bars of a text."""
    before, name, after = marked.split("|")
    return thing_at(before + name + after, len(before), len(before) + len(name))


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("The |Kellner| sign was negative.", "law"),
        ("A |Varga|-Lund equation", "law"),
        ("|Kellner|'s theorem holds.", "law"),
        ("|Kellner manoeuvre| was painful", "law"),
        ("treated for |Kellner|'s disease", "law"),
        ("a history of |Kellner|'s and gout", "law"),
        ("|Kellner|'s sign was positive", "law"),
        ("Please install |Ottilie| today.", "software"),
        ("|Ottilie| 0.120 builds the page.", "software"),
        ("|Ottilie| 2.4.1", "software"),
        ("The |Ottilie| plugin is slow.", "software"),
        ("|Ottilie| logs fill the disk.", "software"),
        ("with |Kellner| numbers", "law"),
        ("Upgrade |Ottilie| to 4.2 now.", "software"),
        ("Deploy |Ottilie| to staging", "software"),
        ("It is written in |Ottilie|.", "software"),
        ("Does |Ottilie| support Windows?", "software"),
        ("|Ottilie| is a static site generator.", "software"),
        ("|Ottilie| crashed with exit code 137.", "software"),
        ("|Ottilie| needs at least 8 GB of memory.", "software"),
        ("The web framework |Ottilie| ships an ORM.", "software"),
        ("Run |Ottilie| in a container.", "software"),
        ("The new |Ottilie| sofa is grey.", "goods"),
        ("She drives a |Ottilie|.", "goods"),
        ("He works at |Anton Berg|.", "shop"),
        ("I ordered shoes from |Berg|'s.", "shop"),
        ("The |Anton Berg| store is closed.", "shop"),
        ("|Berg| & Lund's opens at nine.", "shop"),
        ("Abel & |Berg|'s opens at nine.", "shop"),
        ("My |Berg|'s card was declined.", "shop"),
        ("There is a new |Anton Berg| downtown.", "shop"),
        ("the corner of |Brandt| Street", "street"),
        ("|Anna Brandt Boulevard| is long", "street"),
        ("an accident on |Brandt Lane|", "street"),
        ("|Brandt| Alley is closed.", "street"),
    ],
)
def test_words_around_a_name_make_a_thing_of_it(text: str, thing: str) -> None:
    assert kind(text) == thing


@pytest.mark.parametrize(
    "text",
    [
        "The |Kellner| memo was late.",
        "Did |Kellner| sign the lease?",
        "|Kellner| tests the water.",
        "|Ottilie| logs in every day.",
        "We saw |Kellner| score.",
        "Dr |Kellner| sign here",
        "|Kellner| studied law.",
        "I expect |Kellner| to score.",
        "|Kellner|'s method is his own.",
        "|Kellner|'s disease was hidden from the press.",
        "dinner with |Kellner|'s and my parents",
        "Ask |Ottilie| to install it.",
        "|Ottilie| 7.2, Berg 6.9",
        "Upgrade |Ottilie| to business class.",
        "Does |Ottilie| support the plan?",
        "Run |Ottilie| through the form.",
        "the framework |Ottilie| wrote",
        "|Ottilie| is an editor of the journal.",
        "|Ottilie|'s server is down.",
        "|Ottilie Berg| 2.4.1",
        "He is angry at |Anton Berg|.",
        "I ordered it from |Anton Berg|.",
        "We had lunch at |Berg|'s.",
        "He works for |Anton Berg|.",
        "with |Diane Lane|",
        "Ms |Brandt| Street",
        "|brandt| plugin",
    ],
)
def test_people_stay_people(text: str) -> None:
    assert kind(text) == ""


def test_software_is_software_wherever_its_name_stands_alone() -> None:
    text = "Install Ottilie first. Ottilie is slow, says Ottilie Berg."
    alone = [(8, 15), (23, 30)]
    assert things_among(text, alone) == set(alone)
    assert things_among(text, [*alone, (45, 57)]) == {(8, 15)}
    law = "The Kellner test failed. Kellner resigned."
    assert things_among(law, [(4, 11), (25, 32)]) == {(4, 11)}


def test_standard_leaves_things_and_strict_hides_them(analyzer: Analyzer) -> None:
    text = "Please restart Fiona 3.2.1 before noon."
    strict = analyzer.analyze(text, DetectionOptions(strict=True))
    assert analyzer.analyze(text, DetectionOptions()) == []
    assert {text[span.start : span.end] for span in strict} == {"Fiona"}
    asked = "Please ask Fiona before noon."
    assert [asked[span.start : span.end] for span in analyzer.analyze(asked, DetectionOptions())] == ["Fiona"]


def test_a_person_named_in_full_is_hidden_beside_a_thing_too(analyzer: Analyzer) -> None:
    text = "Fiona Lindholm left. The Lindholm test was never run again."
    spans = analyzer.analyze(text, DetectionOptions())
    assert [text[span.start : span.end] for span in spans] == ["Fiona Lindholm", "Lindholm"]


def test_many_people_take_time_in_proportion() -> None:
    piece = "Install Ottilie. "

    def search(count: int) -> None:
        places = [(start + 8, start + 15) for start in range(0, count * len(piece), len(piece))]
        assert things_among(piece * count, places) == set(places)

    assert_in_proportion(search, 300, 2_400)
