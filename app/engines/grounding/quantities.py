"""Read the numbers of a text with their units, and its dates: 1,000 equals 1k, 5 km equals 5000 m, 50 % equals 0.5."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from app.engines.grounding.stemming import stem
from app.engines.grounding.words import STOP_WORDS

_SCALES: Final = {
    **dict.fromkeys(("k", "thousand"), 1e3),
    **dict.fromkeys(("m", "mn", "million", "millions"), 1e6),
    **dict.fromkeys(("b", "bn", "billion", "billions"), 1e9),
    **dict.fromkeys(("trillion", "tn"), 1e12),
    "hundred": 1e2,
    "dozen": 12.0,
}
_UNITS: Final[dict[str, tuple[str, float]]] = {
    **dict.fromkeys(("mm", "millimeters", "millimetres"), ("length", 1e-3)),
    **dict.fromkeys(("cm", "centimeters", "centimetres"), ("length", 1e-2)),
    **dict.fromkeys(("meter", "metre", "meters", "metres"), ("length", 1.0)),
    **dict.fromkeys(("km", "kilometer", "kilometre", "kilometers", "kilometres"), ("length", 1e3)),
    **dict.fromkeys(("mile", "miles", "mi"), ("length", 1609.344)),
    **dict.fromkeys(("foot", "feet", "ft"), ("length", 0.3048)),
    **dict.fromkeys(("inch", "inches"), ("length", 0.0254)),
    **dict.fromkeys(("yard", "yards"), ("length", 0.9144)),
    **dict.fromkeys(("mg", "milligrams"), ("mass", 1e-6)),
    **dict.fromkeys(("g", "gram", "grams"), ("mass", 1e-3)),
    **dict.fromkeys(("kg", "kilogram", "kilograms", "kilos"), ("mass", 1.0)),
    **dict.fromkeys(("tonne", "tonnes"), ("mass", 1e3)),
    **dict.fromkeys(("lb", "lbs", "pound", "pounds"), ("mass", 0.45359237)),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), ("time", 1e-3)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("time", 1.0)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("time", 60.0)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("time", 3600.0)),
    **dict.fromkeys(("day", "days"), ("time", 86_400.0)),
    **dict.fromkeys(("week", "weeks"), ("time", 604_800.0)),
    **dict.fromkeys(("month", "months"), ("months", 1.0)),
    **dict.fromkeys(("year", "years"), ("months", 12.0)),
    **dict.fromkeys(("kb", "kilobytes"), ("bytes", 1e3)),
    **dict.fromkeys(("mb", "megabytes"), ("bytes", 1e6)),
    **dict.fromkeys(("gb", "gigabytes"), ("bytes", 1e9)),
    **dict.fromkeys(("tb", "terabytes"), ("bytes", 1e12)),
    **dict.fromkeys(("liter", "litre", "liters", "litres"), ("volume", 1.0)),
    **dict.fromkeys(("ml", "milliliters", "millilitres"), ("volume", 1e-3)),
    **dict.fromkeys(("%", "percent", "pct", "percentage"), ("share", 0.01)),
    **dict.fromkeys(("$", "usd", "dollar", "dollars"), ("usd", 1.0)),
    **dict.fromkeys(("\u20ac", "eur", "euro", "euros"), ("eur", 1.0)),
    **dict.fromkeys(("\u00a3", "gbp"), ("gbp", 1.0)),
    **dict.fromkeys(("\u00a5", "jpy", "yen"), ("jpy", 1.0)),
}
_METRE: Final = ("length", 1.0)
_WORDS: Final = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "first": 1,
    "second": 2,
    "third": 3,
    "one": 1,
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_FOUR_DIGITS: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")
_DATES: Final = re.compile(
    r"(?<![\w.])(?:(\d{4})-(\d{1,2})-(\d{1,2})(?:T[\d:.]{4,15}Z?)?"
    r"|(\d{1,2})[/.](\d{1,2})[/.](\d{4})"
    rf"|{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})"
    rf"|(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH},? (\d{{4}}))(?!\w)",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(
    r"(?<![\w.,/:#@&=-])([$\u20ac\u00a3\u00a5]\s?)?"
    r"(-?(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?: ?, \d{3})+(?![\d,]| ?, ?\d)|"
    r"\d{1,3}(?:[\u00a0\u202f]\d{3})+|\d{1,18})(?:\.\d{1,12})?)"
    r"(?:(?:\s|-)?(%|[A-Za-z\u20ac\u00a3\u00a5]{1,12})(?![\w]))?(?:\s(%|[A-Za-z]{1,12})(?!\w))?(?![\w])"
)
_SPELLED: Final = re.compile(r"\b[A-Za-z]{3,9}\b")
_YEARS: Final = range(1000, 2101)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in the unit of its kind, or a date; ``step`` is the value of one unit of its last digit.

    ``values`` are its readings: 10/04/2025 has two. ``noun`` is the word after it where that is not a unit.
    """

    start: int
    end: int
    kind: str
    values: tuple[float, ...]
    step: float = 0.0
    plain: float | None = None
    noun: str = ""
    spelled: bool = False


def quantities_in(text: str) -> Iterator[Quantity]:
    """Yield the dates and numbers of ``text``, dates first."""
    covered: list[tuple[int, int]] = []
    for match in _DATES.finditer(text) if _FOUR_DIGITS.search(text) else ():
        days = tuple(float(day) for day in _readings(match.groups()))
        if days:
            covered.append(match.span())
            yield Quantity(*match.span(), "date", days)
    index = 0
    for match in _NUMBER.finditer(text):
        while index < len(covered) and covered[index][1] <= match.start():
            index += 1
        if index == len(covered) or match.end() <= covered[index][0] or match.start() >= covered[index][1]:
            yield _read(match)
    for match in _SPELLED.finditer(text):
        number = _WORDS.get(match[0].lower())
        if number is not None:
            yield Quantity(*match.span(), "", (float(number),), 0.0, float(number), "", spelled=True)


def _readings(groups: tuple[str | None, ...]) -> Iterator[int]:
    """Yield the days, as ordinals, that a date may mean."""
    numbers: list[tuple[str | None, str | None, str | None]] = [
        (groups[0], groups[1], groups[2]),
        (groups[5], groups[3], groups[4]),
        (groups[5], groups[4], groups[3]),
        (groups[8], groups[6], groups[7]),
        (groups[11], groups[10], groups[9]),
    ]
    for year, month, day in numbers:
        if year is None or month is None or day is None:
            continue
        number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
        try:
            yield date(int(year), number, int(day)).toordinal()
        except ValueError:
            continue


def _read(match: re.Match[str]) -> Quantity:
    currency, digits, first_word, second_word = match.groups()
    bare = re.sub(r"[, \u00a0\u202f]", "", digits)
    value = float(bare)
    step = 10.0 ** -len(bare.partition(".")[2])
    words = [word for word in (first_word, second_word) if word]
    end = match.end(2)
    if words and (scale := _scale(words[0], match, currency)) is not None:
        value, step = value * scale, step * scale
        end = match.end(3)
        words.pop(0)
    unit = _UNITS.get(currency.strip()) if currency else None
    if words and unit is None and (named_unit := _unit(words[0])) is not None:
        unit = named_unit
        end = match.end(4) if words[0] == second_word else match.end(3)
        words.pop(0)
    behind = match.string[end : end + 2]
    clock = ("clock", 1.0) if unit is None and behind[:1] == ":" and behind[1:].isdigit() else ("", 1.0)
    kind, factor = unit or clock
    noun = words[0].lower() if words and stem(words[0].lower()) not in STOP_WORDS else ""
    start = match.start()
    return Quantity(start, end, kind, (value * factor,), step * factor, value, noun)


def _scale(word: str, match: re.Match[str], currency: str | None) -> float | None:
    """Return the factor of a word; a letter counts where it touches the number, and m means metres except for money."""
    scale = _SCALES.get(word.lower())
    if scale is None or len(word) > 2:  # noqa: PLR2004 - longer words (thousand, million) are never units
        return scale
    touches = match.start(3) == match.end(2)
    return scale if touches and (word != "m" or currency) else None


def _unit(word: str) -> tuple[str, float] | None:
    return _METRE if word == "m" else _UNITS.get(word) or _UNITS.get(word.lower())


def is_year(quantity: Quantity) -> bool:
    """Return whether a number looks like a year, which must match exactly."""
    return not quantity.kind and quantity.step == 1.0 and int(quantity.values[0]) in _YEARS
