"""Words beside a name say, in other languages than English, that it is a place's, a work's or an institution's."""

import re

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.neighbours import is_beside_noun
from app.engines.pii.names.tagger import TaggedSpan
from app.engines.pii.search.analyzer import Analyzer

LISTED = {"viggo": "f", "quellas": "l"}


def beside(text: str, code: str) -> bool:
    """Return whether the name in angle brackets stands beside such a word."""
    start, end = text.index("<"), text.index(">") - 1
    plain = text.replace("<", "").replace(">", "")
    return is_beside_noun(plain, start, end, code, lambda word: LISTED.get(word, ""))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Onlar <Quell> dağının altında kaldı", "tr"),
        ("Bu yıl <Quell Zorn> Üniversitesi açıldı", "tr"),
        ("Grup <Quell Zorn> adlı filmde yer aldı", "tr"),
        ("Yine <Zelbrin> filmi oynuyor", "tr"),
        ("Sonra <Zelbrin'den> geldiler", "tr"),
        ("Eski <Batı Almanya> başbakanı", "tr"),
        ("Sonra <Quell Zorn> Muharebesi oldu", "tr"),
        ("Orada <Norveçli> biri vardı", "tr"),
        ("Oradan <TBMM'ye> gitti", "tr"),
        ("Bu yıl <Viggo> the Brave oynadı", "tr"),
        ("Bu yıl The <Viggo> oynadı", "tr"),
        ("Bu yıl <Quell> and Zorn oynadı", "tr"),
        ("Dia tinggal di <Zelbrin> sejak lama", "id"),
        ("Kereta berhenti di stasiun <Viggo Quell> pagi ini", "id"),
        ("Suku <Quell> tinggal di sana", "id"),
        ("Murid SMA 3 dan kota <Quell> menang", "id"),
        ('Elevii de la Liceul "<Viggo Quell>" au plecat', "ro"),
        ("Trenul vine din <Zelbrin> la ora opt", "ro"),
        ("A obra fica na <Zelbrin> velha", "pt"),
        ("O jogo foi no Estádio <Viggo Quell> ontem", "pt"),
        ("Vendas da <Zelbrin> caem", "pt"),
        ("Vi bor på <Zelbrin> nå", "no"),
        ("Saken gjelder <Viggo> kommune", "no"),
        ("De bor i <Zelbrin> nu", "da"),
        ("Også <ZEBA> er med", "da"),
        ("Ifølge <Z.B.> er det sådan", "da"),
    ],
)
def test_such_words_make_a_name_nobodys(text: str, code: str) -> None:
    assert beside(text, code)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Onlar <Quell> ile geldi", "tr"),
        ("Bu yıl <Viggo> and Zorn oynadı", "tr"),
        ("Han er <Quell> and det", "da"),
        ("Dia tinggal di <Viggo> sejak lama", "id"),
        ("Yine <Quellas> filmi çekti", "tr"),
        ("Sonra <Viggo'dan> mektup geldi", "tr"),
        ("Grup <Quell> adlı öğrenciyi aradı", "tr"),
        ("Kata <Viggo Quell> pagi ini", "id"),
        ("Trenul lui <Zelbrin> la ora opt", "ro"),
        ("Vine din <Viggo> ceva", "ro"),
        ("O amigo da <Zelbrin Quell> chega", "pt"),
        ("Os ataques a <Zelbrin> seguem", "pt"),
        ("Vi venter på <Viggo> nå", "no"),
        ("Også <Zelbrin> er med", "da"),
        ("OGSÅ <ZEBA> ER MED", "da"),
        ("Også <QUELLAS> er med", "da"),
        ("Onlar <Quell> dağının altında", "fi"),
    ],
)
def test_other_words_leave_it_a_name(text: str, code: str) -> None:
    assert not beside(text, code)


def test_standard_leaves_such_a_name_and_strict_hides_it(analyzer: Analyzer) -> None:
    text = "Elevii de la Liceul Andrei Popescu au plecat ieri în excursie, dar Andrei Popescu a rămas acasă."

    def starts(*, strict: bool) -> set[int]:
        spans = analyzer.analyze(text, DetectionOptions(strict=strict, entities=frozenset({"PERSON"})))
        return {span.start for span in spans}

    assert text.rindex("Andrei") in starts(strict=False)
    assert text.rindex("Andrei") in starts(strict=True)


def test_letters_of_the_language_itself_disguise_nobody() -> None:
    def plain_letters(text: str, threshold: float) -> list[TaggedSpan]:
        return [
            TaggedSpan(match.start(), match.end(), "PERSON", 0.99)
            for match in re.finditer("Kasim|Smith", text)
        ]

    def people(text: str, **options: object) -> list[str]:
        spans = Analyzer(plain_letters).analyze(text, DetectionOptions(**options))  # type: ignore[arg-type]
        return [text[span.start : span.end] for span in spans if span.label == "PERSON"]

    turkish = "Bu yıl yağmurlar Kasım ayında başladı ve köprü için yapılan çalışmalar durdu."
    assert people(turkish) == []
    assert people(turkish, strict=True) == ["Kasım"]
    assert people("Please call Mr Smıth about the invoice that came today.") == ["Smıth"]
