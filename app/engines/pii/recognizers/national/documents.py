"""VAT numbers of Europe, machine-readable zones, and documents of any country beside their names."""

from typing import Final

from app.engines.pii.recognizers.checksums.vat import is_vat
from app.engines.pii.recognizers.checksums.world import mrz
from app.engines.pii.recognizers.national.rows import Identifier

_DIGITS: Final = {
    "AT": r"U\d{8}",
    "BE": r"[01]\d{3}[. ]?\d{3}[. ]?\d{3}",
    "BG": r"\d{9,10}",
    "CY": r"\d{8}[A-Z]",
    "CZ": r"\d{8,10}",
    "DE": r"[1-9]\d{8}|[1-9]\d\d[ ]\d{3}[ ]\d{3}",
    "DK": r"\d{8}|\d\d[ ]\d\d[ ]\d\d[ ]\d\d",
    "EE": r"\d{9}",
    "EL": r"\d{9}",
    "ES": r"[A-Z]\d{8}|[A-Z]\d{7}[A-Z]|\d{8}[A-Z]",
    "FI": r"\d{8}",
    "FR": r"[0-9A-HJ-NP-Z]{2}[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}",
    "GB": r"\d{3}[ ]?\d{4}[ ]?\d\d(?:[ ]?\d{3})?",
    "HR": r"\d{11}",
    "HU": r"\d{8}",
    "IE": r"\d{7}[A-W][A-I]?|\d[A-Z+*]\d{5}[A-W]",
    "IT": r"\d{11}",
    "LT": r"\d{9}|\d{12}",
    "LU": r"\d{8}",
    "LV": r"\d{11}",
    "MT": r"\d{8}",
    "NL": r"\d{9}B\d\d",
    "NO": r"\d{9}(?:[ ]?MVA)?",
    "PL": r"\d{10}",
    "PT": r"\d{9}",
    "RO": r"\d{6,10}",
    "SE": r"\d{12}",
    "SI": r"\d{8}",
    "SK": r"\d{10}",
    "XI": r"\d{9}",
}
_CHE = r"CHE-?\d{3}\.?\d{3}\.?\d{3}(?:[ ]?(?:MWST|TVA|IVA))?"
_VAT_WORDS = (
    "ust idnr, ust id, ust idnr., ustid, ustidnr, umsatzsteuer id, umsatzsteuer identifikationsnummer, uid nummer, "
    "umsatzsteueridentifikationsnummer, tva, numéro de tva, n° tva, tva intracommunautaire, iva, partita iva, "
    "número de iva, nif iva, btw, btw nummer, btw id, moms, moms nr, momsnummer, momsreg, alv, alv numero, dič, dph, "
    "ič dph, áfa, adószám, közösségi adószám, pdv, ddv, id za ddv, pvm, pvm kodas, pvn, kmkr, kmkr number, φπα, "
    "ддс, cif, cui, cod fiscal, nip, vat ue, vat eu, mwst, mwst nr, vat id number, vatnumber, mva"
)
# The cue distinguishes the numbers of persons from those of companies; their shape is the same.
_FEW = ("RO", "FI", "DK", "SI", "LU", "HU", "MT", "NO", "CZ", "EE", "LT", "SK", "BG")
"""Order and part numbers may also be one of these prefixes and a few digits; so these need a context word."""

_BREAK = r"(?:\r?\n|\\r\\n|\\n| )"
_ZONE = "[A-Z0-9<]"
_SHAPED = r"[A-Z]{1,5}-?\d{4,10}[A-Z]{0,3}|\d{1,4}[A-Z]{1,4}\d{3,8}"

ROWS: Final = (
    Identifier(
        "MRZ",
        "",
        "",
        sure=(
            rf"[PV][A-Z<][A-Z<]{{42}}{_BREAK}{_ZONE}{{9}}[0-9<][A-Z<]{{3}}\d{{7}}[MFX<]\d{{7}}{_ZONE}{{16}}",
            rf"[ACIPV][A-Z<][A-Z<]{{34}}{_BREAK}{_ZONE}{{9}}[0-9<][A-Z<]{{3}}\d{{7}}[MFX<]\d{{7}}{_ZONE}{{8}}",
            (
                rf"[ACI][A-Z<][A-Z<]{{3}}{_ZONE}{{25}}{_BREAK}"
                rf"\d{{7}}[MFX<]\d{{7}}[A-Z<]{{3}}{_ZONE}{{12}}{_BREAK}[A-Z<]{{30}}"
            ),
        ),
        check=mrz,
    ),
    Identifier(
        "EU_VAT",
        "vat",
        _VAT_WORDS,
        sure=(
            _CHE,
            *(f"{prefix}[ ]?(?:{digits})" for prefix, digits in _DIGITS.items() if prefix not in _FEW),
        ),
        likely=tuple(f"{prefix}-?(?:{digits})" for prefix, digits in _DIGITS.items()),
        check=is_vat,
    ),
    Identifier(
        "EU_VAT",
        "vat",
        _VAT_WORDS,
        likely=(_CHE, *(f"{prefix}-?(?:{digits})" for prefix, digits in _DIGITS.items())),
    ),
    Identifier(
        "ANY_PASSPORT",
        "passport",
        "passnummer, reisepass, passeport, numéro de passeport, pasaporte, número de pasaporte, passaporto, "
        "numero di passaporto, passaporte, número do passaporte, paspoort, paspoortnummer, "
        "paszport, numer paszportu, "
        "pas nr, passi number, passinumero, cestovní pas, číslo pasu, útlevél, útlevélszám, pașaport, паспорт, "
        "διαβατήριο, putovnica, potni list, pases numurs, paso numeris, pass nr, pasnummer, passnr, 여권, "
        "여권번호, "
        "passportno, passaporte nº, pasaport, pasaport no, דרכון, جواز السفر",
        likely=(
            r"(?:[A-Z]{1,3}[ ]?)?\d{6,9}[A-Z]{0,2}",
            r"\d{2}[A-Z]{2}\d{5}",
            r"[A-Z]\d{2}[A-Z]\d{5}",
        ),
    ),
    Identifier(
        "ANY_DRIVING_LICENCE",
        "licence",
        "führerschein, führerscheinnummer, fahrerlaubnis, führerausweis, permis de conduire, numéro de permis, "
        "permiso de conducir, carnet de conducir, licencia de conducir, patente di guida, numero patente, "
        "carta de condução, rijbewijs, rijbewijsnummer, prawo jazdy, kørekort, körkort, førerkort, "
        "ajokortti, řidičský průkaz, "
        "vodičský preukaz, jogosítvány, vezetői engedély, permis auto, vozačka dozvola, vozniško dovoljenje, "
        "juhiluba, vadītāja apliecība, vairuotojo pažymėjimas, шофьорска книжка, άδεια οδήγησης, ehliyet",
        likely=(_SHAPED, r"\d{2,5}[ /-]\d{2,6}(?:[ /-]\d{2,8})?", r"\d{7,14}", r"U1[A-Z0-9]{7}[A-Z]"),
    ),
    Identifier(
        "ANY_NATIONAL_ID",
        "named",
        "carte d'identité, carta d'identità, documento de identidad, identiteitskaart, identiteitskaartnummer, "
        "personalausweis, personalausweisnummer, dowód osobisty, identitetskort, henkilökortti, občanský průkaz, "
        "osobna iskaznica, osebna izkaznica, лична карта, ταυτότητα, isikutunnistus, id kaart, "
        "asmens tapatybės kortelė",
        likely=(
            _SHAPED,
            r"\d{6,17}[\dX]?",
            r"\d{2,4}[ .-]\d{2,7}[ .-]\d{2,6}(?:[ .-]\d{1,4})?",
            r"\d{6}[ ]?[/-][ ]?\d{3,7}",
        ),
    ),
    Identifier(
        "ANY_TAX_ID",
        "tax",
        "steuernummer, numéro fiscal, número fiscal, codice fiscale, "
        "número de identificación fiscal, numer podatkowy, "
        "adószám, daňové číslo, fiscaal nummer, skattenummer, steuer nr, st nr, steuernr",
        likely=(
            r"\d{2,3}[ /-]\d{3,4}[ /-]\d{4,5}",
            r"\d{8,13}",
            r"\d{2}-\d{7}",
            r"[A-Z]{1,3}\d{6,12}[A-Z]{0,3}",
            r"\d{6,11}[A-Z]{1,2}",
        ),
    ),
)
