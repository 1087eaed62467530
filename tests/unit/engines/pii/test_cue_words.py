"""Words of many languages that say what a value is count as the English ones do, and change nothing else."""

import pytest

from app.core.content.cues.reading import cue_words, in_english
from app.core.content.cues.words import WORDS
from app.core.content.telling_names import telling
from app.core.contracts.engines import DetectionOptions
from app.engines.pii.search.analyzer import Analyzer
from app.engines.views.cued import cued_view
from tests.pii_cue_words import MEMBERS, NAMED, UNRELATED, UNRELATED_MEMBERS
from tests.unit.engines.pii.conftest import Find


@pytest.mark.parametrize(("text", "value", "label"), NAMED, ids=[text for text, *_ in NAMED])
def test_a_word_before_a_value_says_what_it_is(find: Find, text: str, value: str, label: str) -> None:
    assert (value, label) in find(text)


@pytest.mark.parametrize(("text", "value", "label"), NAMED[::4])
def test_a_word_counts_in_strict_mode_and_where_only_its_type_is_asked_for(
    analyzer: Analyzer, text: str, value: str, label: str
) -> None:
    for options in (DetectionOptions(strict=True), DetectionOptions(entities=(label,))):
        spans = analyzer.analyze(text, options)
        hidden = "".join(text[span.start : span.end] for span in spans)
        assert value in hidden, options


@pytest.mark.parametrize("text", UNRELATED)
def test_the_same_digits_behind_another_word_stay(find: Find, text: str) -> None:
    assert [what for what, label in find(text) if any(map(str.isdigit, what))] == []


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("手机号：13877304419", "phone number: 13877304419"),
        ("手机号「13877304419」", "phone number 13877304419」"),
        ("手机号13877304419", "phone number 13877304419"),
        ("nomor_telepon=081277304419", "phone number=081277304419"),
        ("x手机号 13877304419", "x phone number 13877304419"),
        ("alamat: Jalan Mawar", "home address: Jalan Mawar"),
        ("alamat = Jalan Mawar", "home address = Jalan Mawar"),
        ("alamat 9", "home address 9"),
    ],
)
def test_a_word_is_read_in_english_with_the_signs_behind_it(text: str, read: str) -> None:
    view = cued_view(text)
    assert view is not None
    assert view.text == read


@pytest.mark.parametrize("word", ["so may", "police no", "parola", "alder", "hasta no"])
def test_a_word_of_plain_english_is_looked_for_with_its_accents_only(word: str) -> None:
    assert cued_view(f"{word} 601774209") is None


@pytest.mark.parametrize("word", ["so may", "police no", "parola", "alder", "hasta no"])
def test_a_word_of_plain_english_stays_beside_a_word_of_another_language(word: str) -> None:
    view = cued_view(f"nomor telepon 081277304419, {word} 601774209")
    assert view is not None
    assert view.text == f"phone number 081277304419, {word} 601774209"


@pytest.mark.parametrize(
    "text", ["phone: 13812345678", "今日は良い天気です 12", "naïve café 13812345678", ""]
)
def test_texts_without_such_a_word_have_no_view(text: str) -> None:
    assert cued_view(text) is None


def test_the_word_itself_is_never_hidden_and_every_place_is_exact(find: Find) -> None:
    text = "тел.: 89161234567; 電話 09012345678、هاتف ٠٥١٢٣٤٥٦٧٨, SĐT 0912345678."
    found = [what for what, label in find(text) if label == "PHONE"]
    assert found == ["89161234567", "09012345678", "٠٥١٢٣٤٥٦٧٨", "0912345678"]


def test_the_heads_of_a_table_say_what_its_cells_are(find: Find) -> None:
    text = "城市,电话,生日\n北京,13812345678,1988-02-17\n上海,13912345670,1990-12-01\n"
    found = find(text)
    assert ("13812345678", "PHONE") in found
    assert ("1990-12-01", "DATE") in found


@pytest.mark.parametrize("name", MEMBERS)
def test_the_name_of_a_member_is_told_in_english(name: str) -> None:
    assert any(telling(name).endswith(english) for english in set(cue_words().values()))


@pytest.mark.parametrize("name", UNRELATED_MEMBERS)
def test_an_unrelated_name_has_no_english_words(name: str) -> None:
    assert in_english(name) == name


@pytest.mark.parametrize("word", ["телефонограмма", "тест", "ten", "so", "dt", "ho", "мтел", "نهاتف"])
def test_a_part_of_another_word_and_a_word_without_its_accents_say_nothing(word: str) -> None:
    assert in_english(word) == word


def test_every_word_leads_to_english_words_that_a_detector_knows(find: Find) -> None:
    values = {
        "phone number": "5128842290",
        "fax": "5128842290",
        "date of birth": "1988-02-17",
        "date of death": "2018-02-17",
        "passport number": "E12345678",
        "national id": "1098765432",
        "tax id": "771234567890",
        "driving licence number": "D4471203",
        "social insurance number": "11223344595",
        "health insurance number": "3201112233",
        "patient number": "448812",
        "bank account number": "6222021234567",
        "routing number": "044525225",
        "card number": "4111111111111111",
        "cvv": "321",
        "card expiry": "08/27",
        "pin": "4821",
        "verification code": "482913",
        "password": "hunter2x!",
        "postal code": "100020",
        "home address": "Lenina 41",
        "full name": "Olga Lind",
        "name": "Olga Lind",
        "surname": "Lind",
        "user name": "liwei88",
        "license plate": "8KLM204",
        "vin": "1M8GDM9AXKP042788",
        "imei": "490154203237518",
        "serial number": "FVFXC8K1Q6LR",
        "employee number": "20417",
        "customer number": "883120",
        "student number": "3301842",
        "contract number": "HX-4471-90",
        "age": "97",
    }
    assert set(cue_words().values()) == values.keys()
    for english, lines in WORDS.items():
        for word in (word for line in lines for word in line.split(", ")):
            assert in_english(word.lower()) == english, word
    for english, value in values.items():
        assert any(what == value for what, _ in find(f"{english}: {value}")), english
