"""Fill sentences in which people, organizations and places stand alike, with names of the language and of the world.

Beside the slots of `filling.py` there are `[P=foreign]`, `[P=foreign_first]` and `[P=foreign_last]` (anybody's),
`[L=town]`, `[L=country]`, `[O=local]`, and `[L=lake]`, `[L=mountain]`, `[L=island]`, `[L=street]`, which are made from
names of people and towns by the patterns of the language in `templates/lists.txt`. `[N=...]` makes the same words for
things that are nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.engines.pii.training.lists import entries, happens
from app.engines.pii.training.markup import Fill, Slot

if TYPE_CHECKING:  # the generator needs Faker
    from app.engines.pii.training.synthetic import Generator

_PATTERNS: Final = {
    "local": "organizations",
    "lake": "places",
    "mountain": "mountains",
    "island": "islands",
    "street": "streets",
}
_SAME_LISTS: Final = {"nn": "nb"}
_AT_HOME: Final = 0.5
_FROM_LISTS: Final = 0.6
_COMMON: Final = 0.25


@dataclass(frozen=True, slots=True)
class World:
    """Hold last names of many countries, and towns by the language in which they are filled in."""

    last_names: tuple[str, ...]
    towns: Mapping[str, tuple[str, ...]]
    all_towns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrameFiller:
    """Fill the slots of one frame; ``fill`` fills those that any other text may have."""

    generator: "Generator"
    fill: Fill
    world: World

    def __call__(self, slot: Slot) -> str:
        """Return a name for the slot."""
        if slot.kind == "town":
            return self._town(slot.language)
        if slot.kind == "country":
            return self.generator.chance.choice(self._entries(slot, "countries"))
        if slot.kind in _PATTERNS:
            return self._made(slot)
        if slot.kind.startswith("foreign"):
            return self._foreign(slot.kind)
        return self.fill(slot)

    def _entries(self, slot: Slot, title: str) -> tuple[str, ...]:
        return entries(f"{_SAME_LISTS.get(slot.language, slot.language)} {title}")

    def _town(self, language: str) -> str:
        chance = self.generator.chance
        known = self.world.towns.get(_SAME_LISTS.get(language, language), ())
        return chance.choice(known if known and happens(chance, _AT_HOME) else self.world.all_towns)

    def _made(self, slot: Slot) -> str:
        title = _PATTERNS[slot.kind]
        chance = self.generator.chance
        if title == "organizations" and happens(chance, _COMMON):
            return self.generator.organizations.any()
        first, last = (self.fill(Slot(kind, slot.language)) for kind in ("first", "last"))
        pattern = chance.choice(self._entries(slot, title))
        return pattern.format(first=first, last=last, town=self._town(slot.language))

    def _foreign(self, kind: str) -> str:
        chance = self.generator.chance
        first, last = self.generator.people.pair()
        first = first.rstrip(".")
        if happens(chance, _FROM_LISTS):
            last = chance.choice(self.world.last_names)
        if kind == "foreign":
            return f"{first} {last}"
        return first if kind == "foreign_first" else last
