"""Each kind of identifier: what is found, with and without a word of context, and what is not."""

import pytest

from app.engines.pii.ground.labels import LABELS, NAME_LABELS
from tests.unit.engines.pii.conftest import Find

PATTERN_LABELS = LABELS - NAME_LABELS - {"URL", "UUID", "DATE", "SECRET"}

FOUND = [
    ("nothing but 123-45-6789 here", "123-45-6789", "SSN"),
    ("nothing but 987-65-4321 here", "987-65-4321", "SSN"),
    ("078-05-1120 078-05-1121", "078-05-1121", "SSN"),
    ("spaced 219 09 9999 form", "219 09 9999", "SSN"),
    ("social security number 219099999", "219099999", "SSN"),
    ("my phone is 074-75-0097", "074-75-0097", "SSN"),
    ("ssn: 219099999", "219099999", "SSN"),
    ("write user@corp.internal now", "user@corp.internal", "EMAIL"),
    ("write a.b+c@mail.example now", "a.b+c@mail.example", "EMAIL"),
    ("write x@y.test.", "x@y.test", "EMAIL"),
    ("write root@printer.local", "root@printer.local", "EMAIL"),
    ("'john@example.com'", "john@example.com", "EMAIL"),
    ("<o'brien@example.com>", "o'brien@example.com", "EMAIL"),
    ("mailto:john@example.com?subject=x", "john@example.com", "EMAIL"),
    ("john@example.com_old", "john@example.com_old", "EMAIL"),
    ("josé@exämple.de", "josé@exämple.de", "EMAIL"),
    ("a@b.co,c@d.co;e@f.co", "c@d.co", "EMAIL"),
    ("pay 4111 1111 1111 1111 now", "4111 1111 1111 1111", "CARD"),
    ("pay 4111-1111-1111-1111 now", "4111-1111-1111-1111", "CARD"),
    ("pay 5500005555555559 378282246310005", "378282246310005", "CARD"),
    ("pay 2223003122003222", "2223003122003222", "CARD"),
    ("1 2 4111 1111 1111 1111 7", "4111 1111 1111 1111", "CARD"),
    ("to DE89 3704 0044 0532 0130 00 please", "DE89 3704 0044 0532 0130 00", "IBAN"),
    ("pay1 wire AB12 word DE89370400440532013000", "DE89370400440532013000", "IBAN"),
    ("GB29NWBK60161331926819 and gb29 nwbk 6016 1331 9268 19", "gb29 nwbk 6016 1331 9268 19", "IBAN"),
    ("IBAN DE00370400440532013000", "DE00370400440532013000", "IBAN"),
    ("from 10.0.0.1.", "10.0.0.1", "IP"),
    ("from 2001:db8::8a2e:370:7334", "2001:db8::8a2e:370:7334", "IP"),
    ("from fe80::1%eth0", "fe80::1%eth0", "IP"),
    ("send to 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "CRYPTO"),
    (
        "send to bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
        "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
        "CRYPTO",
    ),
    ("0x52908400098527886E0F7030069857D2E4169EE7", "0x52908400098527886E0F7030069857D2E4169EE7", "CRYPTO"),
    ("passport number 123456789", "123456789", "PASSPORT"),
    ("passport C01234567", "C01234567", "PASSPORT"),
    ("DEA AB1234563", "AB1234563", "MEDICAL"),
    ("NHS number 943 476 5919", "943 476 5919", "NHS"),
    ("bank account 12345678", "12345678", "BANK_ACCOUNT"),
    ("account number: 000123456789", "000123456789", "BANK_ACCOUNT"),
    ("driver's license D1234567", "D1234567", "LICENSE"),
    ("routing 021000021", "021000021", "ROUTING"),
    ("zip 02110-1301", "02110-1301", "POSTCODE"),
    ("00:1A:2B:3C:4D:5E", "00:1A:2B:3C:4D:5E", "MAC"),
    ("NINO AB123456C", "AB123456C", "NINO"),
    ("ABCPE1234F", "ABCPE1234F", "PAN"),
    ("PESEL 44051401359", "44051401359", "PESEL"),
    ("12345678Z", "12345678Z", "NIF"),
    ("RSSMRA85T10A562S", "RSSMRA85T10A562S", "FISCAL_CODE"),
    ("131052-308T", "131052-308T", "HETU"),
    ("S1234567D", "S1234567D", "NRIC"),
    ("USt-IdNr. DE123456789", "DE123456789", "VAT"),
]

PHONES = [
    "+1-202-555-0173",
    "(212) 555-0143",
    "212-555-0143",
    "212.555.0143",
    "1-800-555-0199",
    "+44 20 7946 0958",
    "+44 (0)20 7946 0958",
    "020 7946 0958",
    "0044 20 7946 0958",
    "+49 30 901820",
    "030 12345678",
    "(02328) 60129",
    "86 6232-8601",
    "01 42 68 53 00",
    "+33 1 42 68 53 00",
    "+7 495 123-45-67",
    "+1 (212) 555-0143 ext. 12",
]

LEFT_ALONE = [
    "order 219099999 shipped",
    "order number 5550143",
    "order 1234567890 of 2024-05-06 10:20",
    "call 4111 1111 1111 1112 wrong",
    "version 2.10.3 and 1.2.3 and OID 1.3.6.1.5.5.7.3",
    "react@18.2.0 @types/node git@ user@",
    "key[1::2] a::b std::vector",
    "555-0143",
    "D1234567",
    "12345678",
    "C01234567",
    "timestamp 1700000000 or 1700000000000",
    "commit 8f14e45fceea167a5a36dedd4bea2543",
    "DE00370400440532013000",
    "size 1024x768, 3.14159, 50%, $1,299.00, 10:30",
    "hunter sells 500 units",
]

SECRETS = [
    ("id AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("password=hunter22;", "hunter22"),
    ('"api_key": "abcd1234efgh"', "abcd1234efgh"),
    ("token: abcdef", "abcdef"),
    ("sk-abcdefghijklmnopqrstuvwxyz123", "sk-abcdefghijklmnopqrstuvwxyz123"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    ),
]


@pytest.mark.parametrize(("text", "what", "label"), FOUND)
def test_an_identifier_is_found(find: Find, text: str, what: str, label: str) -> None:
    assert (what, label) in find(text)


@pytest.mark.parametrize("number", PHONES)
def test_a_phone_number_is_found_whole_in_a_sentence_and_in_a_list(find: Find, number: str) -> None:
    assert find(f"reach us under {number}, please") == [(number, "PHONE")]
    assert find(f'["{number}"]') == [(number, "PHONE")]


def test_a_phone_number_that_happens_to_pass_the_check_of_the_nhs_is_none_of_it(find: Find) -> None:
    assert find("reach us under 943 476 5919") == [("943 476 5919", "PHONE")]


def test_phone_numbers_in_a_row_are_all_found(find: Find) -> None:
    assert [label for _, label in find("212-555-0143 415-555-0100 646-555-0101")] == ["PHONE"] * 3
    assert find("+1-202-555-0173 (212) 555-0143") == [
        ("+1-202-555-0173", "PHONE"),
        ("(212) 555-0143", "PHONE"),
    ]


@pytest.mark.parametrize(
    "text", ["call 555-0143", "phone: 5550143", '"mobile": "2125550143"', "Tel. 98765 43210"]
)
def test_a_short_or_bare_number_is_a_phone_number_beside_its_word(find: Find, text: str) -> None:
    assert [label for _, label in find(text)] == ["PHONE"]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_a_look_alike_is_left_alone(find: Find, text: str) -> None:
    assert find(text, entities=PATTERN_LABELS) == []


@pytest.mark.parametrize(("text", "value"), SECRETS)
def test_strict_finds_secrets_and_of_assignments_only_the_value(find: Find, text: str, value: str) -> None:
    assert (value, "SECRET") in find(text, strict=True)
    assert find(text, entities=frozenset({"SECRET"})) == [(value, "SECRET")]


def test_strict_finds_a_private_key_whole_however_long(find: Find) -> None:
    body = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2] * 180)
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    assert (key, "SECRET") in find(f"here:\n{key}\nthat was it", strict=True)


def test_standard_keeps_secrets(find: Find) -> None:
    assert find("the id is AKIAIOSFODNN7EXAMPLE") == []


def test_camel_case_and_json_names_count_as_context(find: Find) -> None:
    assert ("219099999", "SSN") in find('{"customerSsn": "219099999"}')
    assert ("123456789", "PASSPORT") in find('{"passport_number": "123456789"}')
