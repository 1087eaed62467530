"""National numbers count without a word for phone where the language of the text says in which country they are."""

import random

import phonenumbers
import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.recognizers.phone import phone_numbers
from app.engines.pii.recognizers.phone_languages import REGIONS_OF, is_local
from app.engines.pii.search.analyzer import Analyzer

TEXTS = {
    "CZ": "Dobrý den, prosím ozvěte se mi zítra odpoledne, budu doma. {} Děkuji a přeji hezký den.",
    "PL": "Dzień dobry, proszę odezwać się jutro po południu, będę w domu. {} Dziękuję i pozdrawiam.",
    "PT": "Bom dia, amanhã à tarde estarei em casa, pode falar comigo. {} Obrigado e um bom dia.",
    "NO": "Hei, ta gjerne kontakt i morgen ettermiddag, da er jeg hjemme. {} Takk og ha en fin dag.",
    "DK": "Hej, kontakt mig gerne i morgen eftermiddag, så er jeg hjemme. {} Tak og hav en god dag.",
    "ES": "Hola, mañana por la tarde estaré en casa, puede hablar conmigo. {} Gracias y buen día.",
    "SE": "Hej, hör gärna av dig i morgon eftermiddag, då är jag hemma. {} Tack och ha en fin dag.",
    "FI": "Hei, ota yhteyttä huomenna iltapäivällä, olen silloin kotona. {} Kiitos ja hyvää päivänjatkoa.",
    "RO": "Bună ziua, mâine după-amiază sunt acasă, mă puteți găsi. {} Mulțumesc și o zi bună.",
    "TR": "Merhaba, yarın öğleden sonra bana ulaşabilirsiniz, evde olacağım. {} Teşekkürler, iyi günler.",
    "ID": "Halo, besok sore saya ada di rumah, silakan menghubungi saya. {} Terima kasih atas bantuannya.",
    "VN": "Chào anh, chiều mai em ở nhà, anh có thể gặp em. {} Cảm ơn anh rất nhiều.",
    "RU": "Здравствуйте, завтра после обеда я буду дома, свяжитесь со мной. {} Спасибо и хорошего дня.",
    "GR": "Καλημέρα, αύριο το απόγευμα θα είμαι στο σπίτι, επικοινωνήστε μαζί μου. {} Ευχαριστώ πολύ.",
    "CN": "您好，我明天下午一直都在家里，有什么事情请直接联系我。 {} 谢谢您的帮助。",
}
ENGLISH = "Hello, I am at home tomorrow afternoon, so please get in touch. {} Thank you and have a nice day."


def drawn(region: str, count: int) -> list[str]:
    """Return numbers of mobiles as people of a country write them."""
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    assert example is not None
    rng, stem, numbers = random.Random(region), str(example.national_number)[:2], []
    while len(numbers) < count:
        digits = stem + "".join(rng.choice("0123456789") for _ in str(example.national_number)[2:])
        number = phonenumbers.PhoneNumber(country_code=example.country_code, national_number=int(digits))
        if phonenumbers.is_valid_number_for_region(number, region):
            numbers.append(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL))
    return numbers


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
