"""Names of people, from Faker's locales and from hand-written lists, in the forms in which they are written."""

import random
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from faker import Faker

from app.engines.pii.training.lists import entries, happens, weighted

LOCALE_WEIGHTS = weighted("locales")
NATIVE_LOCALES = weighted("native locales")
ROMANISED = {"chinese": 4, "japanese": 3, "korean": 2, "arabic": 5, "russian": 4, "greek": 2, "everyday": 6}
_PREFIXES = ("O'", "Mc", "Mac")
LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-\u1eff'\u2019 .\-]+")
_DRAWS = 1_500


@cache
def faker_for(locale: str) -> Faker:
    """Return the seeded generator of a locale."""
    generator = Faker(locale)
    generator.seed_instance(len(locale))
    return generator


def drawn(make: Callable[[], str], count: int, pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Return the distinct values of `count` draws that match the whole pattern, sorted."""
    return tuple(sorted({value for _ in range(count) if pattern.fullmatch(value := make())}))


@cache
def first_names(locale: str) -> tuple[str, ...]:
    """Return the locale's first names in Latin letters."""
    return drawn(faker_for(locale).first_name, _DRAWS, LATIN)


@cache
def last_names(locale: str) -> tuple[str, ...]:
    """Return the locale's last names in Latin letters."""
    return drawn(faker_for(locale).last_name, _DRAWS, LATIN)


@cache
def native_names(locale: str) -> tuple[str, ...]:
    """Return names in the locale's own script, without titles."""
    generator = faker_for(locale)
    if locale[:2] in ("zh", "ja", "ko"):
        return drawn(generator.name, 600, re.compile(r"[^\x00-\x7f ]+(?: [^\x00-\x7f ]+)?"))
    return drawn(
        lambda: f"{generator.first_name()} {generator.last_name()}",
        600,
        re.compile(r"[^\x00-\x7f]+ [^\x00-\x7f]+"),
    )


def unaccented(text: str) -> str:
    """Return the text without combining accents."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


@dataclass(slots=True)
class People:
    """Make up people's names; every choice comes from `chance`."""

    chance: random.Random
    _locales: list[str] = field(default_factory=lambda: list(LOCALE_WEIGHTS))
    _weights: list[int] = field(default_factory=lambda: list(LOCALE_WEIGHTS.values()))

    def locale(self) -> str:
        """Return a locale by weight."""
        return self.chance.choices(self._locales, self._weights)[0]

    def pair(self) -> tuple[str, str]:
        """Return a first and a last name that belong together."""
        if happens(self.chance, 0.72):
            locale = self.locale()
            firsts, lasts = first_names(locale), last_names(locale)
            if firsts and lasts:
                return self.chance.choice(firsts), self.chance.choice(lasts)
        kind = self.chance.choices(list(ROMANISED), list(ROMANISED.values()))[0]
        first = self.chance.choice(entries(f"{kind} first"))
        if kind == "everyday":
            return first, self.chance.choice(last_names("en_US"))
        return first, self.chance.choice(entries(f"{kind} last"))

    def first(self) -> str:
        """Return a first name."""
        return self.pair()[0].rstrip(".")

    def last(self) -> str:
        """Return a last name."""
        return self.pair()[1]

    def full(self) -> str:
        """Return a full name in one of the usual forms."""
        first, last = self.pair()
        letter = self.chance.choice("ABCDEFGHIJKLMNOPRSTW")
        forms: list[tuple[float, Callable[[], str]]] = [
            (72, lambda: f"{first} {last}"),
            (8, lambda: f"{first} {letter}. {last}"),
            (4, lambda: f"{first} {self.first()} {last}"),
            (3, lambda: f"{first[0]}. {last}"),
            (2, lambda: f"{first[0]}.{letter}. {last}"),
            (3, lambda: f"{first} {last}-{self.last()}"),
            (2, lambda: f"{first} {last} {self.last()}"),
            (1.5, lambda: self._with_particle(first, last)),
            (1, lambda: f"{first} {last} {self.chance.choice(('Jr.', 'Sr.', 'III', 'II'))}"),
            (2, lambda: f"{last} {first}"),
            (1.5, lambda: f"{last}, {first}"),
        ]
        return self.chance.choices([form for _, form in forms], [weight for weight, _ in forms])[0]()

    def _with_particle(self, first: str, last: str) -> str:
        particle = self.chance.choice(entries("name particles"))
        space = "" if particle in _PREFIXES else " "
        return f"{first} {particle}{space}{last}"

    def anyone(self) -> str:
        """Return a full, first or last name."""
        return self.chance.choices((self.full, self.first, self.last), (5, 4, 1))[0]()

    def native(self, locale: str | None = None) -> str:
        """Return a name in its own script."""
        chosen = locale or self.chance.choices(list(NATIVE_LOCALES), list(NATIVE_LOCALES.values()))[0]
        return self.chance.choice(native_names(chosen))

    def cased(self, name: str, lower: float = 0.08, upper: float = 0.06) -> str:
        """Return the name, now and then in another case or without accents."""
        changes = (str.lower, str.upper, unaccented, str)
        odds = (lower, upper, 0.02, 0.98 - lower - upper)
        return self.chance.choices(changes, odds)[0](name)
