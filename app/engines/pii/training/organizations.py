"""Names of companies, authorities, schools and teams."""

import random
import re
from dataclasses import dataclass
from functools import cache

from app.engines.pii.training.lists import entries, happens
from app.engines.pii.training.people import People, drawn, faker_for
from app.engines.pii.training.places import Places

_PLAIN = re.compile(r"[A-Za-zÀ-ɏḀ-\u1eff0-9'\u2019 .,\-&]+")
_PUBLIC = (
    *(
        "University of {city}",
        "{city} University",
        "{city} General Hospital",
        "St. {first} Hospital",
        "Bank of {city}",
    ),
    *("{city} City Council", "{city} Police Department", "Ministry of {field}", "Department of {field}"),
    *("{last} & {other}", "{last} & Sons", "{last}, {other} & {last}", "{last} {trade}", "{last} {suffix}"),
    *("{city} Tigers", "{city} Chamber of Commerce", "{city} Airport Authority", "{city} Water Company"),
    *(
        "{city} Institute of Technology",
        "{city} School of Business",
        "{city} Medical Center",
        "{city} Credit Union",
    ),
    *("{city} Public Library", "{city} Orchestra", "{city} Times", "{city} Herald", "{city} Football Club"),
    *(
        "{city} High School",
        "{last} Law Firm",
        "{last} Family Clinic",
        "{word} {trade} Foundation",
        "{word}{ending}",
    ),
)
_FIELDS = (
    "Health",
    "Finance",
    "Justice",
    "Education",
    "Defence",
    "the Interior",
    "Labor",
    "Energy",
    "Transportation",
)
_ENDINGS = ("soft", "ware", "ly", "ify", "tech", "corp", "bank", "med", "net", "gen")


def without_article(name: str) -> str:
    """Return the name without a leading "the"."""
    return name.removeprefix("the ")


@cache
def _companies(locale: str) -> tuple[str, ...]:
    return drawn(faker_for(locale).company, 160, _PLAIN)


@dataclass(slots=True)
class Organizations:
    """Make up organizations; every choice comes from `chance`."""

    chance: random.Random
    people: People
    places: Places

    def any(self) -> str:
        """Return a known, a drawn, or a made-up organization."""
        kinds = (self._known, self._drawn, self._firm, self._public)
        return self.chance.choices(kinds, (38, 20, 20, 22))[0]()

    def _known(self) -> str:
        return without_article(self.chance.choice(entries("companies")))

    def _drawn(self) -> str:
        return self.chance.choice(_companies(self.people.locale()) or entries("companies"))

    def _firm(self) -> str:
        words = entries("company words")
        name = self.chance.choice(words)
        if happens(self.chance, 0.35):
            second = self.chance.choice(words)
            name += f" {second}" if happens(self.chance, 0.6) else second.lower()
        name += f" {self.chance.choice(entries('industries'))}"
        return (
            f"{name} {self.chance.choice(entries('company suffixes'))}" if happens(self.chance, 0.5) else name
        )

    def _public(self) -> str:
        return self.chance.choice(_PUBLIC).format(
            city=self.places.city(),
            first=self.people.first(),
            last=self.people.last(),
            other=self.people.last(),
            field=self.chance.choice(_FIELDS),
            trade=self.chance.choice(entries("industries")),
            suffix=self.chance.choice(entries("company suffixes")),
            word=self.chance.choice(entries("company words")),
            ending=self.chance.choice(_ENDINGS),
        )
