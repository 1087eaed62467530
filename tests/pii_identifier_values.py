# ruff: noqa: E501, SIM905 - tables of templates and values keep a row on a line
"""Values of identifiers, drawn from their published rules and not from the recognizers: check digits are computed here."""

import base64
import hashlib
import ipaddress
import random
import string
from collections.abc import Callable

import phonenumbers

Value = Callable[[random.Random], str]

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VIN_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
_VIN_VALUES = dict(
    zip("ABCDEFGHJKLMNPRSTUVWXYZ", (*range(1, 9), *range(1, 6), 7, *range(9, 10), *range(2, 10)), strict=True)
)
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_BBAN = {
    "DE": "18n", "GB": "4a14n", "FR": "10n11c2n", "ES": "20n", "IT": "1a10n12c", "NL": "4a10n", "BE": "12n",
    "AT": "16n", "CH": "5n12c", "PT": "21n", "IE": "4a14n", "PL": "24n", "SE": "20n", "DK": "14n", "NO": "11n",
    "FI": "14n", "CZ": "20n", "LU": "3n13c", "SA": "2n18c", "AE": "19n", "TR": "5n1n16c", "BR": "23n1a1c", "MT": "4a5n18c",
}  # fmt: skip
PHONE_REGIONS = "US CA GB IE AU NZ DE AT CH FR BE NL LU ES PT IT GR PL CZ HU RO SE NO DK FI IN SG JP KR BR MX ZA TR IL AE AR CL CO".split()


def digits(draw: random.Random, count: int) -> str:
    """Return so many digits, the first of them not 0."""
    return str(draw.randint(1, 9)) + "".join(draw.choices(string.digits, k=count - 1))


def luhn(number: str) -> str:
    """Return ``number`` with its check digit by ISO/IEC 7812."""
    total = 0
    for place, digit in enumerate(reversed(number)):
        doubled = int(digit) * 2 if place % 2 == 0 else int(digit)
        total += doubled - 9 if doubled > 9 else doubled
    return number + str(-total % 10)


def grouped(number: str, sizes: tuple[int, ...], mark: str) -> str:
    """Return ``number`` in groups of ``sizes``."""
    parts, at = [], 0
    for size in sizes:
        parts.append(number[at : at + size])
        at += size
    return mark.join(part for part in (*parts, number[at:]) if part)


def card(draw: random.Random) -> str:
    """Return a card number of an issuer that exists, written as people write one."""
    if draw.random() < 0.25:
        number = luhn(draw.choice(("34", "37")) + digits(draw, 12))
        return draw.choice((number, grouped(number, (4, 6, 5), " "), grouped(number, (4, 6, 5), "-")))
    start = draw.choice(("4", "51", "53", "55", "2221", "6011", "65", "3528"))
    number = luhn(start + "".join(draw.choices(string.digits, k=15 - len(start))))
    mark = draw.choice(("", " ", "-", "."))
    return grouped(number, (4, 4, 4), mark) if mark else number


def track(draw: random.Random) -> str:
    """Return the second track of a magnetic stripe."""
    number = luhn("4" + digits(draw, 14))
    return f";{number}={draw.randint(26, 32)}{draw.randint(1, 12):02}101{digits(draw, 10)}?"


def cvv(draw: random.Random) -> str:
    """Return a card security code."""
    return digits(draw, draw.choice((3, 3, 4)))


def expiry(draw: random.Random) -> str:
    """Return the month a card expires."""
    month, year = f"{draw.randint(1, 12):02}", draw.randint(26, 35)
    return draw.choice((f"{month}/{year}", f"{month}/20{year}", f"{month}-{year}", f"{month}/{year}"))


def iban(draw: random.Random) -> str:
    """Return an IBAN with the right check sum, in one piece, in fours or in lower case."""
    country = draw.choice(sorted(_BBAN))
    kinds = {"n": string.digits, "a": string.ascii_uppercase, "c": string.digits + string.ascii_uppercase}
    bban, count = "", ""
    for character in _BBAN[country]:
        if character.isdigit():
            count += character
        else:
            bban += "".join(draw.choices(kinds[character], k=int(count)))
            count = ""
    check = 98 - int("".join(str(int(c, 36)) for c in bban + country + "00")) % 97
    whole = f"{country}{check:02}{bban}"
    fours = tuple([4] * (len(whole) // 4))
    return draw.choice(
        (
            whole,
            grouped(whole, fours, " "),
            grouped(whole, fours, " "),
            grouped(whole, fours, "-"),
            whole.lower(),
        )
    )


def bic(draw: random.Random) -> str:
    """Return the shape of a BIC with a country that exists."""
    bank = "".join(draw.choices(string.ascii_uppercase, k=4))
    country = draw.choice("DE FR GB US NL IT ES CH AT BE IN JP SG BR".split())
    return f"{bank}{country}{draw.choice(('FF', '2L', 'PP', '33', 'MM', '22'))}{draw.choice(('', 'X' * 3, '500', '123'))}"


def aba(draw: random.Random) -> str:
    """Return an American routing number."""
    body = draw.choice(("02", "03", "11", "12", "26", "32")) + digits(draw, 6)
    total = sum(weight * int(d) for weight, d in zip((3, 7, 1, 3, 7, 1, 3, 7), body, strict=True))
    return f"{body}{-total % 10}"


def routing(draw: random.Random) -> str:
    """Return a bank's branch in one of the national forms."""
    ifsc = "".join(draw.choices(string.ascii_uppercase, k=4)) + "0" + digits(draw, 6)
    return draw.choice(
        (
            aba(draw),
            aba(draw),
            grouped(digits(draw, 6), (2, 2), "-"),
            grouped(digits(draw, 6), (3,), "-"),
            ifsc,
        )
    )


def email(draw: random.Random) -> str:
    """Return an e-mail address: plain, with a tag, of a private network, with letters beyond ASCII."""
    name = draw.choice(
        ("jane.doe", "j_doe42", "o'neil", "max+news", "büro", "li-wei", "a", "first.middle.last", "x99")
    )
    host = draw.choice(
        (
            "example.com",
            "mail.example.co.uk",
            "corp.internal",
            "bücher.example",
            "sub.dept.example.org",
            "example.museum",
        )
    )
    return f"{name}{draw.choice(('', digits(draw, 2)))}@{host}"


def phone(draw: random.Random) -> str:
    """Return a number valid in its country, in one of the four formats of the number plans, at times with an extension."""
    region = draw.choice(PHONE_REGIONS)
    kind = draw.choice((phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE))
    example = phonenumbers.example_number_for_type(region, kind) or phonenumbers.example_number(region)
    formats = phonenumbers.PhoneNumberFormat
    for _ in range(20):
        national = phonenumbers.national_significant_number(example)
        cut = min(4, len(national) - 3)
        changed = national[:-cut] + "".join(draw.choices(string.digits, k=cut))
        number = phonenumbers.parse(f"+{example.country_code}{changed}")
        if phonenumbers.is_valid_number(number):
            break
    style = draw.choice(
        (
            formats.INTERNATIONAL,
            formats.INTERNATIONAL,
            formats.NATIONAL,
            formats.NATIONAL,
            formats.E164,
            formats.RFC3966,
        )
    )
    written = phonenumbers.format_number(number, style).removeprefix("tel:")
    if draw.random() < 0.15:
        written += draw.choice((" ext. ", " x", " Ext ", " extension ", ", ext. ")) + digits(draw, 3)
    return written


def ip(draw: random.Random) -> str:
    """Return an address of the internet protocol, version 4 or 6."""
    if draw.random() < 0.6:
        return str(ipaddress.IPv4Address(draw.randrange(2**24, 2**32 - 2**29)))
    address = ipaddress.IPv6Address((0x20010DB8 << 96) + (draw.getrandbits(64) << draw.choice((0, 0, 32))))
    return draw.choice((str(address), address.exploded, str(address).upper()))


def mac(draw: random.Random) -> str:
    """Return a hardware address in one of its three forms."""
    raw = f"{draw.getrandbits(48):012x}"
    pairs = [raw[at : at + 2] for at in range(0, 12, 2)]
    return draw.choice((":".join(pairs), "-".join(pairs).upper(), f"{raw[:4]}.{raw[4:8]}.{raw[8:]}"))


def imei(draw: random.Random) -> str:
    """Return the number of a mobile device."""
    number = luhn("35" + digits(draw, 12))
    return draw.choice((number, grouped(number, (2, 6, 6), "-"), grouped(number, (2, 6, 6), " ")))


def device(draw: random.Random) -> str:
    """Return what identifies a device or its card: serial numbers, IMSI, ICCID."""
    letters = "".join(draw.choices(string.ascii_uppercase, k=4))
    return draw.choice((f"{letters}{digits(draw, 6)}", f"SN-{digits(draw, 8)}", f"C02{letters}{digits(draw, 3)}{letters[:2]}",
                        f"310150{digits(draw, 9)}", luhn("8901" + digits(draw, 14))))  # fmt: skip


def vin(draw: random.Random) -> str:
    """Return the number of a vehicle with its North American check digit."""
    letters = _VIN_LETTERS + string.digits
    body = (
        draw.choice(("1HG", "2T1", "3VW", "4T1", "5YJ", "JH4", "WBA"))
        + "".join(draw.choices(letters, k=8))
        + digits(draw, 6)
    )
    total = sum(
        weight * (int(c) if c.isdigit() else _VIN_VALUES[c])
        for weight, c in zip(_VIN_WEIGHTS, body, strict=True)
    )
    check = "X" if total % 11 == 10 else str(total % 11)
    return f"{body[:8]}{check}{body[9:]}"


def plate(draw: random.Random) -> str:
    """Return a licence plate of one of the larger countries."""
    two, three = ("".join(draw.choices("ABCDEFGHJKLMNPRSTUVWXYZ", k=count)) for count in (2, 3))
    return draw.choice((f"{three}-{digits(draw, 4)}", f"{three} {digits(draw, 4)}", f"{digits(draw, 1)}{three}{digits(draw, 3)}",
                        f"{two}{digits(draw, 2)} {three}", f"B-{two} {digits(draw, 4)}", f"{two}-{digits(draw, 3)}-{two}",
                        f"{digits(draw, 4)} {three}"))  # fmt: skip


def number_of_person(draw: random.Random) -> str:
    """Return what organizations number people with: digits, with letters in front, with dashes."""
    letters = "".join(draw.choices(string.ascii_uppercase, k=draw.choice((1, 2, 3))))
    return draw.choice((digits(draw, draw.randint(5, 10)), f"{letters}{digits(draw, 6)}", f"{letters}-{digits(draw, 5)}",
                        f"{digits(draw, 4)}-{digits(draw, 3)}", f"{letters}-{draw.randint(2019, 2026)}-{digits(draw, 5)}",
                        f"00{digits(draw, 6)}"))  # fmt: skip


def dea(draw: random.Random) -> str:
    """Return the number under which a prescriber is registered."""
    number = digits(draw, 6)
    total = sum(map(int, number[0::2])) + 2 * sum(map(int, number[1::2]))
    return f"{draw.choice('ABFGMP')}{draw.choice(string.ascii_uppercase)}{number}{total % 10}"


def npi(draw: random.Random) -> str:
    """Return an American provider's number."""
    body = draw.choice("12") + "".join(draw.choices(string.digits, k=8))
    return luhn("80840" + body)[5:]


def npi_or_dea(draw: random.Random) -> str:
    """Return a registration that carries a check digit."""
    return draw.choice((dea, npi))(draw)


def ssn(draw: random.Random) -> str:
    """Return a social security number."""
    whole = f"{draw.choice((draw.randint(100, 665), draw.randint(667, 899)))}{draw.randint(1, 99):02}{draw.randint(1, 9999):04}"
    return draw.choice(
        (grouped(whole, (3, 2), "-"), grouped(whole, (3, 2), "-"), grouped(whole, (3, 2), " "), whole)
    )


def coordinates(draw: random.Random) -> str:
    """Return latitude and longitude."""
    latitude, longitude = draw.uniform(-85, 85), draw.uniform(-179, 179)
    minutes = (f"{abs(int(latitude))}°{draw.randint(0, 59)}'{draw.randint(0, 59)}\"{'N' if latitude > 0 else 'S'} "
               f"{abs(int(longitude))}°{draw.randint(0, 59)}'{draw.randint(0, 59)}\"{'E' if longitude > 0 else 'W'}")  # fmt: skip
    return draw.choice((f"{latitude:.6f}, {longitude:.6f}", f"{latitude:.5f},{longitude:.5f}", minutes,
                        f"{abs(latitude):.4f}° {'N' if latitude > 0 else 'S'}, {abs(longitude):.4f}° {'E' if longitude > 0 else 'W'}"))  # fmt: skip


def crypto(draw: random.Random) -> str:
    """Return the address of a wallet: Bitcoin in two forms, Litecoin, Ethereum, Monero, Solana."""
    body = draw.randbytes(20)
    return draw.choice((_base58check(b"\0" + body), _base58check(b"\5" + body), _base58check(b"\x30" + body), _segwit("bc", body),
                        "0x" + body.hex(), "4" + "".join(draw.choices(_BASE58, k=94)), _base58(draw.randbytes(32))))  # fmt: skip


def _base58check(raw: bytes) -> str:
    return _base58(raw + hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4])


def _base58(raw: bytes) -> str:
    number, written = int.from_bytes(raw), ""
    while number:
        number, rest = divmod(number, 58)
        written = _BASE58[rest] + written
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + written


def _segwit(prefix: str, program: bytes) -> str:
    """Return a Bech32 address of version 0 (BIP 173)."""
    bits = "".join(f"{byte:08b}" for byte in program)
    values = [0, *(int(bits[at : at + 5], 2) for at in range(0, len(bits), 5))]
    check = 1
    for value in [*(ord(c) >> 5 for c in prefix), 0, *(ord(c) & 31 for c in prefix), *values, *[0] * 6]:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= generator if top >> place & 1 else 0
    check ^= 1
    letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    return f"{prefix}1{''.join(letters[v] for v in (*values, *(check >> 5 * (5 - place) & 31 for place in range(6))))}"


def password(draw: random.Random) -> str:
    """Return a password as people choose or programs make one."""
    word = draw.choice(("Summer", "dragon", "Welcome", "qwerty", "Blue-Sky", "tr0ub4dor", "Hunter"))
    made = base64.urlsafe_b64encode(draw.randbytes(9)).decode()
    return draw.choice(
        (f"{word}{digits(draw, 4)}!", f"{word}@{digits(draw, 2)}", f"{word}#{digits(draw, 3)}x", f"{made}7$")
    )


def pin(draw: random.Random) -> str:
    """Return a secret number."""
    return digits(draw, draw.choice((4, 4, 6)))


def username(draw: random.Random) -> str:
    """Return the name of an account."""
    first, last = (
        draw.choice(("jane", "omar", "li", "sven", "maria")),
        draw.choice(("doe", "khan", "wei", "berg", "silva")),
    )
    return draw.choice(
        (
            f"{first[0]}{last}{digits(draw, 2)}",
            f"{first}_{last}",
            f"{first}.{last}{digits(draw, 1)}",
            f"{last}{digits(draw, 4)}",
        )
    )
