"""Cities, countries, regions, and postal addresses as they are written in many countries."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from app.engines.pii.training.lists import entries, happens
from app.engines.pii.training.people import LATIN, People, drawn, faker_for

_LINES = re.compile(r"[A-Za-zÀ-ɏḀ-\u1eff0-9'\u2019 .,\-\n/#:&()ºª]+")


@cache
def cities(locale: str) -> tuple[str, ...]:
    """Return the locale's cities in Latin letters; none when the locale knows no cities."""
    generator = faker_for(locale)
    return drawn(generator.city, 250, LATIN) if hasattr(generator, "city") else ()


@cache
def _addresses(locale: str) -> tuple[str, ...]:
    generator = faker_for(locale)
    return drawn(generator.address, 160, _LINES) if hasattr(generator, "address") else ()


@dataclass(slots=True)
class Places:
    """Make up places; every choice comes from `chance`."""

    chance: random.Random
    people: People

    def city(self) -> str:
        """Return a city."""
        local = cities(self.people.locale()) if happens(self.chance, 0.4) else ()
        return self.chance.choice(local or entries("cities"))

    def country(self) -> str:
        """Return a country, without an article."""
        return self.chance.choice(entries("countries")).removeprefix("the ")

    def state(self) -> str:
        """Return a state or province."""
        return self.chance.choice(entries("states"))

    def place(self) -> str:
        """Return a city, country, state or landscape."""
        kinds = (self.city, self.country, self.state, self._region)
        return self.chance.choices(kinds, (50, 25, 13, 12))[0]()

    def _region(self) -> str:
        return self.chance.choice(entries("regions")).removeprefix("the ")

    def address(self) -> str:
        """Return a postal address, with or without its city."""
        kinds: list[tuple[float, Callable[[], str]]] = [
            (33, self._american),
            (9, self._british),
            (11, self._german),
            (5, self._french),
            (4, self._spanish),
            (3, self._italian),
            (2, self._portuguese),
            (2, self._dutch),
            (5, self._indian),
            (3, self._box),
            (6, self._commonwealth),
            (4, self._east_asian),
            (3, self._street_first),
            (10, self._drawn),
        ]
        text = self.chance.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]()
        if happens(self.chance, 0.1):
            text += f", {self.country()}"
        return re.sub(r" +", " ", text).strip(" ,")

    def _number(self, low: int, high: int) -> int:
        return self.chance.randint(low, high)

    def _pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def _break(self) -> str:
        return self._pick(", ", ", ", ", ", "\n", " ")

    def _street(self) -> str:
        name = (
            self.chance.choice(entries("street names")) if happens(self.chance, 0.5) else self.people.last()
        )
        side = self._pick("", "", "", "", "N ", "S. ", "West ", "East ", "North ")
        return f"{side}{name} {self.chance.choice(entries('street kinds'))}"

    def _flat(self) -> str:
        number = self._number(1, 400)
        kinds = (", Apt ", " Apt. ", ", Suite ", " Unit ", ", Flat ", " #", ", Floor ", ", Apartment ")
        return f"{self.chance.choice(kinds)}{number}" if happens(self.chance, 0.4) else ""

    def _american(self) -> str:
        text = f"{self._number(1, 9999)} {self._street()}{self._flat()}"
        if happens(self.chance, 0.15):
            return text
        text += f"{self._break()}{self.city()}"
        if happens(self.chance, 0.14):
            return text
        state = self.chance.choice(entries("state codes")) if happens(self.chance, 0.7) else self.state()
        code = f"{self._number(10000, 99950)}" + (
            f"-{self._number(1000, 9999)}" if happens(self.chance, 0.1) else ""
        )
        return f"{text}, {state}{self._pick(' ', ', ', ' ')}{code}"

    def _british(self) -> str:
        area = self._pick(
            "SW1A", "EC1A", "W1", "M1", "B33", "CR2", "N1", "E14", "LS1", "G2", "EH1", "BS8", "SE10", "OX4"
        )
        code = (
            f"{area} {self._number(1, 9)}{self.chance.choice('ABDEFGHJLN')}{self.chance.choice('ABDEFGHJLN')}"
        )
        flat = f"Flat {self._number(1, 30)}, " if happens(self.chance, 0.4) else ""
        house = f"{self._number(1, 250)}{self._pick('', '', 'A', 'b')}"
        return f"{flat}{house} {self._street()}{self._break()}{self.city()}{self._pick(', ', ' ')}{code}"

    def _german(self) -> str:
        if happens(self.chance, 0.8):
            name = self.chance.choice(entries("german street stems")) + self.chance.choice(
                entries("german street ends")
            )
        else:
            name = self._pick("Am ", "An der ", "Im ", "Unter den ") + self._pick(
                "Markt", "Bach", "Linden", "Anger", "Rathaus"
            )
        text = f"{name} {self._number(1, 220)}{self._pick('', '', 'a', 'b')}"
        if happens(self.chance, 0.25):
            return text
        return f"{text}{self._break()}{self._pick('', '', 'D-', 'A-', 'CH-')}{self._number(1000, 99999)} {self.city()}"

    def _french(self) -> str:
        kind = self._pick(
            "rue", "avenue", "boulevard", "place", "allée", "impasse", "chemin", "Rue", "Avenue", "quai"
        )
        name = f"{kind} {self._pick('de la', 'du', 'des', 'de', '')} {self.chance.choice(entries('french streets'))}"
        house = f"{self._number(1, 220)}{self._pick('', '', ' bis')}{self._pick(' ', ', ')}"
        return f"{house}{name}{self._break()}{self._number(10000, 98000)} {self.city()}"

    def _spanish(self) -> str:
        kind = self._pick("Calle", "C/", "Avenida", "Av.", "Paseo", "Plaza", "Carrera", "Camino")
        name = self.chance.choice((*entries("spanish streets"), self.people.last()))
        street = f"{kind} {name} {self._pick('', '#', 'nº ', 'No. ')}{self._number(1, 900)}"
        return f"{street}{self._break()}{self._number(10000, 52999)} {self.city()}"

    def _italian(self) -> str:
        kind = self._pick("Via", "Viale", "Piazza", "Corso", "Largo")
        name = self.chance.choice((*entries("italian streets"), self.people.last()))
        street = f"{kind} {name}{self._pick(' ', ', ')}{self._number(1, 300)}"
        return f"{street}{self._break()}{self._number(10000, 98168)} {self.city()}"

    def _portuguese(self) -> str:
        kind = self._pick("Rua", "Avenida", "Travessa", "Praça", "Av.")
        name = self.chance.choice((*entries("portuguese streets"), self.people.last()))
        street = f"{kind} {name}{self._pick(' ', ', ', ', nº ')}{self._number(1, 900)}"
        return f"{street}{self._break()}{self._number(1000, 9999)}-{self._number(100, 999)} {self.city()}"

    def _dutch(self) -> str:
        name = self.chance.choice(entries("dutch street stems")) + self._pick(
            "straat", "gracht", "laan", "weg", "plein"
        )
        letters = self._pick("AB", "XN", "KL", "GT")
        return (
            f"{name} {self._number(1, 400)}{self._break()}{self._number(1000, 9999)} {letters} {self.city()}"
        )

    def _indian(self) -> str:
        prefix = self._pick("", "H.No. ", "Flat ", "#", "Plot No. ")
        house = f"{prefix}{self._number(1, 900)}{self._pick('', '/4', '-B')}"
        code = f"{self._pick(' - ', ', ', ' ')}{self._number(110001, 855000)}"
        return f"{house}, {self.chance.choice(entries('indian streets'))}{self._break()}{self.city()}{code}"

    def _box(self) -> str:
        box = f"{self._pick('P.O. Box', 'PO Box', 'P. O. Box', 'Postfach')} {self._number(10, 99999)}"
        state = self.chance.choice(entries("state codes"))
        return f"{box}{self._break()}{self.city()}, {state} {self._number(10000, 99950)}"

    def _commonwealth(self) -> str:
        if happens(self.chance, 0.5):
            code = f"{self._pick('VIC', 'NSW', 'QLD', 'WA', 'SA')} {self._number(2000, 7000)}"
            return f"{self._number(1, 40)}/{self._number(1, 200)} {self._street()}, {self.city()} {code}"
        letters = [self.chance.choice("KLMHVTABCEG") for _ in range(3)]
        digits = [self._number(1, 9) for _ in range(3)]
        code = f"{letters[0]}{digits[0]}{letters[1]} {digits[1]}{letters[2]}{digits[2]}"
        street = f"{self._number(1, 9999)} {self._street()}{self._flat()}"
        return f"{street}, {self.city()}, {self._pick('ON', 'QC', 'BC', 'AB')} {code}"

    def _east_asian(self) -> str:
        if happens(self.chance, 0.5):
            name = self.chance.choice(entries("chinese first"))
            district = self._pick("Chaoyang", "Xuhui", "Pudong", "Tianhe")
            code = self._number(100000, 700000)
            return f"No. {self._number(1, 300)}, {name} Road, {district} District, {self.city()} {code}"
        ward = self._pick("Shibuya", "Minato", "Ginza", "Shinjuku", "Umeda", "Namba")
        block = f"{self._number(1, 9)}-{self._number(1, 30)}-{self._number(1, 20)}"
        return f"{block} {ward}, {self.city()} {self._number(100, 999)}-{self._number(1000, 9999)}"

    def _street_first(self) -> str:
        street = (
            f"{self.people.last()} {self.chance.choice(entries('other street ends'))} {self._number(1, 99)}"
        )
        return f"{street}{self._break()}{self._number(10000, 99000)} {self.city()}"

    def _drawn(self) -> str:
        found = _addresses(self.people.locale())
        text = self.chance.choice(found) if found else f"{self._number(1, 99)} {self._street()}"
        return text.replace("\n", ", ") if happens(self.chance, 0.6) else text
