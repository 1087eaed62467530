"""One value of each kind of personal data, and every disguise that the matrix of evasions names."""

import base64
import html
import quopri
import unicodedata
from collections.abc import Callable
from urllib.parse import quote

KINDS = {
    "PERSON": ("John Smith", "My name is "),
    "EMAIL": ("john.smith@example.com", "Write to "),
    "PHONE": ("+1 202-555-0143", "My phone number is "),
    "CARD": ("4111-1111-1111-1111", "The credit card is "),
    "SSN": ("219-09-9999", "My SSN is "),
    "IBAN": ("DE89 3704 0044 0532 0130 00", "The IBAN is "),
    "IP": ("192.168.10.41", "The server is "),
}

_ALIKE = dict(zip("aceopxyjiAEIOPCTHKMBSDJ01", "асеорхујіАЕІОРСТНКМВЅᎠЈОӀ", strict=True))
_DIGITS = {"0": "О", "3": "З", "6": "б", "1": "Ӏ"}


def _between(sign: str) -> Callable[[str], str]:
    return sign.join


def _alike(value: str) -> str:
    table = _DIGITS | {"0": "О"} if value[-1].isdigit() and "." not in value else {}
    table = {**{key: look for key, look in _ALIKE.items() if not key.isdigit()}, **table}
    # One of two, as whoever hides a value mixes, so that plain digits and letters stand beside the others.
    return "".join(table.get(char, char) if place % 2 else char for place, char in enumerate(value))


def _wide(value: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in value)


def _bold(value: str) -> str:
    styled = ("MATHEMATICAL BOLD DIGIT", "MATHEMATICAL BOLD SMALL", "MATHEMATICAL BOLD CAPITAL")
    numbers = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")

    def one(char: str) -> str:
        if char.isdigit():
            return unicodedata.lookup(f"{styled[0]} {numbers[int(char)]}")
        return unicodedata.lookup(f"{styled[1 + char.isupper()]} {char.upper()}") if char.isalpha() else char

    return "".join(map(one, value))


def _base64(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _twice(value: str) -> str:
    return _base64(_base64(value))


def _every(form: str) -> Callable[[str], str]:
    return lambda value: "".join(form.format(ord(char)) for char in value)


DISGUISES: dict[str, Callable[[str], str]] = {
    "zero-width space": _between("\u200b"),
    "zero-width joiner": _between("\u200d"),
    "word joiner": _between("\u2060"),
    "soft hyphen": _between("\u00ad"),
    "byte order mark": _between("\ufeff"),
    "variation selector": _between("\ufe0f"),
    "look-alikes": _alike,
    "full width": _wide,
    "bold": _bold,
    "right-to-left mark": _between("\u200f"),
    "reversed": lambda value: f"\u202e{value[::-1]}\u202c",
    "left-to-right override": lambda value: f"\u202d{value}\u202c",
    "isolates": lambda value: f"\u2066{value[:4]}\u2069{value[4:]}",
    "combining mark": _between("\u0336"),
    "tags": lambda value: "".join(chr(0xE0000 + ord(char)) for char in value),
    "en dash": lambda value: value.replace("-", "–").replace(" ", "\u2009").replace(".", "\u2024"),
    "minus": lambda value: value.replace("-", "−").replace(" ", "\u00a0").replace(".", "。"),
    "em dash": lambda value: value.replace("-", "—").replace(" ", "\u2003").replace(".", "．"),
    "base64": _base64,
    "base64 without padding": lambda value: _base64(value).rstrip("="),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(f"value: {value}?".encode()).decode(),
    "base64 twice": _twice,
    "base64 of UTF-16": lambda value: base64.b64encode(value.encode("utf-16-le")).decode(),
    "base64 over lines": lambda value: (
        base64.encodebytes(f"{'Dear all. ' * 6}Here: {value}".encode()).decode().strip()
    ),
    "hexadecimal": lambda value: value.encode().hex(),
    "percent": lambda value: "".join(f"%{ord(char):02X}" for char in value),
    "percent of signs": lambda value: quote(value, safe="").replace("-", "%2D").replace(".", "%2E"),
    "percent twice": lambda value: "".join(f"%25{ord(char):02x}" for char in value),
    "HTML decimal": _every("&#{};"),
    "HTML hexadecimal": _every("&#x{:x};"),
    "HTML twice": _every("&amp;#{};"),
    "HTML names": lambda value: "".join(
        {".": "&period;", "@": "&commat;", "-": "&#45;", " ": "&nbsp;", "+": "&plus;"}.get(
            char, html.escape(char)
        )
        for char in value
    ),
    "JSON": _every("\\u{:04x}"),
    "JSON twice": _every("\\\\u{:04x}"),
    "Python": _every("\\x{:02x}"),
    "quoted-printable": _every("={:02X}"),
    "mail lines": lambda value: quopri.encodestring(f"{value[:5]}".encode()).decode() + "=\n" + value[5:],
    "percent in base64": lambda value: _base64("".join(f"%{ord(char):02X}" for char in value)),
}
