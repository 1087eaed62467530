# ruff: noqa: RUF001 - context words are in their own languages
"""National identifiers of northern, central and eastern Europe: one row each."""

from typing import Final

from app.engines.pii.recognizers.checksums import europe as check
from app.engines.pii.recognizers.national.rows import Identifier

_DAY, _MONTH = r"(?:0[1-9]|[12]\d|3[01])", r"(?:0[1-9]|1[0-2])"
_HETU = r"[0-3]\d[01]\d\d\d[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y]"
_RODNE = r"\d\d[0-8]\d[0-3]\d"

ROWS: Final = (
    Identifier(
        "BG_EGN",
        "national",
        "егн, egn, единен граждански номер, лнч, граждански номер, edinen grazhdanski nomer",
        likely=(r"\d\d[0-5]\d[0-3]\d{5}",),
        check=check.bg_egn,
    ),
    Identifier(
        "CZ_RODNE_CISLO",
        "national",
        "rodné číslo, rodne cislo, rč, r.č, birth number, rodného čísla, rodným číslem, rodnécislo, rodnecislo, "
        "rodnym cislom, rodné č",
        sure=(rf"{_RODNE}/(?!00)\d{{4}}",),
        likely=(rf"{_RODNE}[ /-]?\d{{3,4}}",),
        check=check.cz_rodne_cislo,
    ),
    Identifier(
        "CZ_ID_CARD",
        "",
        "občanský průkaz, číslo občanského průkazu, obcansky prukaz, op číslo, občanský preukaz, občiansky preukaz, "
        "číslo op, číslo občianskeho preukazu, čop",
        likely=(r"\d{9}", r"[A-Z]{2}[ ]?\d{6}"),
    ),
    Identifier(
        "DK_CPR",
        "national",
        "cpr, cpr nummer, cpr nr, cprnummer, personnummer, cprnr, sygesikring, cpr no, cpr number",
        likely=(r"[0-9]\d[01]\d\d\d[ -]?\d{4}",),
        check=check.dk_cpr,
    ),
    Identifier(
        "EE_ISIKUKOOD",
        "national",
        "isikukood, isikukoodi, isikukoodiga, isiku kood, estonian id",
        likely=(r"[1-8]\d\d[01]\d[0-3]\d{5}",),
        check=check.ee_isikukood,
    ),
    Identifier(
        "LT_ASMENS_KODAS",
        "national",
        "asmens kodas, asmens kodą, asmens kodo, asmens kodu, lithuanian id, asmenskodas",
        likely=(r"[1-8]\d\d[01]\d[0-3]\d{5}",),
        check=check.ee_isikukood,
    ),
    Identifier(
        "LV_PERSONAS_KODS",
        "national",
        "personas kods, personas koda, personas kodu, latvian id, personaskods",
        likely=(r"[0-3]\d{5}[ -]?\d{5}",),
        check=check.lv_personas_kods,
    ),
    Identifier(
        "FI_PERSONAL_IDENTITY_CODE",
        "national",
        "hetu, henkilötunnus, henkilötunnuksen, henkilötunnukseni, henkilötunnuksella, personbeteckning, sotu, "
        "personbeteckningen, henkilotunnus, social security number",
        sure=(_HETU,),
        likely=(_HETU,),
        check=check.fi_hetu,
    ),
    Identifier(
        "HR_OIB",
        "both",
        "oib, osobni identifikacijski broj, oib broj, osobni identifikacijski, porezni broj",
        likely=(r"\d{11}",),
        check=check.hr_oib,
    ),
    Identifier(
        "HU_TAJ",
        "health",
        "taj, taj szám, tajszám, taj száma, taj számom, társadalombiztosítási, társadalombiztosítási azonosító, "
        "társadalombiztosítási azonosító jel, taj kártya, tb szám",
        likely=(r"\d{3}[ -]?\d{3}[ -]?\d{3}",),
        check=check.hu_taj,
    ),
    Identifier(
        "HU_ADOAZONOSITO",
        "tax",
        "adóazonosító, adóazonosító jel, adóazonosító jele, adóazonosító jelem, adószám, adóazonosítója, adoazonosito",
        likely=(r"8\d{9}", r"8\d{3}[ ]\d{3}[ ]\d{3}"),
        check=check.hu_adoazonosito,
    ),
    Identifier(
        "HU_ID_CARD",
        "",
        "személyi igazolvány, személyigazolvány, személyi szám, igazolványszám, személyi igazolvány szám, "
        "személyi igazolványszám, személyigazolvány szám",
        likely=(r"\d{6}[ ]?[A-Z]{2}", r"[A-Z]{2}[ ]?\d{6}", r"[1-8][ -]?\d{6}[ -]?\d{4}"),
    ),
    Identifier(
        "NO_FODSELSNUMMER",
        "national",
        "fødselsnummer, fodselsnummer, personnummer, fnr, d nummer, dnummer, fødselsnr, fødselsnummeret, f.nr, dnr",
        sure=(r"[0-7]\d[0-5]\d\d\d[ -]\d{5}",),
        likely=(r"[0-7]\d[0-5]\d\d\d[ -]?\d{5}", r"[0-7]\d[ .][0-5]\d[ .]\d\d[ ]\d{3}[ ]?\d\d"),
        check=check.no_fodselsnummer,
    ),
    Identifier(
        "PL_PESEL",
        "national",
        "pesel, numer pesel, nr pesel, peselu, pesel nr",
        likely=(r"\d\d[ ]?[0-9]\d[ ]?[0-3]\d[ ]?\d{5}", r"\d{11}"),
        check=check.pl_pesel,
    ),
    Identifier(
        "PL_NIP",
        "tax",
        "nip, numer identyfikacji podatkowej, nip nr, numer nip, nr nip, numer podatkowy",
        likely=(r"\d{10}", r"\d{3}[ -]\d{3}[ -]\d{2}[ -]\d{2}", r"\d{3}[ -]\d{2}[ -]\d{2}[ -]\d{3}"),
        check=check.pl_nip,
    ),
    Identifier(
        "PL_ID_CARD",
        "card",
        "dowód osobisty, dowodu osobistego, dowód, seria i numer dowodu, numer dowodu, dowod osobisty, nr dowodu, "
        "dowodem osobistym, dowodu, numer dowodu osobistego",
        likely=(r"[A-Z]{3}[ ]?\d{6}", r"[A-Z]{3}[ ]\d{3}[ ]\d{3}"),
        check=check.pl_id_card,
    ),
    Identifier(
        "PL_REGON",
        "",
        "regon, numer regon, nr regon",
        likely=(r"\d{9}",),
        check=check.pl_regon,
    ),
    Identifier(
        "RO_CNP",
        "national",
        "cnp, cod numeric personal, codul numeric personal, c.n.p, cnp ul, cod numeric, cnpul",
        likely=(r"[1-9]\d\d[01]\d[0-3]\d{7}",),
        check=check.ro_cnp,
    ),
    Identifier(
        "RO_ID_CARD",
        "",
        "carte de identitate, buletin, seria, ci seria, serie ci, cartea de identitate, act de identitate",
        likely=(r"[A-Z]{2}[ ]?\d{6}", r"[A-Z]{2}[ ](?:nr|numar|număr)\.?[ ]?\d{6}"),
    ),
    Identifier(
        "SE_PERSONNUMMER",
        "national",
        "personnummer, samordningsnummer, personnr, pnr, svenskt personnummer, person nummer, personnummret, "
        "personal identity number, swedish personal number",
        # Not if the last four digits are a time of day, as in file names.
        sure=(r"(?:19|20)?\d\d[01]\d\d\d[-+](?![01]\d[0-5]\d|2[0-3][0-5]\d)\d{4}",),
        likely=(r"(?:19|20)?\d\d[01]\d[0-9]\d[ -]?\d{4}",),
        check=check.se_personnummer,
    ),
    Identifier(
        "SE_ORGANISATIONSNUMMER",
        "",
        "organisationsnummer, orgnr, org nr, org. nr, organisationsnr, företagsnummer, organization number",
        likely=(r"(?:16)?\d{6}[ -]?\d{4}",),
        check=check.se_orgnr,
    ),
    Identifier(
        "SI_EMSO",
        "national",
        "emšo, emso, enotna matična številka občana, matična številka, jmbg, јмбг, matični broj, матични број, "
        "jedinstveni matični broj, emša, матичен број, ембг",
        likely=(r"[0-3]\d[01]\d[09]\d\d\d{6}",),
        check=check.si_emso,
    ),
    Identifier(
        "SI_TAX",
        "tax",
        "davčna številka, davčna, davcna stevilka, davčno številko, davčne številke",
        likely=(r"\d{8}",),
        check=check.si_tax,
    ),
    Identifier(
        "SK_ID_CARD",
        "",
        "občiansky preukaz, číslo občianskeho preukazu, obciansky preukaz, číslo op, občianskeho preukazu",
        likely=(r"[A-Z]{2}[ ]?\d{6}",),
    ),
    Identifier(
        "TR_NATIONAL_ID",
        "both",
        "tc kimlik, kimlik no, kimlik numarası, tckn, tc no, t.c. kimlik, tc kimlik no, kimlik numaram, kimlik, "
        "vatandaşlık numarası, tc kimlik numarası, kimlik numarasi, kimliği",
        likely=(r"[1-9]\d{10}", r"[1-9]\d\d[ ]\d{3}[ ]\d{3}[ ]\d\d"),
        check=check.tr_tckn,
    ),
)
