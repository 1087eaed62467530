"""Texts to compare engines of detection on: personal data in running text, mutated, and strings drawn from patterns."""

import random
import re
import sys
from collections.abc import Callable
from re import _parser  # type: ignore[attr-defined]
from typing import Any

WORDS = [
    "please",
    "call",
    "my",
    "phone",
    "number",
    "is",
    "card",
    "email",
    "SSN",
    "passport",
    "no",
    "wallet",
    "bank",
    "account",
    "IBAN",
    "see",
    "driver",
    "license",
    "mac",
    "address",
    "date",
    "of",
    "birth",
    "the",
    "id",
    "order",
    "status",
    "open",
    "pending",
    "report",
    "customer",
    "said",
    "that",
    "it",
    "was",
    "sent",
    "on",
    "Monday",
    "and",
    "nothing",
    "else",
    "happened",
]
ODD = "0123456789" * 4 + "abcdefXYZ -.:/@()[]+_'\"<>,;#\n\té٣ſKİıー．－(\u00a0\u2003€😀中"


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(count))


def _card(rng: random.Random) -> str:
    body = [4, *(rng.randrange(10) for _ in range(14))]
    total = sum(digit if place % 2 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(body))
    card = "".join(map(str, [*body, -total % 10]))
    return rng.choice([card, "-".join(card[place : place + 4] for place in range(0, 16, 4))])


def _iban(rng: random.Random) -> str:
    account = "37040044" + _digits(rng, 10)
    iban = f"DE{98 - int(account + '131400') % 97:02d}{account}"
    return rng.choice(
        [iban, " ".join(iban[place : place + 4] for place in range(0, 22, 4)), "x " + iban.lower()]
    )


PIECES: tuple[Callable[[random.Random], str], ...] = (
    _card,
    _iban,
    lambda rng: f"{rng.choice(WORDS)}.{rng.choice(WORDS)}@example.{rng.choice(['com', 'org', 'co.uk', 'x'])}",
    lambda rng: f"({rng.randint(201, 989)}) {rng.randint(200, 999)}-{_digits(rng, 4)}",
    lambda rng: f"+{rng.randint(1, 99)} {_digits(rng, 3)} {_digits(rng, 3)} {_digits(rng, 4)}",
    lambda rng: f"{_digits(rng, 3)}-{_digits(rng, 2)}-{_digits(rng, 4)}",
    lambda rng: ".".join(str(rng.randrange(256)) for _ in range(4)),
    lambda rng: ":".join(f"{rng.randrange(65536):x}" for _ in range(8)),
    lambda rng: ":".join(f"{rng.randrange(256):02X}" for _ in range(6)),
    lambda rng: f"https://www.{rng.choice(WORDS)}.com/{rng.choice(WORDS)}?q={_digits(rng, 3)}",
    lambda _rng: "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    lambda rng: rng.choice("ABCDEFG") + _digits(rng, 7),
    lambda rng: f"19{_digits(rng, 2)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}T10:20:30Z",
    lambda rng: (
        f'{{"id": {_digits(rng, 7)}, "amount": {_digits(rng, 4)}.{_digits(rng, 2)}, "tags": ["a", "b"]}}'
    ),
    lambda rng: _digits(rng, rng.randint(4, 18)),
)


def running_text(rng: random.Random, pieces: int) -> str:
    """Return words with personal data between them."""
    parts = []
    for _ in range(pieces):
        parts += rng.choices(WORDS, k=rng.randint(0, 5))
        parts.append(rng.choice(PIECES)(rng))
    return rng.choice([" ", " ", ", ", "\n", "\t"]).join(parts)


def mutated(rng: random.Random, text: str) -> str:
    """Return ``text`` with a few characters added, lost, changed or doubled."""
    found = list(text)
    for _ in range(rng.choice([0, 1, 3, 10, 30])):
        place, kind = rng.randrange(len(found) + 1), rng.random()
        if kind < 0.4:
            found.insert(place, rng.choice(ODD))
        elif kind < 0.7 and found:
            found.pop(place % len(found))
        elif kind < 0.9 and found:
            found[place % len(found)] = rng.choice(ODD)
        else:
            found[place:place] = found[place : place + 20]
    return "".join(found)


def some_text(rng: random.Random, most: int = 8) -> str:
    """Return any of the kinds of texts, of ``most`` sentences or some more symbols."""
    if rng.random() < 0.8:
        return mutated(rng, running_text(rng, rng.randint(1, most)))
    return "".join(rng.choice(ODD) for _ in range(rng.randint(1, 19 * most)))


def drawn(pattern: str, rng: random.Random) -> str:
    """Return a string that ``pattern`` describes; look-arounds are ignored, so it may not match after all."""
    tree = _parser.parse(pattern.replace("(?i)", ""))
    return "".join(_drawn(tree, rng, {}))


def _drawn(tree: Any, rng: random.Random, groups: dict[int, str]) -> list[str]:
    return [_node(str(kind), argument, rng, groups) for kind, argument in tree]


def _node(kind: str, argument: Any, rng: random.Random, groups: dict[int, str]) -> str:  # noqa: PLR0911 - one for each kind of node
    match kind:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return "x" if argument != ord("x") else "y"
        case "ANY":
            return "a"
        case "IN":
            return _member(argument, rng)
        case "BRANCH":
            return "".join(_drawn(rng.choice(argument[1]), rng, groups))
        case "SUBPATTERN":
            groups[argument[0]] = "".join(_drawn(argument[3], rng, groups))
            return groups[argument[0]]
        case "ATOMIC_GROUP":
            return "".join(_drawn(argument, rng, groups))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, inner = argument
            times = rng.randint(least, min(int(most), least + 3))
            return "".join("".join(_drawn(inner, rng, groups)) for _ in range(times))
        case "GROUPREF":
            return groups.get(argument, "")
        case _:
            return ""


def _member(items: Any, rng: random.Random) -> str:
    pattern = re.compile("[" + "".join(_item(str(kind), argument) for kind, argument in items) + "]")
    allowed = [chr(code) for code in range(32, 127) if pattern.match(chr(code))]
    if not allowed:
        allowed = [chr(code) for code in range(127, min(0x11000, sys.maxunicode)) if pattern.match(chr(code))]
    return rng.choice(allowed)


def _item(kind: str, argument: Any) -> str:
    match kind:
        case "NEGATE":
            return "^"
        case "LITERAL":
            return re.escape(chr(argument))
        case "RANGE":
            return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
        case _:
            letter = argument.name.rsplit("_", 1)[1][0].lower()
            return "\\" + (letter.upper() if "_NOT_" in argument.name else letter)
