"""Our checks of identifiers say the same as python-stdnum, on valid numbers and on each with one character wrong.

Left out because stdnum has no check to compare with: ``de_svnr``, ``de_kvnr``, ``de_document``, ``es_nuss``,
``hu_taj``, ``hu_adoazonosito``, ``lu_matricule``, ``lv_personas_kods`` (compared as a VAT number), ``pl_id_card``,
``pt_niss``, ``uk_chi``, ``ae_emirates_id``, ``au_medicare``, ``br_cnh``, ``br_pis``, ``br_voter``, ``hk_hkid``,
``kr_brn``, ``ng_nin``, ``nz_nhi``, ``sg_nric``, ``tw_id``, ``mrz``.

Numbers of one repeated digit are not compared: they pass many checks and name nobody, so ours reject them.
"""

import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.engines.pii.recognizers.checksums import europe, world
from app.engines.pii.recognizers.checksums.shared import (
    is_luhn,
    is_mod_11_10,
    is_mod_37_36,
    is_uniform,
    is_verhoeff,
)
from app.engines.pii.recognizers.checksums.vat import VAT_CHECKS, is_vat

EXAMPLES = 12
FEWEST_VALID = 5
YEAR, MONTH, DAY = r"[5-9]\d", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|1\d|2[0-8])"
BORN, DAY_FIRST = YEAR + MONTH + DAY, DAY + MONTH + YEAR
LETTERS_AND_DIGITS = string.digits + string.ascii_uppercase


@dataclass(frozen=True)
class Compared:
    """A check of ours beside stdnum's module for it.

    ``shape`` is what both are asked about, and ``places`` the positions of the check characters. ``oracle`` stands
    in where the module has another name for its check; ``narrower`` names what only one of the two accepts, and why.
    """

    ours: Callable[[str], bool]
    module: str
    shape: str
    places: tuple[int, ...] = (-1,)
    oracle: Callable[[str], bool] | None = None
    narrower: Callable[[str], bool] = is_uniform

    @property
    def theirs(self) -> Callable[[str], bool]:
        return self.oracle or import_module(f"stdnum.{self.module}").is_valid


def passes(module: str, *, without: str = "", **options):
    """Return stdnum's check with ``options``, as a function that answers yes or no."""
    library = import_module(f"stdnum.{module}")

    def check(text: str) -> bool:
        try:
            return bool(library.validate(text.removesuffix(without), **options))
        except import_module("stdnum.exceptions").ValidationError:
            return False

    return check


def either(*modules: str):
    return lambda text: any(import_module(f"stdnum.{module}").is_valid(text) for module in modules)


def swiss(text: str) -> bool:
    return is_vat(text.removesuffix("TVA"))


EUROPE = {
    "at_svnr": Compared(europe.at_svnr, "at.vnr", r"[1-9]\d{3}" + DAY_FIRST, (3,)),
    "be_niss": Compared(europe.be_niss, "be.ssn", BORN + r"\d{5}", (9, 10)),
    "bg_egn": Compared(europe.bg_egn, "bg.egn", BORN + r"\d{4}"),
    "cy_tic": Compared(europe.cy_tic, "cy.vat", r"[069]\d{7}[A-Z]"),
    "cz_rodne_cislo": Compared(europe.cz_rodne_cislo, "cz.rc", BORN + r"\d{4}"),
    # The serial 000 was never given to anybody born before 1954.
    "cz_rodne_cislo before 1954": Compared(
        europe.cz_rodne_cislo, "cz.rc", r"[0-5]\d" + MONTH + DAY + r"(?!000)\d{3}", (0,)
    ),
    "de_tax_id": Compared(
        europe.de_tax_id, "de.idnr", r"(?:12345678|86095742|71403829)\d{3}|\d{11}", (9, 10)
    ),
    "dk_cpr": Compared(europe.dk_cpr, "dk.cpr", DAY_FIRST + r"[0-3]\d{3}", (2,)),
    "ee_isikukood": Compared(europe.ee_isikukood, "ee.ik", r"[34]" + BORN + r"\d{4}"),
    "ee_isikukood in Lithuania": Compared(europe.ee_isikukood, "lt.asmens", r"[34]" + BORN + r"\d{4}"),
    "es_nif": Compared(europe.es_nif, "es.nif", r"[\dXYZKLM]\d{7}[A-Z]"),
    "es_cif": Compared(europe.es_cif, "es.cif", r"[ABCDEFGHJNPQRSUVW]\d{7}[0-9A-J]"),
    "fi_hetu": Compared(
        europe.fi_hetu,
        "fi.hetu",
        DAY_FIRST + r"-\d{3}[0-9A-FHJ-NPR-Y]",
        oracle=passes("fi.hetu", allow_temporary=True),  # hospitals give 900 to 999
    ),
    "fr_nir": Compared(europe.fr_nir, "fr.nir", r"[12]\d\d" + MONTH + r"\d{10}", (13, 14)),
    "fr_spi": Compared(europe.fr_spi, "fr.nif", r"[0-3]\d{12}", (10, 11, 12)),
    "gr_afm": Compared(europe.gr_afm, "gr.vat", r"\d{9}"),
    "gr_amka": Compared(europe.gr_amka, "gr.amka", DAY_FIRST + r"\d{5}"),
    "hr_oib": Compared(europe.hr_oib, "hr.oib", r"\d{11}"),
    # Which second letters are in use is for the pattern to say; stdnum's check lists them.
    "ie_ppsn": Compared(europe.ie_ppsn, "ie.pps", r"\d{7}[A-W][ABHWTX]?", (7,)),
    "it_fiscal_code": Compared(
        europe.it_fiscal_code,
        "it.codicefiscale",
        rf"[A-Z]{{6}}{YEAR}[ABCDEHLMPRST]{DAY}[A-Z]\d{{3}}[A-Z]",
    ),
    "nl_bsn": Compared(europe.nl_bsn, "nl.bsn", r"\d{9}"),
    "no_fodselsnummer": Compared(
        europe.no_fodselsnummer, "no.fodselsnummer", DAY_FIRST + r"[0-4]\d{4}", (9, 10)
    ),
    "pl_pesel": Compared(europe.pl_pesel, "pl.pesel", BORN + r"\d{5}"),
    "pl_nip": Compared(europe.pl_nip, "pl.nip", r"[1-9]\d{9}"),
    "pl_regon": Compared(europe.pl_regon, "pl.regon", r"\d{9}"),
    "pt_nif": Compared(europe.pt_nif, "pt.nif", r"(?:[1-35689]\d|45|7[0-24-57-9])\d{7}"),
    "pt_cc": Compared(europe.pt_cc, "pt.cc", r"\d{9}[A-Z]{2}\d"),
    "ro_cnp": Compared(europe.ro_cnp, "ro.cnp", r"[12]" + BORN + r"(?:0[1-9]|[1-3]\d)\d{4}"),
    "se_personnummer": Compared(europe.se_personnummer, "se.personnummer", BORN + r"\d{4}"),
    "se_orgnr": Compared(europe.se_orgnr, "se.orgnr", r"\d\d[2-9]\d{7}"),
    "si_emso": Compared(europe.si_emso, "si.emso", DAY + MONTH + r"9[5-9]\d50\d{4}"),
    "si_tax": Compared(europe.si_tax, "si.ddv", r"[1-9]\d{7}"),
    "ch_ahv": Compared(europe.ch_ahv, "ch.ssn", r"756\d{10}"),
    "uk_nhs": Compared(europe.uk_nhs, "gb.nhs", r"\d{10}"),
    "uk_utr": Compared(europe.uk_utr, "gb.utr", r"\d{10}", (0,)),
    "tr_tckn": Compared(europe.tr_tckn, "tr.tckimlik", r"[1-9]\d{10}", (9, 10)),
}

WORLD = {
    "ar_cuit": Compared(world.ar_cuit, "ar.cuit", r"(?:20|23|24|27|30|33|34)\d{9}"),
    "au_abn": Compared(world.au_abn, "au.abn", r"[1-9]\d{10}", (0, 1)),
    "au_acn": Compared(world.au_acn, "au.acn", r"\d{9}"),
    "au_tfn": Compared(world.au_tfn, "au.tfn", r"\d{9}"),
    "br_cpf": Compared(world.br_cpf, "br.cpf", r"\d{11}", (9, 10)),
    "br_cnpj": Compared(world.br_cnpj, "br.cnpj", r"[0-9A-Z]{12}\d\d", (12, 13)),
    "ca_sin": Compared(world.ca_sin, "ca.sin", r"[1-79]\d{8}"),
    # Ours takes the cards of all provinces; those of Ontario pass Luhn.
    "ca_health_card": Compared(
        world.ca_health_card, "ca.bc_phn", r"9\d{9}", oracle=either("ca.bc_phn", "luhn")
    ),
    "cl_rut": Compared(world.cl_rut, "cl.rut", r"\d{7,8}[0-9K]"),
    "cn_resident_id": Compared(world.cn_resident_id, "cn.ric", r"11010119" + BORN + r"\d{3}[0-9X]"),
    "il_id": Compared(world.il_id, "il.idnr", r"\d{9}"),
    "in_aadhaar": Compared(world.in_aadhaar, "in_.aadhaar", r"[2-9]\d{11}"),
    "in_gstin": Compared(
        world.in_gstin, "in_.gstin", r"(?:0[1-9]|[12]\d)[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z][1-9]Z[0-9A-Z]"
    ),
    "jp_my_number": Compared(world.jp_my_number, "jp.in_", r"\d{12}"),
    "jp_corporate": Compared(world.jp_corporate, "jp.cn", r"[1-9]\d{12}", (0,)),
    # Of foreigners (5 to 8) the digit is counted from 13, which stdnum does not know.
    "kr_rrn": Compared(world.kr_rrn, "kr.rrn", BORN + r"[12][0-8]\d{5}"),
    # stdnum also rejects names whose first four letters make a word that is replaced; none has a Q or an X there.
    "mx_curp": Compared(
        world.mx_curp,
        "mx.curp",
        rf"[A-Z][AEIOU][QX][A-Z]{BORN}[HM](?:DF|NL|VZ)[B-DF-HJ-NP-TV-Z]{{3}}\d\d",
    ),
    "mx_rfc": Compared(
        world.mx_rfc,
        "mx.rfc",
        rf"(?:[A-Z][AEIOU][QX][A-Z]|[B-DF-HJ-NP-TV-Z&]{{3}}){BORN}[1-9A-V][1-9A-Z][0-9A]",
        oracle=passes("mx.rfc", validate_check_digits=True),
    ),
    "nz_ird": Compared(world.nz_ird, "nz.ird", r"\d{8,9}"),
    "th_tnin": Compared(world.th_tnin, "th.pin", r"[1-8]\d{12}"),
    # The groups 50 to 65 are issued since 2013 (IRS, Publication 4757); stdnum does not know them.
    "us_itin": Compared(world.us_itin, "us.itin", r"9\d\d(?:[0-4]|[7-9])\d\d{4}", (3, 4)),
    "za_id": Compared(world.za_id, "za.idnr", BORN + r"\d{4}[01][89]\d"),
}

SHARED = {
    "Luhn": Compared(is_luhn, "luhn", r"\d{5,19}"),
    "Verhoeff": Compared(is_verhoeff, "verhoeff", r"\d{5,19}"),
    "mod 11,10": Compared(is_mod_11_10, "iso7064.mod_11_10", r"\d{5,19}"),
    "mod 37,36 of GSTIN": Compared(
        is_mod_37_36, "luhn", r"[0-9A-Z]{15}", oracle=passes("luhn", alphabet=LETTERS_AND_DIGITS)
    ),
}


def vat(
    country: str, module: str, shape: str, *places: int, narrower: Callable[[str], bool] = is_uniform
) -> Compared:
    return Compared(VAT_CHECKS[country], module, shape, places or (-1,), narrower=narrower)


VAT = {
    "AT": vat("AT", "at.uid", r"U\d{8}"),
    # 97 less the remainder of 97 is never above 97 (Banque-Carrefour des Entreprises); stdnum compares remainders.
    "BE": vat(
        "BE", "be.vat", r"(?:0[1-9]|1\d)\d{6}(?:[0-8]\d|9[0-7])", 8, 9, narrower=lambda text: text[8:] == "00"
    ),
    "BG": vat("BG", "bg.vat", r"\d{9,10}"),
    "CY": vat("CY", "cy.vat", r"[013459]\d{7}[A-Z]"),
    "CZ": vat("CZ", "cz.dic", rf"[0-8]\d{{7}}|6\d{{8}}|{BORN}\d{{4}}"),
    "DE": vat("DE", "de.vat", r"[1-9]\d{8}"),
    "DK": vat("DK", "dk.cvr", r"[1-9]\d{7}"),
    "EE": vat("EE", "ee.kmkr", r"10\d{7}"),
    "EL": vat("EL", "gr.vat", r"\d{9}"),
    "ES": vat("ES", "es.nif", r"[\dXYZKLMABCDEFGHJNPQRSUVW]\d{7}[0-9A-Z]"),
    "FI": vat("FI", "fi.alv", r"\d{8}"),
    # The tax office has published the key of digits only; ours lets a key with letters pass where the SIREN does.
    "FR": vat("FR", "fr.tva", r"\d{11}", 0, 1, -1),
    "HR": vat("HR", "hr.oib", r"\d{11}"),
    "HU": vat("HU", "hu.anum", r"\d{8}"),
    "IE": vat("IE", "ie.vat", r"\d[A-Z]\d{5}[A-W]|\d{7}[A-W][A-I]?", 7),
    # stdnum also wants a known office of a province; new ones would be missed.
    "IT": vat("IT", "it.iva", r"[1-9]\d{6}0(?:[1-9]\d|0[1-9])\d"),
    "LT": vat("LT", "lt.pvm", r"\d{7}1\d|\d{10}1\d"),
    "LU": vat("LU", "lu.tva", r"\d{8}", 6, 7),
    "LV": vat("LV", "lv.pvn", r"[4-9]\d{10}|" + DAY + MONTH + r"[5-9]\d[01]\d{4}"),
    "MT": vat("MT", "mt.vat", r"[1-9]\d{7}", 6, 7),
    "NL": vat("NL", "nl.btw", r"[1-9]\d{8}B\d\d", 10, 11),
    "PL": vat("PL", "pl.nip", r"\d{10}"),
    "PT": vat("PT", "pt.nif", r"(?:[1-35689]\d|45|7[0-24-57-9])\d{7}"),
    "RO": vat("RO", "ro.cf", r"[1-9]\d{1,9}"),
    "SE": vat("SE", "se.vat", r"\d{10}01", 9),
    "SI": vat("SI", "si.ddv", r"[1-9]\d{7}"),
    # A birth number may end in 0 where the remainder is ten; as a VAT number it is divisible by eleven.
    "SK": vat("SK", "sk.dph", r"[1-9]\d[2-47-9]\d{7}", 8, 9, narrower=lambda text: int(text[:9]) % 11 == 10),
    "GB": vat("GB", "gb.vat", r"\d{9}(?:\d{3})?", 7, 8),
    "NO": Compared(is_vat, "no.mva", r"NO[89]\d{8}MVA", (10,)),
    "CHE": Compared(swiss, "ch.vat", r"CHE\d{9}TVA", (11,)),
}

ALL = {**EUROPE, **WORLD, **SHARED, **{f"VAT of {country}": row for country, row in VAT.items()}}


def of_one_kind(character: str) -> str:
    if character in string.digits:
        return string.digits
    return string.ascii_uppercase if character in string.ascii_uppercase else character


def completed(text: str, row: Compared):
    """Yield ``text`` with every possible combination of check characters."""
    places = [place % len(text) for place in row.places]
    alphabet = LETTERS_AND_DIGITS if len(places) <= 2 else string.digits
    for characters in product(alphabet, repeat=len(places)):
        changed = list(text)
        for place, character in zip(places, characters, strict=True):
            changed[place] = character
        yield "".join(changed)


def one_off(text: str):
    """Yield ``text`` with each of its characters replaced by each other one of its kind."""
    for place, character in enumerate(text):
        for other in of_one_kind(character):
            if other != character:
                yield text[:place] + other + text[place + 1 :]


@pytest.mark.parametrize("name", ALL)
def test_a_check_agrees_with_stdnum(name):
    row = ALL[name]
    shape, theirs = re.compile(row.shape, re.ASCII), row.theirs
    valid, different = set(), {}

    def compare(text: str) -> None:
        if not shape.fullmatch(text) or row.narrower(text):
            return
        ours = bool(row.ours(text))
        if theirs(text):
            valid.add(text)
        if ours is not theirs(text):
            different[text] = ours

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.from_regex(shape, fullmatch=True))
    def explore(text: str) -> None:
        for candidate in completed(text, row):
            compare(candidate)

    explore()
    for number in sorted(valid)[:EXAMPLES]:
        for faulty in one_off(number):
            compare(faulty)
    assert len(valid) >= FEWEST_VALID
    assert not different


def test_every_check_is_compared_or_named_as_left_out():
    checks = {
        name
        for module in (europe, world)
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    left_out = set(re.findall(r"``(\w+)``", __doc__))
    compared = {name.partition(" ")[0] for name in (*EUROPE, *WORLD)}
    assert checks == compared | left_out
    assert not compared & left_out
    assert set(VAT) - {"CHE"} == set(VAT_CHECKS) - {"XI"}
