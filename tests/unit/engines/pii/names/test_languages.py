"""The language of a text is told where it is plain; code, data, names and short texts say nothing."""

import pytest

from app.engines.pii.names.languages import (
    SUPPORTED,
    detected,
    evidence,
    language_of,
    leaning_of,
    nearest_of,
    warnings,
    warnings_for,
)

PROSE = {
    "en": "My name is John and I would like to know whether the order was sent to the office.",
    "de": "Bitte rufen Sie mich unter dieser Nummer zurück, wir haben die Rechnung noch nicht und warten auf sie.",
    "fr": "Je vous écris pour savoir si la commande est arrivée, nous ne l'avons pas reçue.",
    "es": "Hola, me llamo Juan y vivo en Madrid con mi familia, pero no tengo el número de la cuenta.",
    "it": "Buongiorno, sono Marco e ho un problema con il pagamento della fattura che non è arrivata.",
    "pt": "Olá, eu não recebi o pedido que fiz e gostaria de saber como está o envio para a minha casa.",
    "nl": "Goedemiddag, ik heb de factuur nog niet ontvangen en wil graag weten wat er aan de hand is.",
    "pl": "Dzień dobry, nie otrzymałem jeszcze faktury i proszę o informację, jak to jest możliwe, że się opóźnia.",
    "ru": "Добрый день, меня зовут Иван Петров.",
    "uk": "Добрий день, мене звати Іван і я живу в Києві.",
    "el": "Καλημέρα, με λένε Νίκο και μένω στην Αθήνα.",
    "ar": "مرحبا اسمي محمد وأعيش في القاهرة مع عائلتي",
    "he": "שלום, שמי דוד ואני גר בתל אביב עם משפחתי",
    "hi": "नमस्ते, मेरा नाम राज है और मैं दिल्ली में रहता हूँ",
    "th": "สวัสดีครับ ผมชื่อสมชาย อาศัยอยู่ที่กรุงเทพ",
    "zh": "昨天晚上我们和同事们谈论了新项目，一切都准备好了。",
    "ja": "東京都に住んでいる山田太郎さんの電話番号は何番ですか。",
    "ko": "안녕하세요 제 이름은 김철수이고 서울에 살고 있습니다 반갑습니다",
}
SILENT = [
    "SELECT * FROM users WHERE id=1 AND name LIKE 'de la'",
    "def foo(self, x): return self.x + 1  # und die Summe",
    '{"id": 12, "created_at": "2026-01-01", "ok": true, "de": 1, "en": 2, "fr": 3}',
    "John Doe, Berlin, Acme Inc, Paris, La Paz, El Paso, Los Angeles, Las Vegas",
    "ERROR 2026-01-01 connection refused host=db01 port=5432 retry=3",
    "for i in range(n): a.append(o, e, x, y, z, s, v, w, k, u)",
    "Hallo, ja",
]


@pytest.mark.parametrize("code", PROSE)
def test_prose_shows_its_language(code: str) -> None:
    assert language_of(PROSE[code]) == code


SHORT = {
    "cs": "Zítra nemůžu přijít, protože jsou děti nemocné. Můžeme to přesunout na pondělí?",
    "tr": "Çocuklar hasta olduğu için yarın gelemiyorum. Toplantıyı pazartesi gününe alabilir miyiz?",
    "vi": "Ngày mai em không đến được vì con bị ốm. Mình dời cuộc họp sang thứ hai được không?",
    "id": "Besok saya tidak bisa datang karena anak saya sakit. Bolehkah rapatnya dipindah ke hari Senin?",
    "fi": "En pääse huomenna, koska lapset ovat kipeinä. Voimmeko siirtää kokouksen maanantaille?",
    "hu": "Holnap nem tudok jönni, mert betegek a gyerekek. Áttehetnénk a megbeszélést hétfőre?",
    "da": "Jeg kan ikke komme i morgen, fordi børnene er syge. Kan vi flytte mødet til mandag?",
    "no": "Jeg kan ikke komme i morgen, fordi barna er syke. Kan dere flytte møtet til mandag?",
    "sv": "Jag kan inte komma i morgon eftersom barnen är sjuka. Kan vi flytta mötet till måndag?",
    "ro": "Mâine nu pot să vin, pentru că sunt bolnavi copiii. Putem muta ședința pe luni?",
    "pl": "Jutro nie mogę przyjść, bo dzieci są chore. Czy możemy przesunąć spotkanie na poniedziałek?",
    "nl": "Morgen kan ik niet komen, want de kinderen zijn ziek. Kunnen we het overleg naar maandag verzetten?",
}


@pytest.mark.parametrize("code", SHORT)
def test_a_short_mail_shows_its_language(code: str) -> None:
    assert language_of(SHORT[code]) == code


@pytest.mark.parametrize("text", SILENT)
def test_what_is_no_prose_or_too_short_shows_none(text: str) -> None:
    assert language_of(text) is None
    assert warnings_for([text], "auto") == []


@pytest.mark.parametrize("code", SUPPORTED)
def test_a_language_that_the_tagger_knows_gives_no_warning(code: str) -> None:
    text = {**SHORT, **PROSE}[code]
    assert warnings_for([text], "auto") == []
    assert warnings_for([text], code) == []


def test_languages_that_the_tagger_does_not_know_well_enough_are_told() -> None:
    (told,) = warnings_for([PROSE["en"], PROSE["th"], PROSE["pl"]], "auto")
    assert "'pl', 'th'" in told


def test_a_given_language_is_believed() -> None:
    assert evidence(PROSE["th"], "en") == {}
    assert warnings_for([PROSE["th"]], "en") == []
    (told,) = warnings_for([PROSE["en"]], "th")
    assert "'th'" in told


def test_most_of_a_context_says_its_language() -> None:
    found = [evidence(PROSE[code], "auto") for code in ("en", "th", "en")]
    assert detected(found, "auto") == "en"
    assert detected([], "auto") == "und"
    assert detected(found, "PT") == "pt"
    assert warnings([{"und": 40}], "auto")[0].startswith("Part of the text is in an unknown script")


def test_english_with_a_word_of_another_script_is_english() -> None:
    assert language_of(PROSE["en"] + " Привет, 東京!") == "en"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Hennstedt Almanya'nın kuzeyinde yer alan bölge", "tr"),
        ("Procuramos acordos, tratamos de conciliar posições", "pt"),
        ("Båten går ikkje no, seier dei, og toget står", "no"),
        ("han sade att det inte blev som hon hade sagt", "sv"),
        ("Gärtner müssen heute länger arbeiten", None),
        ("Kasım Şahin", None),
        ("Ali bugün ağır", None),
        ("Doğan Altın kommt heute später wieder", None),
        ("by the way do not go to them", None),
        ("net to co http soars", None),
    ],
)
def test_the_nearest_language_needs_little(text: str, code: str | None) -> None:
    assert nearest_of(text) == code


def test_a_possessive_is_no_czech_word() -> None:
    possessives = "patient's doctor’s teacher's owner's nurse's"
    assert nearest_of(possessives) is None
    assert leaning_of(possessives) is None
    assert leaning_of("pacient s doktor s učitel s majitel s") == "cs"
