"""National identifiers: found in their words and spellings, told from what only looks like them."""

import random

import pytest

from app.engines.pii.ground.labels import RULES
from app.engines.pii.names.nlp import context_words
from app.engines.pii.recognizers.checksums import europe, world
from app.engines.pii.recognizers.checksums.shared import compact
from app.engines.pii.recognizers.checksums.vat import is_vat
from app.engines.pii.recognizers.national.all import ROWS, national_recognizers
from tests.pii_national import CASES, ORDINARY, Case
from tests.unit.engines.pii.conftest import Find

NATIONAL_LABELS = frozenset(RULES[row.entity].label for row in ROWS)
APART = "\n\nThe next letter of this long file speaks about something else altogether, namely: nothing.\n\n"

PUBLISHED = [
    *(
        (europe.pl_pesel, "44051401359"),
        (europe.fr_nir, "2 55 08 14 168 025 38"),
        (europe.es_nif, "12345678Z"),
    ),
    *((europe.nl_bsn, "111222333"), (europe.at_svnr, "1237 010180"), (europe.be_niss, "85.07.30-033.28")),
    *((europe.bg_egn, "7523169263"), (europe.hr_oib, "33392005961"), (europe.cz_rodne_cislo, "710319/2745")),
    *((europe.de_tax_id, "36 574 261 809"), (europe.de_svnr, "15070649C103"), (europe.de_kvnr, "A123456780")),
    *(
        (europe.ee_isikukood, "36805280109"),
        (europe.lv_personas_kods, "161175-19997"),
        (europe.gr_afm, "094259216"),
    ),
    *((europe.fi_hetu, "131052-308T"), (europe.fi_hetu, "010594Y9021"), (europe.gr_amka, "01013099997")),
    *(
        (europe.hu_taj, "111111110"),
        (europe.ie_ppsn, "1234567FA"),
        (europe.it_fiscal_code, "RCCMNL83S18D969H"),
    ),
    *(
        (europe.lu_matricule, "1893120105732"),
        (europe.no_fodselsnummer, "15108695088"),
        (europe.pl_nip, "8567346215"),
    ),
    *(
        (europe.pt_cc, "00000000 0 ZZ4"),
        (europe.ro_cnp, "1630615123457"),
        (europe.se_personnummer, "811228-9874"),
    ),
    *(
        (europe.se_personnummer, "701063-2391"),
        (europe.si_emso, "0101006500006"),
        (europe.uk_nhs, "943 476 5919"),
    ),
    *((europe.ch_ahv, "756.9217.0769.85"), (europe.uk_utr, "1955839661"), (europe.tr_tckn, "10000000146")),
    *(
        (world.br_cpf, "529.982.247-25"),
        (world.br_cnpj, "12.ABC.345/01DE-35"),
        (world.br_pis, "120.56874.10-7"),
    ),
    *((world.ar_cuit, "20-05536168-2"), (world.au_abn, "51 824 753 556"), (world.au_tfn, "123 456 782")),
    *(
        (world.ca_sin, "130 692 544"),
        (world.cl_rut, "12.531.909-2"),
        (world.cn_resident_id, "11010519491231002X"),
    ),
    *((world.hk_hkid, "G123456(A)"), (world.il_id, "3933742-3"), (world.in_aadhaar, "2341 2341 2346")),
    *(
        (world.in_gstin, "27AAPFU0939F1ZV"),
        (world.jp_my_number, "123456789018"),
        (world.kr_rrn, "971013-9019902"),
    ),
    *((world.mx_curp, "BOXW310820HNERXN09"), (world.mx_rfc, "GODE561231GR8"), (world.nz_ird, "49-091-850")),
    *(
        (world.nz_nhi, "ZAC5361"),
        (world.nz_nhi, "ZBN77VL"),
        (world.sg_nric, "S1234567D"),
        (world.sg_nric, "M5398242L"),
    ),
    *(
        (world.tw_id, "A123456789"),
        (world.za_id, "7503305044089"),
        (world.ae_emirates_id, "784-1979-1234567-1"),
    ),
    *(
        (is_vat, number)
        for number in ("ATU13585627", "BE0428759497", "DE136695976", "FR40303265045", "IE8D79739I")
    ),
    *((is_vat, number) for number in ("LT100001919017", "NL123456782B90", "ESX5910266W", "CHE-100.155.212")),
]
MRZ = [
    "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10",
    "I<UTOD231458907<<<<<<<<<<<<<<<\n7408122F1204159UTO<<<<<<<<<<<6\nERIKSSON<<ANNA<MARIA<<<<<<<<<<",
]


@pytest.mark.parametrize(("check", "value"), PUBLISHED)
def test_published_samples_pass_their_check(check, value: str) -> None:  # type: ignore[no-untyped-def]
    assert check(compact(value))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.entity)
def test_an_identifier_is_found_in_the_words_of_its_country_and_in_english(find: Find, case: Case) -> None:
    for value in case.values(random.Random(case.entity)):
        sentences = list(case.sentences(value))
        found = find(APART.join(sentences))
        assert found.count((value, case.label)) == len(sentences)


def test_what_only_looks_like_an_identifier_is_none_of_it(find: Find) -> None:
    for case in CASES:
        values = list(case.values(random.Random(case.entity)))
        misses = [f"we saw {miss} there" for value in values for miss in case.near_misses(value)]
        assert case.label not in {label for _, label in find(APART.join(misses))}, case.entity


@pytest.mark.parametrize("zone", MRZ)
def test_a_machine_readable_zone_is_found_whole(find: Find, zone: str) -> None:
    assert find(f"scanned:\n{zone}\nend") == [(zone, "MRZ")]
    assert (zone, "MRZ") not in find(f"scanned:\n{zone.replace('7408122', '7408123')}\nend")


def test_scripts_without_spaces_are_read_too(find: Find) -> None:
    assert ("11010519491231002X", "RESIDENT_ID") in find("他的身份证号码是11010519491231002X，请核对。")
    assert ("A123456789", "TW_ID") in find("申請人的身分證字號為A123456789。")
    assert ("3100600445635", "TNIN") in find("เลขประจำตัวประชาชนของฉันคือ3100600445635ค่ะ")


def test_ordinary_numbers_are_no_national_identifiers(find: Find) -> None:
    assert [found for found in find(ORDINARY) if found[1] in NATIONAL_LABELS] == []


def test_no_word_of_context_is_lost_among_the_stop_words() -> None:
    for row in ROWS:
        for phrase in row.context():
            assert len("".join(context_words(phrase))) > 1, (row.entity, phrase)


def test_every_row_has_its_cases() -> None:
    covered = {case.entity for case in CASES} | {"MRZ", "TH_TNIN_NAMED", "TW_ID_NAMED"}
    assert covered == {row.entity for row in ROWS}


@pytest.mark.parametrize(
    "text", ["", "1", "O54366885", "ABCDEFGHI", "0000000000000000", "\u0663\u0664", "ESO5436688A"]
)
def test_what_no_check_can_read_is_no_number_and_no_error(text):
    for recognizer in national_recognizers():
        assert recognizer.validate_result(text) in (None, False)


def test_a_vat_number_with_a_letter_among_its_digits_is_scanned(find):
    assert ("jane@example.com", "EMAIL") in find("VAT number ESO5436688A, jane@example.com")
