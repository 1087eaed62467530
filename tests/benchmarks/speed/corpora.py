"""Texts of three kinds to time detection on: prose, prose full of personal data, JSON; the same for the same seed."""

import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pydoc_data.topics import topics

from tests.benchmarks.speed.texts import FIRST, LAST

CUES = (
    *(
        "contact",
        "my phone number is",
        "card",
        "email",
        "SSN",
        "passport no",
        "wallet",
        "bank account",
        "IBAN",
        "IP",
    ),
    *("see", "driver license", "call", "mac address", "date of birth", "the id"),
)
BITCOIN = "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@lru_cache(maxsize=1)
def vocabulary() -> tuple[str, ...]:
    """Return some thousand English words: those of the reference that Python carries along."""
    return tuple(sorted(set(re.findall(r"\b[a-z]{2,12}\b", " ".join(topics.values())))))


def sentence(draw: random.Random, words: int = 0) -> str:
    """Return words in no sense, with a capital and a full stop, as Faker makes sentences."""
    chosen = draw.choices(vocabulary(), k=words or draw.randint(6, 16))
    return " ".join(chosen).capitalize() + "."


def name(draw: random.Random) -> str:
    """Return a first and a last name."""
    return f"{draw.choice(FIRST)} {draw.choice(LAST)}"


def email(draw: random.Random) -> str:
    """Return an e-mail address."""
    host = draw.choice(vocabulary())
    return f"{name(draw).lower().replace(' ', '.')}{draw.randrange(100)}@{host}.{draw.choice(('com', 'net', 'org'))}"


def digits(draw: random.Random, count: int) -> str:
    """Return that many digits."""
    return "".join(draw.choices("0123456789", k=count))


def card(draw: random.Random) -> str:
    """Return a payment card number with the right last digit, in one piece or in four."""
    number = draw.choice(("4", "51", "6011"))
    number += digits(draw, 15 - len(number))
    doubled = (int(digit) * (2 - place % 2) for place, digit in enumerate(number))
    number += str(-sum(value - 9 * (value > 9) for value in doubled) % 10)
    return number if draw.random() < 0.5 else "-".join(number[i : i + 4] for i in range(0, 16, 4))


def iban(draw: random.Random) -> str:
    """Return a German IBAN with the right check digits, in one piece or in groups."""
    account = "37040044" + digits(draw, 10)
    number = f"DE{98 - int(account + '131400') % 97:02d}{account}"
    return number if draw.random() < 0.5 else " ".join(number[i : i + 4] for i in range(0, len(number), 4))


def moment(draw: random.Random) -> datetime:
    """Return a moment of the last fifty years."""
    return datetime(1975, 1, 1, tzinfo=UTC) + timedelta(seconds=draw.randrange(1_600_000_000))


def uuid(draw: random.Random) -> str:
    """Return a random UUID."""
    drawn = f"{draw.getrandbits(128):032x}"
    return "-".join((drawn[:8], drawn[8:12], "4" + drawn[13:16], "a" + drawn[17:20], drawn[20:]))


def octets(draw: random.Random) -> str:
    """Return an IPv4 address."""
    return ".".join(str(draw.randrange(1, 255)) for _ in range(4))


KINDS: tuple[Callable[[random.Random], str], ...] = (
    email,
    lambda draw: f"({draw.randint(201, 989)}) {draw.randint(200, 999)}-{draw.randint(1000, 9999)}",
    card,
    lambda draw: f"{draw.randint(100, 665)}-{draw.randint(10, 99)}-{draw.randint(1000, 9999)}",
    iban,
    octets,
    lambda draw: ":".join(f"{draw.getrandbits(16):x}" for _ in range(8)),
    lambda draw: (
        f"https://{draw.choice(vocabulary())}.com/{draw.choice(vocabulary())}/{draw.choice(vocabulary())}"
    ),
    lambda _: BITCOIN,
    lambda draw: draw.choice("ABCDEFG") + digits(draw, 7),
    lambda draw: "sk-" + "".join(draw.choices(LETTERS + LETTERS.upper() + "0123456789", k=40)),
    lambda draw: f"{moment(draw):%Y-%m-%d}",
    lambda draw: f"+{draw.randint(1, 49)} " + " ".join(str(draw.randint(100, 999)) for _ in range(3)),
    lambda draw: ":".join(f"{draw.getrandbits(8):02x}" for _ in range(6)),
    uuid,
    name,
)
"""What stands in dense text, one of each kind as often as any other."""


def prose(size: int, seed: int, density: float = 0.05) -> str:
    """Return paragraphs; ``density`` is the share of them with personal data, and how much there is in one."""
    draw, parts, length = random.Random(seed), [], 0
    while length < size:
        words = " ".join(sentence(draw) for _ in range(4)).split(" ")
        if draw.random() < density:
            for _ in range(draw.randint(1, max(1, int(density * 6)))):
                words.insert(draw.randint(0, len(words)), f"{draw.choice(CUES)} {draw.choice(KINDS)(draw)}")
        part = " ".join(words) + draw.choice(("\n\n", " "))
        parts.append(part)
        length += len(part)
    return "".join(parts)[:size]


def dense(size: int, seed: int) -> str:
    """Return prose with several pieces of personal data in every paragraph."""
    return prose(size, seed, 1.0)


def records(size: int, seed: int) -> str:
    """Return the JSON of an API's answer: identifiers, times, numbers, here and there an address or a phone number."""
    draw, rows, length = random.Random(seed), [], 0
    while length < size:
        row = {
            "id": draw.randint(1, 10**7),
            "uuid": uuid(draw),
            "name": name(draw),
            "status": draw.choice(("open", "closed", "pending")),
            "created_at": f"{moment(draw):%Y-%m-%dT%H:%M:%SZ}",
            "amount": round(draw.random() * 1e4, 2),
            "tags": draw.choices(vocabulary(), k=3),
            "path": "/srv/app/" + "/".join(draw.choices(vocabulary(), k=2)),
            "version": f"{draw.randint(0, 9)}.{draw.randint(0, 30)}.{draw.randint(0, 9)}",
            "description": sentence(draw, 12),
            "score": draw.random(),
            "metrics": [draw.randint(0, 10_000) for _ in range(6)],
        }
        if draw.random() < 0.3:
            row["email"] = email(draw)
        if draw.random() < 0.2:
            row["client_ip"] = octets(draw)
        if draw.random() < 0.1:
            row["phone"] = f"+1 {draw.randint(201, 989)}-{draw.randint(200, 999)}-{draw.randint(1000, 9999)}"
        rows.append(row)
        length += len(json.dumps(row)) + 2
    return json.dumps({"ok": True, "results": rows})[:size]


CORPORA: dict[str, Callable[[int, int], str]] = {"prose": prose, "dense": dense, "JSON": records}
