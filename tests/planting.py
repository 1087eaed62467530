"""Values that identify somebody, planted in texts, JSON and encoded documents, so that a test can look for them."""

import base64
import json
import random
from dataclasses import dataclass, field
from typing import Any, Final

_FIRST: Final = ("amalia", "bjorn", "chidi", "dolores", "eamon", "farida", "goran", "hatice")
_HOSTS: Final = ("example.net", "mail.example.org", "post.example.com", "kunde.example.de")
_SENTENCES: Final = (
    "Please write to {} before noon.",
    "The contact for this matter is {}.",
    "Forward the file to {} and close the ticket.",
    "{} asked for a copy of the contract.",
    "We never heard back from {}, so try again.",
)
_CHARSETS: Final = ("utf-8", "latin-1", "utf-16-le", "utf-16-be", "utf-32-le")
_CARD_BEGINNING: Final = "4929"


@dataclass
class Planter:
    """Draws planted texts; ``values`` must not be seen after redaction, ``kept`` are where nothing may change."""

    draw: random.Random
    values: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def value(self) -> str:
        """Return a value that detection finds wherever it stands: no test of detection, but of what is scanned."""
        kind = self.draw.randrange(3)
        digits = "".join(str(self.draw.randrange(10)) for _ in range(11))
        if kind == 0:
            return f"{self.draw.choice(_FIRST)}.{digits[:5]}@{self.draw.choice(_HOSTS)}"
        if kind == 1:
            return _with_check_digit(_CARD_BEGINNING + digits)
        return _iban("DE", f"{digits}{digits[:7]}"[:18])

    def text(self) -> str:
        """Return a sentence with a value that redaction must change."""
        value = self.value()
        self.values.append(value)
        return self.draw.choice(_SENTENCES).format(value)

    def kept_text(self) -> str:
        """Return a sentence with a value where nothing may change, as under a signature."""
        value = self.value()
        self.kept.append(value)
        return self.draw.choice(_SENTENCES).format(value)

    def kept_address(self) -> str:
        """Return an address with a value in its query; it is reported."""
        value = f"{self.draw.choice(_FIRST)}.{self.draw.randrange(10**5)}@{self.draw.choice(_HOSTS)}"
        self.kept.append(value)
        return f"https://files.example.com/get?for={value}"

    def json(self) -> str:
        """Return JSON text with values, also in JSON inside it."""
        inner = json.dumps({"note": self.text(), "more": [1, True, None]})
        return json.dumps({"to": self.text(), "deep": {"list": [self.text()], "again": inner}})

    def data(self) -> dict[str, Any]:
        """Return the arguments or the result of a tool, with members named as they come."""
        return {
            "id": self.text(),
            "type": self.text(),
            "rows": [{"name": self.text(), "role": "x", "n": 5}, [self.text()]],
            "empty": None,
            "flag": True,
            "ratio": 0.25,
        }

    def code(self, charset: str = "utf-8", before: str = "", after: str = "") -> str:
        """Return an encoded text."""
        return base64.b64encode(f"{before}Grüße: {self.text()}{after}".encode(charset)).decode()

    def picture(self) -> str:
        """Return an encoded picture, which nobody can read."""
        return base64.b64encode(b"\x89PNG\r\n\x1a\n" + self.draw.randbytes(300)).decode()


def decoded_everywhere(value: Any) -> str:
    """Return everything that a reader of ``value`` can see, also in what is encoded."""
    written = [json.dumps(value, ensure_ascii=False)]
    written += [text for string in _strings(value) for text in _readings(string)]
    return "\n".join(written)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [string for child in children for string in _strings(child)]


def _readings(string: str) -> list[str]:
    code = string.split(";base64,", 1)[-1]
    try:
        data = base64.b64decode(code, validate=True)
    except ValueError:
        return []
    return [data.decode(charset, "replace") for charset in _CHARSETS]


def _with_check_digit(digits: str) -> str:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 == 0 else 1)
        total += number - 9 if number > 9 else number
    return f"{digits}{-total % 10}"


def _iban(country: str, account: str) -> str:
    rearranged = account + "".join(str(ord(letter) - 55) for letter in country) + "00"
    return f"{country}{98 - int(rearranged) % 97:02d}{account}"
