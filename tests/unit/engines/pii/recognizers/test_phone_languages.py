"""National numbers count without a word for phone where the language of the text says in which country they are."""

import phonenumbers
import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.recognizers.phone import phone_numbers
from app.engines.pii.recognizers.phone_languages import REGIONS_OF, is_local
from app.engines.pii.search.analyzer import Analyzer
from tests.pii_local import ENGLISH, TEXTS, drawn


def phones(analyzer: Analyzer, text: str) -> list[str]:
    spans = analyzer.analyze(text, DetectionOptions(names="fast"))
    return [text[span.start : span.end] for span in spans if span.label == "PHONE"]


@pytest.mark.parametrize("region", TEXTS)
def test_numbers_of_fifteen_countries_are_found_in_their_languages(analyzer: Analyzer, region: str) -> None:
    assert [phones(analyzer, TEXTS[region].format(n + ".")) for n in drawn(region, 12)] == [
        [n] for n in drawn(region, 12)
    ]


@pytest.mark.parametrize("region", ["CZ", "DK", "NO", "PL", "PT", "RU"])
def test_the_same_digits_are_nothing_in_english(analyzer: Analyzer, region: str) -> None:
    assert [phones(analyzer, ENGLISH.format(n + ".")) for n in drawn(region, 12)] == [[]] * 12


def test_digits_in_other_groups_or_without_a_plan_are_nothing() -> None:
    text = TEXTS["DK"]
    for number in ("403 5319 7", "40 353 197 8", "10 35 31 97", "4035319"):
        filled = text.format(number)
        start = filled.index(number)
        assert not is_local(filled, start, start + len(number))
    filled = text.format("40 35 31 97")
    assert is_local(filled, filled.index("40"), filled.index("40") + 11)


def test_unbroken_digits_count_only_where_mobile_numbers_begin() -> None:
    found = {
        number: any(score >= 0.4 for _, _, score in phone_numbers(TEXTS["VN"].format(number)))
        for number in ("0912345678", "9123456780", "0212345678", "00912345678")
    }
    assert found == {"0912345678": True, "9123456780": False, "0212345678": False, "00912345678": False}


def test_each_block_of_a_long_text_has_a_language_of_its_own() -> None:
    english, danish = ENGLISH.format("40 35 31 97"), TEXTS["DK"].format("40 35 31 97")
    text = english * 20 + "\n" + danish * 20
    scores = [score for _, _, score in phone_numbers(text)]
    assert len(scores) == 40
    assert {*scores[:8], *scores[-8:]} == {0.1, 0.4}
    assert set(scores[:8]) == {0.1}


def test_every_region_of_a_language_has_a_number_plan() -> None:
    regions = {region for regions in REGIONS_OF.values() for region in regions}
    assert regions <= phonenumbers.SUPPORTED_REGIONS
