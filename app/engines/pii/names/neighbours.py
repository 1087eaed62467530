# ruff: noqa: RUF001, RUF002 - quotes and letters as their languages write them
"""Tell places, works and institutions from people by the words beside their names, outside English.

"Gunung Slamet", "orașul Bender", "Whitney dağı" and "em Aveleda" say by the word beside the name that nobody is meant.
Some of these words count for any name, others only for names that no list of first names holds.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

Kinds = Callable[[str], str]
"""Returns the letters of the lists that hold a word in small letters (`Gazetteer.kinds`)."""

_BEFORE: Final = 40
_AFTER: Final = 32
_NORDIC: Final = {
    "before": (
        "bygda byen øya øyen skuta skøyta firmaet selskapet avisen regjeringen tettstedet kommunen ministeriet "
        "selskabet regeringen øen staden företaget tidningen bolaget klubben kirken gården fjellet fjorden"
    ),
    "places": "i på I På",
    "after": (
        "kommune fylke kyrkje kirke skole skule tingrett sykehus sygehus IL IF FK SK BK AS ASA ApS "
        "kommun skola kyrka AB universitet universitetet avis sentrum stasjon station gate gade vei "
        "vej plass plads"
    ),
}
_WORDS: Final[dict[str, dict[str, str]]] = {
    "tr": {
        "after": (
            "dağ göl nehr nehir ırmağ şehr kent ilçe köy belde eyalet bölge ada yarımada iklim parti "
            "takım kulü firma şirket gazete dergi vakf vakıf üniversite enstitü akademi kilise "
            "katedral kolej lise havaliman cadde sokağ sokak bulvar meydan stad müze saray kale cami "
            "ödül kupa lig antlaşma hanedan kazası sancağ vilayet belediye valiliğ bakanlığ nazırlığ "
            "krallığ şansölye"
        ),
        "works": "film dizi albüm şarkı roman oyun program",
    },
    "id": {
        "before": (
            "stasiun distrik suku gunung kabupaten kepulauan pulau provinsi kota desa kecamatan "
            "kelurahan acara film album single grup band klub tim PT CV jalan Jl. sungai danau "
            "universitas institut fakultas sekolah beragama agama bahasa bulan gelar candi bandara "
            "pelabuhan stadion masjid gereja merek partai liga piala doktrin judul berjudul maskapai "
            "majalah harian koran negeri kerajaan kesultanan opsir"
        ),
    },
    "ro": {
        "before": (
            "liceul liceului colegiul colegiului universitatea universității institutul institutului "
            "strada străzii străzilor străzile str. bd. bulevardul bulevardului calea piața guvernul "
            "guvernului brandul brandurile brandurilor orașul orașului comuna satul satului râul "
            "râului scara sf. sfântul sfânta biroul biroului maternitatea spitalul spitalului hramul "
            "teatrul teatrului asociația asociației fundația fundației societatea compania firma "
            "echipa clubul clubului fc stadionul parcul insula lacul muntele județul județului "
            "regiunea cartierul mănăstirea biserica catedrala catedralei grădina ziarul revista "
            "agenția serialul filmul melodia piesa albumul moda localitatea municipiul vest"
        ),
        "places": "din în spre lângă înspre dinspre Din În",
    },
    "pt": {
        "before": (
            "rua avenida av. praça estádio hospital estação marítima escola colégio universidade "
            "hotel bar cinema teatro corretora empresa companhia marca grupo banco editora revista "
            "jornal concurso prémio prêmio troféu igreja aeroporto ponte largo travessa rodovia clube "
            "povoação rio serra casal ministérios ministério"
        ),
        "places": "em na no nas nos numa num à pela da A À Em Na No Nas Nos",
    },
    "da": _NORDIC,
    "no": _NORDIC,
    "sv": _NORDIC,
}
_TITLE: Final = {
    "tr": r" (?:adlı|isimli|adında|isminde) (?:bir )?(?:film|dizi|albüm|şarkı|roman|kitap|oyun|kent|köy|grup|tekli)",
}
_ARTICLES: Final = frozenset({"a", "da", "à", "pela"})
"""Words before a single name that may be an institution's; before several they may be a person's."""

_LANDS: Final = {
    "tr": (
        "almanya fransa italya ispanya hollanda belçika yunanistan danimarka isveç norveç polonya "
        "rusya ukrayna gürcistan azerbaycan ermenistan iran irak suriye mısır tunus fas cezayir "
        "japonya çin kore hindistan pakistan brezilya arjantin şili meksika kanada amerika ingiltere "
        "iskoçya irlanda avustralya zelanda kıbrıs avrupa asya afrika londra paris roma anadolu "
        "akdeniz karadeniz balkanlar kafkasya osmanlı türkiye porto riko kuzey güney doğu batı yeni "
        "iç orta"
    ),
    "id": (
        "indonesia malaysia singapura filipina thailand vietnam jepang tiongkok cina korea india "
        "australia belanda jerman prancis inggris spanyol italia portugal rusia amerika serikat "
        "kanada brasil argentina mesir arab saudi turki swedia eropa asia afrika jawa sumatra "
        "sulawesi kalimantan bali papua utara selatan timur barat tengah kristen protestan katolik"
    ),
    "ro": (
        "românia moldova ungaria bulgaria serbia ucraina germania franța italia spania turcia grecia "
        "rusia polonia austria elveția croația slovenia canada china japonia israel egipt egiptul "
        "irak suedia olanda londra paris atena viena europa asia africa america marea marii britanie "
        "britanii antic nord sud"
    ),
    "pt": (
        "portugal brasil espanha frança itália alemanha inglaterra bélgica holanda suíça angola "
        "moçambique rússia estados unidos argentina chile uruguai méxico japão china índia marrocos "
        "tunísia grécia turquia polónia polônia suécia londres paris roma nova iorque europa ásia "
        "áfrica américa minho domingo estado forças armadas norte sul na no"
    ),
    "no": "norge sverige danmark finland island tyskland frankrike spania italia polen russland jan mayen soria moria",
    "da": "danmark sverige norge tyskland frankrig spanien italien england polen rusland indien grønland",
    "sv": "sverige norge danmark finland tyskland frankrike spanien italien england polen ryssland",
}
_CAPITALS: Final = re.compile(r"[^\W\d_a-z]{3,6}|(?:[^\W\d_a-z]\.){2,}[^\W\d_a-z]?")
_WORD: Final = re.compile(r"(?<![^\W\d_]['’])\b[^\W\d_]+")
_WHERE: Final = re.compile(r"['’][dt][ae]n?\Z")
_TURKISH: Final = str.maketrans("Iİ", "ıi")


@cache
def _beside(code: str, key: str) -> re.Pattern[str] | None:
    """Return what finds the words of a list right before a name or, of "after" and "works", right behind it."""
    words = "|".join(map(re.escape, _WORDS.get(code, {}).get(key, "").split()))
    if not words:
        return None
    if key in ("after", "works"):
        end = "" if code == "tr" else r"\b"
        return re.compile(rf"['’\w]{{0,4}} (?i:{words}){end}")
    words = words if key == "places" else f"(?i:{words})"
    return re.compile(rf"(?:\A|(?<=[\s(\"„“«'’]))(?:{words})(?: \d+)? ?[\"„“”«'’]? ?\Z")


@cache
def _lands(code: str) -> frozenset[str]:
    return frozenset(_LANDS.get(code, "").split())


def is_beside_noun(text: str, start: int, end: int, code: str, kinds: Kinds) -> bool:
    """Return whether the words at or beside the supposed person ``text[start:end]`` say that nobody is meant."""
    name = text[start:end]
    spelled = [word.lower() for word in _WORD.findall(name.translate(_TURKISH) if code == "tr" else name)]
    if not spelled or set(spelled) <= _lands(code):
        return bool(spelled)
    listed = "f" in kinds(spelled[0])
    in_lists = listed or any("l" in kinds(word) for word in spelled)
    if _CAPITALS.fullmatch(name) and not in_lists and not text.isupper():
        return True
    if code == "tr" and _WHERE.search(name) and not listed:
        return True
    before, after = text[max(0, start - _BEFORE) : start], text[end : end + _AFTER]
    if any(
        pattern is not None and pattern.match(after)
        for pattern in (_beside(code, "after"), None if in_lists else _beside(code, "works"), _titled(code))
    ):
        return True
    if (nouns := _beside(code, "before")) is not None and nouns.search(before):
        return True
    places = _beside(code, "places")
    preposition = None if places is None or listed else places.search(before)
    return preposition is not None and (len(spelled) == 1 or preposition[0].strip().lower() not in _ARTICLES)


@cache
def _titled(code: str) -> re.Pattern[str] | None:
    return re.compile(_TITLE[code]) if code in _TITLE else None
