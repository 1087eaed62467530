"""Identifiers of HIPAA, PCI and the GDPR: found by cue, form or check digit, and not where they mean something else."""

import re
from pathlib import Path

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.ground.labels import LABELS
from app.engines.pii.recognizers.generic import generic_recognizers
from app.engines.pii.recognizers.patterns import compiled
from app.engines.pii.search.analyzer import Analyzer
from tests.pii_identifiers import KINDS, cases
from tests.unit.engines.pii.conftest import Find

COVERAGE = Path(__file__).parents[4] / "docs" / "detection-coverage.md"

FOUND = [
    ("Patient John Smith (MRN 00482913) was admitted", "00482913", "MRN"),
    ('{"patient_id": "A-99812"}', "A-99812", "MRN"),
    ("employeeNumber=55231", "55231", "EMPLOYEE_ID"),
    ("Employee ID for the new colleague: E12345", "E12345", "EMPLOYEE_ID"),
    ("The claim number you asked about is CLM-88123.", "CLM-88123", "CLAIM"),
    ("Der Kunde mit der Kundennummer 4711-88 ruft an", "4711-88", "CUSTOMER_ID"),
    ("cvv 123", "123", "CVV"),
    ('{"first_name": "Dawn", "department": "Sales"}', "Dawn", "PERSON"),
    ("<lastName>French</lastName>", "French", "PERSON"),
    ("Nachname: Killer\nOrt: Ulm", "Killer", "PERSON"),
    ('{"street": "02602 Alexander Squares", "floor": 2}', "02602 Alexander Squares", "ADDRESS"),
    ("Straße: Seipring 819\nOrt: Ulm", "Seipring 819", "ADDRESS"),
    ("Your claim is filed under policy POL-17180023.", "POL-17180023", "POLICY"),
    ("su póliza HO-213-7945-18 ha sido renovada", "HO-213-7945-18", "POLICY"),
    ("paid to Ravi - EMP-2551 - today", "EMP-2551", "EMPLOYEE_ID"),
    ("Hosp. No: 7706589", "7706589", "MRN"),
    ("Medical record number 76-89-01.", "76-89-01", "MRN"),
    ("file number of our patient: 449-201", "449-201", "MRN"),
    ("med rec no. NR-42552", "NR-42552", "MRN"),
    ('{"sn": "C02QQIY874QQ"}', "C02QQIY874QQ", "DEVICE_ID"),
    ("Username: nhall\nRole: user", "nhall", "USERNAME"),
    ("sshd[2211]: Accepted password for jgentry from 10.0.0.7", "jgentry", "USERNAME"),
    ("level=info user=nguyenmatthew ip=10.0.0.7", "nguyenmatthew", "USERNAME"),
    ("Temporary password: Kt(4F1jl2^&X\n", "Kt(4F1jl2^&X", "PASSWORD"),
    ("call (555) 123-4567 today", "(555) 123-4567", "PHONE"),
    ("ask at 555-182-2479", "555-182-2479", "PHONE"),
    ("Seine Nummer ist 07210141561.", "07210141561", "PHONE"),
    ("close account 4401928837 now", "4401928837", "BANK_ACCOUNT"),
    ("exp 12/27", "12/27", "CARD_EXPIRY"),
    (";4539578763621486=27121011000012345678?", ";4539578763621486=27121011000012345678?", "CARD"),
    ("SWIFT CHASUS33, thanks", "CHASUS33", "BIC"),
    ("sort code 12-34-56", "12-34-56", "ROUTING"),
    ("IMEI 35-209900-176148-1", "35-209900-176148-1", "DEVICE_ID"),
    ("it is 1HGCM82633A004352 on the door", "1HGCM82633A004352", "VIN"),
    ("number plate AB12 CDE", "AB12 CDE", "PLATE"),
    ("fingerprint template id FT-20931", "FT-20931", "BIOMETRIC_ID"),
    ("discharged 03/15/2024", "03/15/2024", "DATE"),
    ("née le 12 mars 1980", "12 mars 1980", "DATE"),
    ("a 93-year-old woman", "93-year-old", "AGE"),
    (
        "Ship to 742 Evergreen Terrace, Springfield, IL 62704 by Friday",
        "742 Evergreen Terrace, Springfield, IL 62704",
        "ADDRESS",
    ),
    ("ich wohne Musterstraße 12, 10115 Berlin seit Mai", "Musterstraße 12, 10115 Berlin", "ADDRESS"),
    ("at 12 rue de la Paix, 75002 Paris.", "12 rue de la Paix, 75002 Paris", "ADDRESS"),
    ("P.O. Box 123, Denver, CO 80201", "P.O. Box 123, Denver, CO 80201", "ADDRESS"),
    ("lat: 48.208174", "48.208174", "COORDINATES"),
    ("username: jdoe42", "jdoe42", "USERNAME"),
    ("my password is Secret123!, keep it", "Secret123!", "PASSWORD"),
    ("PIN: 4821", "4821", "PIN"),
    ("fax 321 1230148", "321 1230148", "PHONE"),
]

LEFT_ALONE = [
    "password: str = Field(...)",
    "def login(user, password=None): return auth(user=user, password=password)",
    "password: process.env.DB_PASSWORD1",
    "employees: 48211, customers: 12345",
    "the account has 15 users since 2024",
    "Apache License 2.0, January 2004",
    "a 45-year-old firm and the 95th percentile",
    "loss 0.693147, 1.098612",
    "[10.123456, 20.234567, 30.345678]",
    "3 Supreme Court cases and 5 road tests",
    "EAN 4011284079772",
    "2T1PDNYU340164106 has a wrong check digit",
    "the SWIFT language is BUSINESS",
    "first_name = Column(String(40)); lastName: String, fullName: Optional[str] = None",
    "first_name,Department,Grade",
    "the email address: Page 3 and the IP address: Port 8080",
    "Created order 0373-570672, part 123-4567-89, item 0764-737-30",
    '{"order": {"number": "SO-20", "account": {"batch": "301489697"}}}',
    '{"price": 84.66971724159366}',
    '{"sku": "PW-9508-TJ", "user": {"firstName": ""}}',
    "see policy CVE-2021-44228 and policy ISO-27001",
]


@pytest.mark.parametrize(("text", "what", "label"), FOUND)
def test_an_identifier_is_found_by_what_names_it(find: Find, text: str, what: str, label: str) -> None:
    assert (what, label) in find(text)


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_only_looks_like_an_identifier_is_left_alone(find: Find, text: str) -> None:
    assert find(text, exclude=frozenset({"PERSON", "LOCATION", "ORGANIZATION"})) == []


@pytest.mark.parametrize("kind", KINDS)
def test_nearly_all_values_of_a_class_are_hidden(analyzer: Analyzer, kind: str) -> None:
    missed = []
    for case in cases(kind, "held-out", 6):
        spans = analyzer.scan(case.text, DetectionOptions(strict=KINDS[kind].strict))
        hidden = {place for span in spans for place in range(span.start, span.end)}
        if any(case.text[place].isalnum() and place not in hidden for place in range(case.start, case.end)):
            missed.append(case.text)
    assert len(missed) <= 2, missed


def test_the_table_of_coverage_names_every_type() -> None:
    named = set(re.findall(r"`([a-z][a-z0-9_]+)`", COVERAGE.read_text(encoding="utf-8")))
    assert {label.lower() for label in LABELS} <= named


@pytest.mark.parametrize(
    "unit",
    [
        "A-",
        "Ab-",
        "1 ",
        "12 Ab ",
        "Ab Straße ",
        "customer number of ",
        "id: ",
        "pin is ",
        "1.1, ",
        "rue de la ",
    ],
)
def test_no_pattern_takes_long_on_a_text_that_repeats_its_parts(unit: str) -> None:
    text = unit * (4_096 // len(unit))
    for recognizer in generic_recognizers():
        for pattern in recognizer.patterns:  # type: ignore[attr-defined]
            for _ in compiled(pattern.regex, recognizer.global_regex_flags).finditer(text, timeout=2.0):  # type: ignore[attr-defined]
                pass


@pytest.mark.parametrize(
    "text",
    [
        "born 3 May 1980, hired 1 June 2015",
        "birthDate: 3 May 1980; hireDate: 1 June 2015",
        "started on 1 June 2015 (born 3 May 1980)",
    ],
)
def test_a_date_of_work_beside_a_birthday_is_none(find: Find, text: str) -> None:
    assert find(text) == [("3 May 1980", "DATE")]
