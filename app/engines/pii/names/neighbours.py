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
            "krallığ şansölye savaşı savaşların muharebe ordusu lejyon donanma kabile halk köken asıllı doğumlu körfez "
            "klan tugay federasyon konfederasyon yarımada havza vadi ova orman deprem kasırga zafer maçı "
            "faiz yöntem teorem denklem fonksiyon sınıfı uzayı dillerin dükl dükü kontluğ prensliğ "
            "devrim hükümet gezegen takımada limanı marka ilini ilind iline ili' ilçe kıyı festival "
            "turnuva şampiyona federal metropol bandıra"
        ),
        "before": "kuzeyde güneyde doğuda batıda kuzeyinde güneyinde doğusunda batısında okunuş:",
        "works": "film dizi albüm şarkı roman oyun program",
    },
    "id": {
        "before": (
            "stasiun distrik suku gunung kabupaten kepulauan pulau provinsi kota desa kecamatan "
            "kelurahan acara film album single grup band klub tim PT CV jalan Jl. sungai danau "
            "universitas institut fakultas sekolah beragama agama bahasa bulan gelar candi bandara "
            "pelabuhan stadion masjid gereja merek partai liga piala doktrin judul berjudul maskapai "
            "majalah harian koran negeri kerajaan kesultanan opsir mendirikan memperkuat marga kategori dukuh "
            "dusun tugu pura anime serial sinetron prefektur republik SMA SMK SMP IAIN RSUD yayasan "
            "dinas akademi kawedanan keresidenan komite peron depo istilah personel perkumpulan"
        ),
        "places": "di Di",
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
_ENGLISH: Final = re.compile(r" the [^\W\d_a-z]|['’]s [^\W\d_a-z]")
_JOINED: Final = re.compile(r" (?:and|&) [^\W\d_a-z]")
_ENGLISH_BEFORE: Final = re.compile(r"\b(?:[Tt]he|of) \Z")
_SHARES_ENGLISH: Final = frozenset({"da", "nl", "no", "sv"})
"""Languages that have one of the words or ends by which others show a title in English."""

_ARTICLES: Final = frozenset({"a", "da", "à", "pela"})
"""Words before a single name that may be an institution's; before several they may be a person's."""

_LANDS: Final = {
    "tr": (
        "almanya fransa italya ispanya hollanda belçika yunanistan danimarka isveç norveç polonya "
        "rusya ukrayna gürcistan azerbaycan ermenistan iran irak suriye mısır tunus fas cezayir "
        "japonya çin kore hindistan pakistan brezilya arjantin şili meksika kanada amerika ingiltere "
        "iskoçya irlanda avustralya zelanda kıbrıs avrupa asya afrika londra paris roma anadolu "
        "akdeniz karadeniz balkanlar kafkasya osmanlı türkiye porto riko kuzey güney doğu batı yeni "
        "iç orta danimarka portekiz litvanya letonya estonya finlandiya izlanda macaristan romanya "
        "bulgaristan sırbistan hırvatistan slovenya slovakya çekya çekoslovakya yugoslavya arnavutluk "
        "makedonya karadağ bosna hersek kosova moldova belarus avusturya isviçre lüksemburg malta galler "
        "britanya sibirya kırım çeçenistan dağıstan kırgızistan kazakistan özbekistan türkmenistan "
        "tacikistan afganistan moğolistan nepal bangladeş myanmar tayland vietnam kamboçya laos malezya "
        "endonezya filipinler singapur tayvan suudi arabistan yemen umman katar bahreyn kuveyt ürdün "
        "lübnan filistin israil libya sudan etiyopya somali kenya uganda tanzanya kongo nijer nijerya "
        "gana senegal mali kamerun angola zambiya zimbabve mozambik madagaskar küba jamaika haiti panama "
        "kolombiya venezuela ekvador peru bolivya paraguay uruguay abd sscb babil ninova mezopotamya "
        "galya trakya rumeli marmara kafkas balkan moskova varşova prag viyana budapeşte bükreş "
        "atina roma milano napoli venedik floransa torino sicilya sardinya korsika barselona "
        "lizbon brüksel kopenhag oslo dublin edinburgh berlin münih hamburg köln frankfurt bonn zürih "
        "cenevre kudüs mekke medine bağdat şam halep kahire iskenderiye tahran tebriz bakü tiflis erivan "
        "kabil hartum pekin şanghay tokyo seul delhi mumbai sidney hollywood kaliforniya teksas florida "
        "virjinya karolina pensilvanya hawaii alaska dünya merkür venüs "
        "jüpiter satürn uranüs neptün plüton"
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
_FROM_THERE: Final = re.compile(r"(?<=..)(?:l[ıiuü]|[cç][ae]|l[ıiuü]lar|l[ıiuü]ler)\Z")
"""The ends by which Turkish calls who lives in a land, and its language."""

_SUFFIX: Final = re.compile(r"['’][^\W\d_A-Z]{1,6}\Z")
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


def _is_land(word: str, code: str) -> bool:
    """Return whether a word is a land's or, in Turkish, its people's or language's."""
    return word in _lands(code) or (code == "tr" and _FROM_THERE.sub("", word) in _lands(code))


def is_beside_noun(text: str, start: int, end: int, code: str, kinds: Kinds) -> bool:
    """Return whether the words at or beside the supposed person ``text[start:end]`` say that nobody is meant."""
    name = text[start:end]
    spelled = [word.lower() for word in _WORD.findall(name.translate(_TURKISH) if code == "tr" else name)]
    if not spelled or all(_is_land(word, code) for word in spelled):
        return bool(spelled)
    listed = "f" in kinds(spelled[0])
    in_lists = listed or any("l" in kinds(word) for word in spelled)
    if _CAPITALS.fullmatch(_SUFFIX.sub("", name)) and not in_lists and not text.isupper():
        return True
    if code == "tr" and _WHERE.search(name) and not listed:
        return True
    before, after = text[max(0, start - _BEFORE) : start], text[end : end + _AFTER]
    in_english = code not in _SHARES_ENGLISH and _is_in_english(before, after, in_lists)
    if in_english or any(
        pattern is not None and pattern.match(after)
        for pattern in (_beside(code, "after"), None if in_lists else _beside(code, "works"), _titled(code))
    ):
        return True
    if (nouns := _beside(code, "before")) is not None and nouns.search(before):
        return True
    places = _beside(code, "places")
    preposition = None if places is None or listed else places.search(before)
    return preposition is not None and (len(spelled) == 1 or preposition[0].strip().lower() not in _ARTICLES)


def _is_in_english(before: str, after: str, in_lists: bool) -> bool:
    """Return whether the words beside a name in a text of another language are English, as in titles."""
    joined = not in_lists and _JOINED.match(after)
    return bool(joined or _ENGLISH.match(after) or _ENGLISH_BEFORE.search(before))


@cache
def _titled(code: str) -> re.Pattern[str] | None:
    return re.compile(_TITLE[code]) if code in _TITLE else None
