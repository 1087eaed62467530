"""The values that everybody tries first, and the ways to write them so that nobody finds them.

Numbers made at random flatter a detector: these have few kinds of digits, and are in every manual. Sources: the test
numbers that card processors publish; social security numbers that the Social Security Administration has voided for
being in advertisements; the examples of the IBAN registry; numbers that telephone authorities keep for fiction.
"""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

VALUES = {
    "card": (
        "4111111111111111",
        "4242424242424242",
        "4012888888881881",
        "5555555555554444",
        "5105105105105100",
        "2223003122003222",
        "378282246310005",
        "371449635398431",
        "6011111111111117",
        "30569309025904",
        "3530111333300000",
    ),
    "ssn": ("123-45-6789", "219-09-9999", "078-05-1120"),
    "email": ("jane.doe@example.com", "admin@mycompany.co.uk", "max.mustermann@example.de"),
    "iban": (
        "DE89370400440532013000",
        "GB82WEST12345698765432",
        "GB29NWBK60161331926819",
        "FR1420041010050500013M02606",
    ),
    "phone": ("+1 415 555 0132", "+44 20 7946 0958", "+49 30 901820"),
}
CIRCLED = "⓪①②③④⑤⑥⑦⑧⑨"
ARABIC = "٠١٢٣٤٥٦٧٨٩"


def _each(form: str) -> Callable[[str], str]:
    """Return a way to write every character by its code."""
    return lambda value: "".join(form.format(ord(character)) for character in value)


def _digits(signs: str) -> Callable[[str], str]:
    return lambda value: "".join(
        signs[int(character)] if character.isdigit() else character for character in value
    )


def _between(sign: str) -> Callable[[str], str]:
    return sign.join


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _fours(text: str) -> list[str]:
    return [text[start : start + 4] for start in range(0, len(text), 4)]


def _grouped(sign: str) -> Callable[[str], str]:
    return lambda value: sign.join(_fours(value))


ALL: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "zero width": _between("\u200b"),
    "soft hyphens": _between("\u00ad"),
    "isolated right to left": lambda value: f"\u2067{value}\u2069",
    "full width": lambda value: "".join(
        chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in value
    ),
    "entities": _each("&#{:07d};"),
    "hexadecimal entities": _each("&#x{:06x};"),
    "style sheet": _each("\\{:x} "),
    "backslash u": _each("\\u{:04x}"),
    "code points": lambda value: " ".join(f"U+{ord(character):04X}" for character in value),
    "hexadecimal": lambda value: value.encode().hex(),
    "spaced hexadecimal": lambda value: value.encode().hex(" "),
    "bytes of a program": lambda value: " ".join(f"0x{byte:02x}" for byte in value.encode()),
    "decimal": lambda value: " ".join(map(str, value.encode())),
    "decimal with commas": lambda value: ", ".join(map(str, value.encode())),
    "base64": _encoded,
    "spaced base64": lambda value: " ".join(_fours(_encoded(value))),
    "base64 twice": lambda value: _encoded(_encoded(value)),
    "percent": _each("%{:02X}"),
    "quoted printable": _each("={:02X}"),
    "colour": lambda value: f"\x1b[31m{value[:3]}\x1b[1m{value[3:]}\x1b[0m",
    "bell": lambda value: f"{value[:5]}\x07{value[5:]}",
    "private use": lambda value: f"{value[:4]}\ue000{value[4:]}",
    "soft hyphens in base64": lambda value: _encoded("\u00ad".join(value)),
    "bell in base64": lambda value: _encoded(f"{value[:5]}\x07{value[5:]}"),
    "colour in hexadecimal": lambda value: f"{value[:4]}\x1b[31m{value[4:]}".encode().hex(),
    "zero width in spaced hexadecimal": lambda value: "\u200b".join(value).encode().hex(" "),
    "umlaut in bytes of a program": lambda value: " ".join(
        f"0x{byte:02x}" for byte in f"{value} für".encode()
    ),
    "byte order mark in decimal": lambda value: " ".join(map(str, f"\ufeff{value} ok".encode())),
    "full width in a style sheet": lambda value: "".join(
        f"\\{ord(sign) + 0xFEE0 if sign != ' ' else 32:x} " for sign in value
    ),
    "colour in percent": lambda value: "".join(
        f"%{byte:02X}" for byte in f"{value[:4]}\x1b[1m{value[4:]}".encode()
    ),
    "soft hyphens in backslash x": lambda value: "".join(
        f"\\x{byte:02x}" for byte in "\u00ad".join(value).encode()
    ),
    "in Japanese": lambda value: f"番号{value}です",
    "in Arabic": lambda value: f"رقم{value}شكرا",
    "underscores around": lambda value: f"x_{value}_y",
    "literal line break": lambda value: f"a\\n{value}\\tb",
    "array": lambda value: json.dumps(list(value)),
    "tight array": lambda value: json.dumps(list(value), separators=(",", ":")),
}
NUMBERS: dict[str, Callable[[str], str]] = {
    "circled": _digits(CIRCLED),
    "Arabic digits": _digits(ARABIC),
    "mathematical": _digits("".join(map(chr, range(0x1D7CE, 0x1D7D8)))),
}
GROUPS: dict[str, Callable[[str], str]] = {
    "blanks": _grouped(" "),
    "slashes": _grouped("/"),
    "lines": _grouped("\n"),
    "bars": _grouped("|"),
    "dashes": _grouped("-"),
    "dots": _grouped("."),
    "stars": _grouped(" * "),
    "low lines": _grouped("_"),
    "quoted": _grouped('","'),
    "array of groups": lambda value: json.dumps(_fours(value)),
}
OF_KIND: dict[str, dict[str, Callable[[str], str]]] = {
    "card": {
        **GROUPS,
        **NUMBERS,
        "brackets": lambda value: "".join(f"({digit})" for digit in value),
        "spaced": _between(" "),
        "array of numbers": lambda value: json.dumps([int(digit) for digit in value]),
    },
    "ssn": {
        **NUMBERS,
        "slashes": lambda value: value.replace("-", "/"),
        "lines": lambda value: value.replace("-", "\n"),
        "dashes": lambda value: value.replace("-", "\u2013"),
        "dots": lambda value: value.replace("-", "."),
        "brackets": lambda value: "".join(f"[{sign}]" for sign in value),
    },
    "email": {
        "_at_": lambda value: value.replace("@", "_at_").replace(".", "_dot_"),
        "[at]": lambda value: value.replace("@", "[at]").replace(".", "[dot]"),
        "at": lambda value: value.replace("@", " at ").replace(".", " dot "),
        "backslashes": lambda value: value.replace(".", "\\."),
        "line break": lambda value: value.replace("@", "@\n"),
        "spaced": _between(" "),
    },
    "iban": {"blanks": _grouped(" "), "bars": _grouped("|"), "lines": _grouped("\n"), **NUMBERS},
    "phone": NUMBERS,
}
PLACES = ("My number is {} ok", "{}", "Offen ist noch: {}", "- item 3\n- {}\n- item 4")


@dataclass(frozen=True, slots=True)
class Written:
    """A value in a way of writing, in a text; ``around``: what the way itself puts around the value."""

    value: str
    spelling: str
    spelled: str
    place: str
    around: str

    @property
    def text(self) -> str:
        return self.place.format(self.spelled)

    @property
    def name(self) -> tuple[str, str, str]:
        return self.value, self.spelling, self.place


def everything() -> list[Written]:
    """Return every value in every way that fits its kind, in every place."""
    return [
        Written(value, name, spell(value), place, spell(""))
        for kind, values in VALUES.items()
        for value in values
        for name, spell in {**ALL, **OF_KIND[kind]}.items()
        for place in PLACES
    ]


CONTROLS = ("an ordinary sentence", "4111111111111112", "see chapter 12", "version 2.10.4")
"""What is no one's: text, a card number whose check digit is wrong, small numbers."""


def harmless() -> Iterator[Written]:
    """Yield texts that are no one's value, in the ways that any text can be written."""
    for value in CONTROLS:
        for name, spell in ALL.items():
            yield Written(value, name, spell(value), PLACES[0], spell(""))
