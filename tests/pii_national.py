"""National identifiers for tests and benchmarks: valid values in their usual spellings, near misses, sentences.

A mask spells a value: ``#`` stands for a digit, ``@`` for a letter, ``*`` for either, square brackets for one of what
they hold; ``{ymd}``, ``{dmy}`` and ``{born}`` for a birth date as YYMMDD, DDMMYY and YYYYMMDD.
"""

import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

from app.engines.pii.ground.labels import RULES
from app.engines.pii.recognizers.checksums.shared import compact
from app.engines.pii.recognizers.national.all import ROWS

SENTENCES = {
    "bg": ("Моля, впишете {word} {value} в заявлението.", "Моят {word} е {value}."),
    "cs": ("Prosím doplňte {word} {value} do formuláře.", "Klient uvedl {word}: {value}, děkujeme."),
    "da": ("Mit {word} er {value}, tak.", "Borgeren har oplyst {word} {value}."),
    "de": ("Meine {word} lautet {value}.", "Bitte tragen Sie {word} {value} in das Formular ein."),
    "el": ("Το {word} μου είναι {value}.", "Παρακαλώ καταχωρίστε {word}: {value}."),
    "en": ("Please add {word} {value} to the file.", "The {word} on the form was {value}, she said."),
    "es": ("Mi {word} es {value}, gracias.", "La titular indicó {word}: {value} en la solicitud."),
    "et": ("Minu {word} on {value}.", "Palun lisage {word} {value} avaldusele."),
    "fi": ("Asiakkaan {word} on {value}.", "Lisää lomakkeelle {word} {value}, kiitos."),
    "fr": ("Mon {word} est le {value}.", "Merci d'indiquer {word} : {value} dans le dossier."),
    "he": ("{word} {value} של הלקוח", "נא לרשום {word}: {value}"),
    "hi": ("मेरा {word} {value} है", "कृपया {word}: {value} दर्ज करें"),
    "hr": ("Moj {word} je {value}.", "Molimo upišite {word}: {value} u obrazac."),
    "hu": ("Kérjük, írja be: {word} {value}.", "Az ügyfél adata: {word}: {value}"),
    "it": ("Il mio {word} è {value}.", "Si prega di inserire {word} {value} nel modulo."),
    "ja": ("申請者の{word}は{value}です。", "{word}：{value}"),
    "ko": ("신청인 {word} {value} 입니다.", "{word}: {value}"),
    "lt": ("Mano {word} yra {value}.", "Prašome įrašyti {word} {value} į formą."),
    "lv": ("Mans {word} ir {value}.", "Lūdzu ierakstiet {word} {value} veidlapā."),
    "nl": ("Mijn {word} is {value}.", "Vul {word} {value} in op het formulier."),
    "no": ("Mitt {word} er {value}.", "Søkeren oppga {word} {value} i skjemaet."),
    "pl": ("Mój {word} to {value}.", "Proszę wpisać {word} {value} do formularza."),
    "pt": ("Meu {word} é {value}.", "O cliente informou {word}: {value} no cadastro."),
    "ro": ("Vă rog să completați {word} {value} în cerere.", "Clientul are {word}: {value}."),
    "sl": ("Moja {word} je {value}.", "Prosimo, vpišite {word} {value} v obrazec."),
    "sv": ("Mitt {word} är {value}.", "Kunden uppgav {word} {value} i blanketten."),
    "th": ("ผู้สมัคร {word} {value}", "กรุณากรอก {word}: {value}"),
    "tr": ("Benim {word} {value}.", "Lütfen forma {word} {value} yazın."),
    "zh": ("申请人{word}：{value}，谢谢。", "{word} {value}"),
}
"""Ways to say an identifier, written for these tests."""


@dataclass(frozen=True, slots=True)
class Case:
    """One entity: the spellings of its values, its language, its word there and in English."""

    entity: str
    language: str
    word: str
    english: str
    masks: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return the label that a finding carries."""
        return RULES[self.entity].label

    def is_valid(self, value: str) -> bool:
        """Say whether ``value`` passes the check of any row of the entity that has one."""
        checks = [row.check for row in ROWS if row.entity == self.entity and row.check is not None]
        return not checks or any(check(compact(value)) for check in checks)

    @property
    def has_check(self) -> bool:
        """Say whether every row of the entity has a check, so that a wrong digit is a miss."""
        return all(row.check is not None for row in ROWS if row.entity == self.entity)

    def values(self, rng: random.Random) -> Iterator[str]:
        """Yield one valid value for each spelling."""
        for mask in self.masks:
            yield next(value for value in (filled(mask, rng) for _ in range(500_000)) if self.is_valid(value))

    def sentences(self, value: str) -> Iterator[str]:
        """Yield ``value`` in sentences of its language and English, and as a field of JSON."""
        for sentence in SENTENCES[self.language]:
            yield sentence.format(word=self.word, value=value)
        for sentence in SENTENCES["en"]:
            yield sentence.format(word=self.english, value=value)
        yield f'{{"id": 7, "{self.english.replace(" ", "_")}": "{value}"}}'

    def near_misses(self, value: str) -> Iterator[str]:
        """Yield what only looks like ``value``: a wrong check, inside a longer token, cut short."""
        if self.has_check:
            yield from [wrong for wrong in _one_off(value) if not self.is_valid(wrong)][:1]
        yield f"x{value}y"
        yield f"{value}-{value}" if "-" not in value else f"77{value}77"


def _one_off(value: str) -> Iterator[str]:
    places = [place for place, character in enumerate(value) if character.isdigit()]
    for place in reversed(places):
        for digit in string.digits:
            if digit != value[place]:
                yield value[:place] + digit + value[place + 1 :]


def filled(mask: str, rng: random.Random) -> str:
    """Return a value that ``mask`` spells."""
    year, month, day = rng.randint(1945, 1999), rng.randint(1, 12), rng.randint(1, 28)
    dates = {"{ymd}": f"{year % 100:02}{month:02}{day:02}", "{dmy}": f"{day:02}{month:02}{year % 100:02}"}
    dates["{born}"] = f"{year}{month:02}{day:02}"
    for name, text in dates.items():
        mask = mask.replace(name, text)
    alphabets = {"#": string.digits, "@": string.ascii_uppercase, "*": string.digits + string.ascii_uppercase}
    mask = re.sub(r"\[([^\]]+)\]", lambda found: rng.choice(found[1]), mask)
    return "".join(rng.choice(alphabets[c]) if c in alphabets else c for c in mask)


_TABLE = """
AE_EMIRATES_ID; en; Emirates ID; emirates id; 784-19##-#######-#; 78419##########
AR_CUIT; es; CUIT; cuit; 20-########-#; 27#########
AR_DNI; es; DNI; dni; ##.###.###
AT_SVNR; de; Sozialversicherungsnummer; svnr; [123456789]### {dmy}; [123456789]###{dmy}
AT_STEUERNUMMER; de; Abgabenkontonummer; tax number; ## ###/####; ##-###/####
AU_ABN; en; ABN; australian business number; ## ### ### ###; ###########
AU_ACN; en; ACN; australian company number; ### ### ###
AU_MEDICARE; en; Medicare number; medicare card; [23456]### ##### #; [23456]#########
AU_TFN; en; TFN; tax file number; ### ### ###; #########
BE_NISS; fr; numéro national; niss; 85.07.##-###.##; 850730#####
BG_EGN; bg; ЕГН; egn; {ymd}####
BR_CNH; pt; CNH; cnh; ###########
BR_CNPJ; pt; CNPJ; cnpj; ##.###.###/0001-##; ##.[ABC]##.###/0001-##; ########0001##
BR_CPF; pt; CPF; cpf; ###.###.###-##; ###########
BR_PIS; pt; PIS; pis; ###.#####.##-#
BR_RG; pt; RG; rg; ##.###.###-#
BR_VOTER; pt; título de eleitor; voter registration; ########01##
CA_HEALTH_CARD; fr; numéro d'assurance maladie; health card number; ####-###-###-@@; TREJ 8[03]12 1###
CA_SIN; fr; numéro d'assurance sociale; social insurance number; [1234567]## ### ###; [1234567]##-###-###
CH_AHV; de; AHV-Nummer; social security number; 756.####.####.##; 756##########
CL_RUT; es; RUT; rut; ##.###.###-#; ########-[0123456789K]
CN_RESIDENT_ID; zh; 身份证号码; resident id; 110105{born}###[0123456789X]
CO_CEDULA; es; cédula de ciudadanía; cedula; #.###.###.###; [123456789]#######
CY_TIC; el; ΑΦΤ; tax identification number; 0#######@
CZ_ID_CARD; cs; občanský průkaz; občanský průkaz; #########
CZ_RODNE_CISLO; cs; rodné číslo; birth number; {ymd}/[123456789]###; {ymd}####
DE_HEALTH_INSURANCE; de; Krankenversichertennummer; health insurance number; @#########
DE_ID_CARD; de; Personalausweisnummer; personalausweis; L[012345678]#######[0123456789]
DE_PASSPORT; de; Reisepassnummer; reisepass; C0[123456789]###[HJK]##
DE_SOCIAL_SECURITY; de; Rentenversicherungsnummer; social security number; 65{dmy}@###
DE_TAX_ID; de; Steueridentifikationsnummer; tax id; ###########
DK_CPR; da; CPR-nummer; cpr number; {dmy}-####; {dmy}####
EE_ISIKUKOOD; et; isikukood; personal code; [34]{ymd}####
ES_CIF; es; CIF; cif; B########
ES_NIE; es; NIE; nie; X#######@; Y-#######-@
ES_NIF; es; DNI; national id; ########@; ##.###.###-@
ES_NUSS; es; número de la seguridad social; social security number; 28/########/##; 28##########
EU_VAT; de; USt-IdNr; vat number; DE#########; ATU########; FR## ### ### ###; NL#########B01; BE0#########
FI_PERSONAL_IDENTITY_CODE; fi; henkilötunnus; personal identity code; {dmy}-###[0123456789ABCDEFHJKLMNPRSTUVWXY]
FR_ID_CARD; fr; carte nationale d'identité; cni; ############
FR_NIR; fr; numéro de sécurité sociale; social security number; 1 85 05 75 ### ### ##; 285052A########; 1850578########
FR_SPI; fr; numéro fiscal; tax number; 30 ## ### ### ###; 1############
GR_AFM; el; ΑΦΜ; afm; #########
GR_AMKA; el; ΑΜΚΑ; amka; {dmy}#####
GR_ID_CARD; el; αριθμός ταυτότητας; adt; AB ######; AK######
HK_HKID; zh; 香港身份證; hong kong identity card; @######([0123456789A])
HR_OIB; hr; OIB; oib; ###########
HU_ADOAZONOSITO; hu; adóazonosító jel; tax number; 8#########
HU_ID_CARD; hu; személyi igazolvány; személyi igazolvány; ######[ABCDE][ABCDE]
HU_TAJ; hu; TAJ szám; social security number; ### ### ###; #########
IE_PPSN; en; PPS number; ppsn; #######@; #######@A
IL_ID; he; תעודת זהות; teudat zehut; #########
IN_AADHAAR; hi; आधार संख्या; aadhaar number; [23456789]### #### ####; [23456789]###########
IN_DRIVER_LICENSE; hi; DL; driving licence; MH12 2011#######; KA-03-2015#######
IN_GSTIN; hi; GSTIN; gst number; 27AAPFU####F1Z*
IN_PAN; hi; PAN; permanent account number; AB[ABC]P@####@
IT_FISCAL_CODE; it; codice fiscale; fiscal code; RSSMRA85T##A562@; rssmra85t1#a562@
IT_VAT_CODE; it; partita IVA; vat number; 0##########
JP_CORPORATE; en; corporate number; corporate number; #############
JP_DOCUMENT_NAMED; ja; 旅券番号; 旅券番号; TK#######
JP_MY_NUMBER; en; individual number; individual number; #### #### ####; ############
JP_MY_NUMBER_NAMED; ja; マイナンバー; my number; ############
KR_BRN; ko; 사업자등록번호; business registration number; ###-##-#####
KR_FRN; ko; 외국인등록번호; foreigner registration number; {ymd}-5######
KR_RRN; ko; 주민등록번호; resident registration number; {ymd}-[12]######
LT_ASMENS_KODAS; lt; asmens kodas; asmens kodas; [34]{ymd}####
LU_MATRICULE; fr; matricule nationale; matricule; {born}#####
LV_PERSONAS_KODS; lv; personas kods; personal code; {dmy}-1####; 32####-#####
MT_ID_CARD; en; Maltese ID; identity card; 0######M; #######[GAPL]
MX_CURP; es; CURP; curp; BOXW{ymd}HNERXN0#
MX_NSS; es; número de seguridad social; imss; ###########
MX_RFC; es; RFC; rfc; GODE{ymd}GR[0123456789A]
NG_NIN; en; NIN; national identification number; ###########
NL_BSN; nl; burgerservicenummer; bsn; #########; ####.##.###
NO_FODSELSNUMMER; no; fødselsnummer; national identity number; {dmy} #####; {dmy}#####
NZ_IRD; en; IRD number; inland revenue number; ##-###-###; 1##-###-###
NZ_NHI; en; NHI number; national health index; [ABCZ][ABC][ABC]####; ZBN##V[ABCDEFGHJKLMNPQRSTUVWXYZ]
PL_ID_CARD; pl; dowód osobisty; national identity card; A@@######
PL_NIP; pl; NIP; nip; ###-###-##-##; ##########
PL_PESEL; pl; PESEL; pesel; {ymd}#####
PL_REGON; pl; REGON; regon; #########
PT_CC; pt; cartão de cidadão; identity card; ######## # ZZ#; ########[0123456789]ZY#
PT_NIF; pt; contribuinte; tax number; 2########; 2## ### ###
PT_NISS; pt; segurança social; social security number; 1##########
RO_CNP; ro; CNP; cnp; [12]{ymd}12####
RO_ID_CARD; ro; carte de identitate; buletin; RX######
SE_ORGANISATIONSNUMMER; sv; organisationsnummer; organization number; 55####-####
SE_PERSONNUMMER; sv; personnummer; personal identity number; {ymd}-9###; {born}-#[6789]##; {ymd}####
SG_NRIC_FIN; en; NRIC; singapore id; S#######@; F#######@; M#######@
SI_EMSO; sl; matična številka; emso; [012][123456789]0[123456789]98#50####
SI_TAX; sl; davčna številka; davčna; ########
SK_ID_CARD; cs; občiansky preukaz; občiansky preukaz; EA######
TH_TNIN; th; เลขประจำตัวประชาชน; thai id; #-####-#####-##-#; [12345678]############
TR_NATIONAL_ID; tr; TC kimlik numarası; kimlik no; ###########
TW_ID; zh; 身分證字號; taiwan id; @1########
UK_CHI; en; CHI number; community health index; {dmy}####
UK_NHS; en; NHS number; nhs; ### ### ####; ##########
UK_NINO; en; National Insurance number; nino; AB######C; JG ## ## ## A
UK_UTR; en; UTR; unique taxpayer reference; ##### #####; ##########
US_ITIN; en; ITIN; individual taxpayer; 9##-7#-####
ZA_ID_NUMBER; en; South African ID; sa id; {ymd}####08#
ANY_PASSPORT; nl; paspoortnummer; passport; AB#######; NX#######
ANY_DRIVING_LICENCE; pl; prawo jazdy; driving licence; #####/##/####
ANY_NATIONAL_ID; nl; identiteitskaart; national id; ###-#######-##
ANY_TAX_ID; de; Steuernummer; tax number; ###/####/####
"""

CASES = tuple(
    Case(entity, language, word, english, tuple(masks))
    for line in _TABLE.strip().splitlines()
    for entity, language, word, english, *masks in [[part.strip() for part in line.split("; ")]]
)
"""Every entity, with its spellings."""

ORDINARY = """
Invoice 2024-000123 of 12.03.2024: 3 items at 1,299.00 EUR, total 3.897,00 €; order no. 100045678, customer 4711.
Shipment 1Z999AA10123456784 left on 2024-05-06T10:20:30.123456Z, parcel 00340434161094042557, weight 12.5 kg.
ISBN 978-3-16-148410-0 and 9783161484100, EAN 4006381333931, ISSN 0317-8471, DOI 10.1000/182, arXiv 2301.12345.
Coordinates 52.520008, 13.404954 and -33.868820,151.209290; altitude 1234567; UTM 33U 391000 5820000.
Versions 1.2.3, 2.10.3-rc.1+build.20240506, 10.0.19045.3803, v18.20.4; OID 1.3.6.1.5.5.7.3.1; kernel 5.15.0-101-generic.
Commit 8f14e45fceea167a5a36dedd4bea2543aa11bb22, sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0.
UUID 123e4567-e89b-12d3-a456-426614174000, trace 4bf92f3577b34da6a3ce929d0e0e4736, span 00f067aa0ba902b7.
Prices 1 234 567,89 / 1'234'567.89 / 1.234.567,89 / 12,34,567.89 / ¥1234567 / $529,982,247.25 / 1e9 / 0x1F4A2B3C.
Call +1 202 555 0173, (212) 555-0143, +44 20 7946 0958, 01 42 68 53 00, +49 30 901820, 0171 1234567 or extension 4567.
Timestamps 1700000000, 1700000000123, 1700000000123456, 20240506102030; took 123456789 ns; epoch day 19848.
Tables: 2019 2020 2021 2022 2023 2024; 100 200 300; 1000 2000 3000; 12 345 678 901; 7 000 000; 44 05 14 01 35 90.
Log pid=44051 tid=140735 port=65535 size=111222333 offset=52998224725 seq=10000000146 req=8001015009087 retry=3/5.
Part numbers AB-123456, X1234567, WX12345-6789, 12345678-5, SKU 123-456-782, model S1234567A, batch L220001293.
File report_20240506-1020.pdf, backup-811228-0206.tar, frame 000123456.jpg, IMG_20240506_102030, chapter 12.531.909-A.
"""
"""A page of numbers that identify nobody."""
