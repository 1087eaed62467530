"""Identifiers of the south are found beside the initials by which local mails name them, and nowhere else."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.search.analyzer import Analyzer

NAMED = [
    ("My BVN is {} and the account is closed.", "22412345678"),
    ("NIN: {}", "48210937465"),
    ("Please pay into NUBAN: {}", "2034567891"),
    ("Huduma Namba {}", "123456789"),
    ("KRA PIN {}", "A012345678Z"),
    ("Ghana Card {}", "GHA-712345678-0"),
    ("SSNIT {}", "C018207190014"),
    ("NIDA {}", "19900101-12345-00001-23"),
    ("Iqama {}, valid until May", "2123456789"),
    ("Civil ID {}", "290010112345"),
    ("QID {}", "29035612345"),
    ("CNIC {}", "42101-1234567-1"),
    ("my NIC no is {}", "199123456789"),
    ("NIC {}", "912345678V"),
    ("UAN {}", "100123456789"),
    ("UPI: {}", "ravi.kumar@okhdfcbank"),
    ("NIK saya {}, mohon dicek.", "3174052505900003"),
    ("No. KTP {}", "3174052505900003"),
    ("Nomor BPJS {}", "0001234567891"),
    ("MST: {}", "0312345678"),
    ("Số CCCD: {}", "079203001234"),
    ("SSS number {}", "34-1234567-8"),
    ("PhilHealth no. {}", "12-345678901-2"),
    ("PhilSys number {}", "1234-5678-9012-3456"),
    ("Pag-IBIG MID {}", "1212-3456-7890"),
    ("MyKad {}", "900101-14-5678"),
    ("DPI {}", "2345 67890 0101"),
    ("Identidad {}", "0801-1990-12345"),
    ("Cédula de identidad {}", "V-12345678"),
    ("RUC {}", "10456789123"),
    ("CCI {}", "002-193-001234567890-12"),
    ("Chave PIX {}", "11987654321"),
    ("número de utente {}", "123456789"),
]


def hidden(analyzer: Analyzer, text: str) -> str:
    spans = analyzer.analyze(text, DetectionOptions(names="fast"))
    covered = {place for span in spans for place in range(span.start, span.end)}
    return "".join("*" if place in covered else letter for place, letter in enumerate(text))


@pytest.mark.parametrize(("text", "value"), NAMED)
def test_a_number_is_hidden_beside_its_name(analyzer: Analyzer, text: str, value: str) -> None:
    assert value not in hidden(analyzer, text.format(value))
    assert hidden(analyzer, text.format(value)).count("*") >= sum(map(str.isalnum, value))


@pytest.mark.parametrize(
    "value", ["22412345678", "A012345678Z", "42101-1234567-1", "3174052505900003", "900101-14-5678"]
)
def test_without_its_name_it_stays(analyzer: Analyzer, value: str) -> None:
    text = f"The pump with article {value} was replaced, and the valve tested."
    assert hidden(analyzer, text) == text


@pytest.mark.parametrize("text", ["eth0 is a NIC of 10 Gbit", "print it at 300 dpi", "The tin weighs 400 g."])
def test_the_same_letters_beside_other_numbers_name_nothing(analyzer: Analyzer, text: str) -> None:
    assert hidden(analyzer, text) == text
