"""Fill the slots of the texts in `written/` with made-up names of the text's language."""

import random
from dataclasses import dataclass, field

from app.engines.pii.training.examples import Example
from app.engines.pii.training.frames import FrameFiller, World
from app.engines.pii.training.lists import entries, happens
from app.engines.pii.training.markup import FRAMES, HELD_OUT, Slot, Written, read_written
from app.engines.pii.training.people import LATIN, drawn, faker_for, first_names, last_names
from app.engines.pii.training.synthetic import Generator

_LOCALES = {
    "de": ("de_DE", "de_AT", "de_CH"),
    "fr": ("fr_FR", "fr_CH"),
    "es": ("es_ES", "es_MX"),
    "it": ("it_IT",),
    "pt": ("pt_PT", "pt_BR"),
    "nl": ("nl_NL", "nl_BE"),
    "pl": ("pl_PL",),
    "sv": ("sv_SE",),
    "tr": ("tr_TR",),
    "da": ("da_DK",),
    "nb": ("no_NO",),
    "nn": ("no_NO",),
    "fi": ("fi_FI",),
    "cs": ("cs_CZ",),
    "hu": ("hu_HU",),
    "ro": ("ro_RO",),
    "id": ("id_ID",),
    "vi": ("vi_VN",),
    "en": ("en_US", "en_GB", "en_IN", "en_AU"),
}
_ABROAD = {"en": 0.6}
_ABROAD_ELSEWHERE = 0.25
_DRAWS = 600
_LAST_NAME_FIRST = ("hu", "vi")
_INITIALS = "ABCDEFGHIJKLMNOPRSTVW"
_SHOPS = (
    "{last}'s",
    "{first}'s",
    "{last} & {other}",
    "{last} Bank",
    "{first} {last}",
    "{last} Brothers",
    "{last} Deli",
)
_STREETS = (
    "{last} Street",
    "{last} Avenue",
    "{last} Park",
    "{last} Square",
    "{last} Bridge",
    "{first} {last} Boulevard",
)


@dataclass(slots=True)
class Filler:
    """Fill the slots of one text; make another for the next, so that `#1` is somebody else."""

    generator: Generator
    _pairs: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __call__(self, slot: Slot) -> str:
        """Return a name for the slot."""
        if slot.kind == "company":
            return self.generator.organizations.any()
        if slot.kind == "address":
            return self.generator.places.address()
        if slot.kind == "city":
            return self.generator.places.city()
        first, last = self._pair(slot)
        if slot.kind in ("eponym", "product"):
            return self._thing(slot.kind, first, last)
        if slot.kind in ("shop", "street"):
            form = self.generator.chance.choice(_SHOPS if slot.kind == "shop" else _STREETS)
            return form.format(first=first, last=last, other=self._pair(slot)[1])
        return self._person(slot, first, last)

    def _thing(self, kind: str, first: str, last: str) -> str:
        """Return what is called like a person; half are any names, so that the words around them decide."""
        chance = self.generator.chance
        if happens(chance, 0.5):
            return chance.choice(entries("eponyms" if kind == "eponym" else "made products"))
        return last if kind == "eponym" or happens(chance, 0.2) else first

    def _person(self, slot: Slot, first: str, last: str) -> str:
        """Return a name in the form of the slot; Hungarian and Vietnamese ones begin with the last name."""
        if slot.kind in ("first", "last"):
            return first if slot.kind == "first" else last
        if slot.kind == "full":
            return f"{last} {first}" if slot.language in _LAST_NAME_FIRST else f"{first} {last}"
        second = self.generator.chance.choice(("", f" {self.generator.chance.choice(_INITIALS)}."))
        if happens(self.generator.chance, 0.3):
            second = second.strip()
        initials = f"{first[0]}.{second}"
        return f"{initials} {last}" if slot.kind == "short" else f"{last}, {initials}"

    def _pair(self, slot: Slot) -> tuple[str, str]:
        if slot.same in self._pairs:
            return self._pairs[slot.same]
        pair = self._made(slot)
        if slot.same:
            self._pairs[slot.same] = pair
        return pair

    def _made(self, slot: Slot) -> tuple[str, str]:
        chance = self.generator.chance
        locale = chance.choice(_LOCALES.get(slot.language, _LOCALES["en"]))
        if slot.gender:
            faker = faker_for(locale)
            make = faker.first_name_female if slot.gender == "f" else faker.first_name_male
            return chance.choice(drawn(make, _DRAWS, LATIN)), chance.choice(last_names(locale))
        if happens(chance, _ABROAD.get(slot.language, _ABROAD_ELSEWHERE)):
            return self.generator.people.pair()
        return chance.choice(first_names(locale)), chance.choice(last_names(locale))


def filled(texts: tuple[Written, ...], copies: int, seed: int) -> list[Example]:
    """Return each text once, and those with slots `copies` times."""
    generator = Generator(random.Random(seed))
    return [text.example(Filler(generator)) for text in texts for _ in range(copies if text.varies else 1)]


def written(copies: int, seed: int) -> list[Example]:
    """Return the texts to learn from."""
    return filled(read_written(), copies, seed)


def written_held_out(seed: int) -> list[Example]:
    """Return the texts that only judge, each once."""
    return filled(read_written(HELD_OUT), 1, seed)


def frames(copies: int, world: World, seed: int) -> list[Example]:
    """Return each sentence of the files of frames ``copies`` times, once where it has no slots."""
    generator = Generator(random.Random(seed))
    return [
        text.example(FrameFiller(generator, Filler(generator), world))
        for text in read_written(FRAMES)
        for _ in range(copies if text.varies else 1)
    ]
