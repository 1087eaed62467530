"""Draws the test part for contradictions from its frames: a context of three sentences, and a statement about one."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_FRAMES: Final = Path(__file__).with_name("contradiction_frames.txt")
_SLOT: Final = re.compile(r"\{([A-Z]+)(\d)\}")
_PEOPLE: Final = (
    *("Ingeborg Haugen", "Tomasz Wilk", "Amara Okafor", "Luc Fontaine", "Priya Raman", "Hector Salinas"),
    *("Mirela Popa", "Kenji Mori", "Aoife Byrne", "Samuel Adeyemi", "Greta Lindqvist", "Omar Haddad"),
)
_HOUSES: Final = (
    *("Norvalve", "Hartmann Logistics", "Kestrel Energy", "the Delmar Institute", "Bluefin Foods"),
    *("the Orme Foundation", "Tessera Labs", "Vantage Rail", "the Larkspur Clinic", "Quillon Steel"),
)
_CITIES: Final = (
    "Bergen",
    "Lublin",
    "Cork",
    "Porto",
    "Nagoya",
    "Tampere",
    "Valencia",
    "Ghent",
    "Izmir",
    "Durban",
)
_LANDS: Final = ("Norway", "Portugal", "Kenya", "Chile", "Denmark", "Vietnam", "Morocco", "Estonia")
_MONTHS: Final = ("January", "March", "April", "June", "August", "October", "November")
_DAYS: Final = ("Monday", "Tuesday", "Thursday", "Friday", "Saturday", "Sunday")
_SEASONS: Final = ("spring", "summer", "autumn", "winter")
_QUARTERS: Final = ("first", "second", "third", "fourth")
_SMALL: Final = ("three", "five", "seven", "nine", "eleven")


class Statement(NamedTuple):
    """A statement about a context; ``kind`` is how it was corrupted, empty for a true paraphrase."""

    kind: str
    context: str
    text: str
    source: str


def frames() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return each source sentence with its statements: the kind and the text."""
    made: list[tuple[str, list[tuple[str, str]]]] = []
    for line in _FRAMES.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            made.append((line[2:], []))
        elif line.startswith("+ "):
            made[-1][1].append(("", line[2:]))
        elif line and not line.startswith("#"):
            kind, _, text = line.partition("| ")
            made[-1][1].append((kind, text))
    return made


def statements(each: int) -> Iterator[Statement]:
    """Yield ``each`` drawings of every statement."""
    draw = random.Random("judge contradictions")
    whole = frames()
    for number, (source, some) in enumerate(whole):
        for kind, text in some:
            for _ in range(each):
                values = _values(draw)
                others = [whole[at][0] for at in draw.sample(range(len(whole)), 3) if at != number][:2]
                told = _filled(source, values)
                context = [told, *(_filled(other, _values(draw)) for other in others)]
                draw.shuffle(context)
                yield Statement(kind, " ".join(context), _filled(text, values), told)


def _filled(text: str, values: dict[str, str]) -> str:
    made = _SLOT.sub(lambda slot: values[slot[0][1:-1]], text)
    return made[0].upper() + made[1:]


def _values(draw: random.Random) -> dict[str, str]:
    """Return what stands in the slots; those of one letter differ."""
    lists = {
        "P": _PEOPLE, "O": _HOUSES, "C": _CITIES, "L": _LANDS, "M": _MONTHS, "W": _DAYS, "SE": _SEASONS,
        "Q": _QUARTERS, "S": _SMALL,
    }  # fmt: skip
    values = {
        f"{name}{number}": value
        for name, some in lists.items()
        for number, value in enumerate(draw.sample(some, min(3, len(some))), 1)
    }
    numbers = draw.sample(range(12, 97), 3)
    years = sorted(draw.sample(range(1986, 2024), 2))
    days = draw.sample(range(1, 28), 2)
    values |= {f"N{place}": str(number) for place, number in enumerate(numbers, 1)}
    values |= {"Y1": str(years[0]), "Y2": str(years[1] + 3), "Y3": str(years[1] + draw.choice((1, 5, 11)))}
    return values | {"D1": str(days[0]), "D2": str(days[1])}
