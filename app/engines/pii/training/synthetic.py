"""Made-up sentences, mails, chats, records and logs whose names are known, and as many without any name."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from app.engines.pii.training.examples import Example, Span, joined
from app.engines.pii.training.lists import happens, templates
from app.engines.pii.training.organizations import Organizations
from app.engines.pii.training.people import People
from app.engines.pii.training.places import Places
from app.engines.pii.training.structured import Records
from app.engines.pii.training.values import Values

_SLOT = re.compile(r"\{([a-z]+)\}")
_NAMED = {
    **dict.fromkeys(("person", "first", "last", "anyone", "native"), "PERSON"),
    **dict.fromkeys(("city", "place", "country", "state"), "LOCATION"),
    "company": "ORGANIZATION",
    "address": "ADDRESS",
}
_SUBJECTS = (
    *(
        "{anyone}",
        "{title} {last}",
        "My {relative} {first}",
        "{person} from {company}",
        "Our {job} {person}",
        "She",
        "We",
    ),
    *(
        "{first} and {first}",
        "The {job}",
        "He",
        "They",
        "I",
        "The team",
        "{company}",
        "The {nationality} {job}",
    ),
    *("Somebody", "Your colleague {first}", "{first}", "{last}", "{first} {last}"),
)
_VERBS = (
    *(
        "called",
        "e-mailed",
        "visited",
        "met",
        "will see",
        "talked to",
        "complained about",
        "asked for",
        "paid",
    ),
    *("is waiting for", "forgot about", "wrote to", "reported", "cancelled the meeting with", "is replacing"),
    *("cannot find", "works with", "sued", "thanked", "recommended", "mentioned", "likes", "disagreed with"),
)
_OBJECTS = (
    *(
        "{anyone}",
        "{title} {last}",
        "the {job}",
        "{company}",
        "the invoice {id}",
        "my {relative} {first}",
        "{product}",
    ),
    *(
        "{person} and {person}",
        "the {heading}",
        "everybody",
        "a refund of {money}",
        "me",
        "the support team",
        "{last}",
    ),
)
_TAILS = (
    *(
        "",
        " on {weekday}",
        " in {city}",
        " at {company}",
        " in {month}",
        " at {time}",
        " from {place}",
        " near {address}",
    ),
    *(
        " at {address}",
        " because of {product}",
        " before {date}",
        ", as {anyone} suggested",
        " without telling {anyone}",
    ),
    *(" and then moved to {place}", " on behalf of {company}"),
)


@dataclass(slots=True)
class Generator:
    """Make up examples; the same seed makes the same ones."""

    chance: random.Random
    people: People = field(init=False)
    places: Places = field(init=False)
    organizations: Organizations = field(init=False)
    values: Values = field(init=False)
    records: Records = field(init=False)

    def __post_init__(self) -> None:
        self.people = People(self.chance)
        self.places = Places(self.chance, self.people)
        self.organizations = Organizations(self.chance, self.people, self.places)
        self.values = Values(self.chance, self.people)
        self.records = Records(self.chance, self.render)

    def render(self, template: str) -> Example:
        """Return the template with its slots filled and its names labelled."""
        text = ""
        spans: list[Span] = []
        position = 0
        for match in _SLOT.finditer(template):
            text += template[position : match.start()]
            slot = match[1]
            value = self._name(slot) if slot in _NAMED else self.values.make(slot)
            if slot in _NAMED:
                spans.append((len(text), len(text) + len(value), _NAMED[slot]))
            text += value
            position = match.end()
        return Example(text + template[position:], tuple(spans), "synthetic")

    def _name(self, slot: str) -> str:
        if slot == "native":
            return self.people.native()
        if slot in ("person", "first", "last", "anyone"):
            make: Callable[[], str] = getattr(self.people, "full" if slot == "person" else slot)
            return self.people.cased(make())
        if slot == "company":
            return self._recased(self.organizations.any(), 0.06, 0.04)
        if slot == "address":
            return self._recased(self.places.address(), 0.1, 0.03)
        make = getattr(self.places, slot)
        return self._recased(make(), 0.06, 0.02)

    def _recased(self, name: str, lower: float, upper: float) -> str:
        changes = (str.lower, str.upper, str)
        return self.chance.choices(changes, (lower, upper, 1 - lower - upper))[0](name)

    def _from(self, *names: str) -> Example:
        return self.render(self.chance.choice([line for name in names for line in templates(name)]))

    def _composed(self) -> Example:
        parts = [self.chance.choice(choices) for choices in (_SUBJECTS, _VERBS, _OBJECTS)]
        tails = self.chance.choice(_TAILS) + (self.chance.choice(_TAILS) if happens(self.chance, 0.6) else "")
        return self.render(" ".join(parts) + tails + self.chance.choice((".", ".", "", "!", "?")))

    def _foreign(self) -> Example:
        locale, _, template = self.chance.choice(templates("languages")).partition("|")
        if locale == "any":
            return self.render(template)
        slots = template.split("{native}")
        parts: list[Example] = []
        for index, piece in enumerate(slots):
            if index:
                name = self.people.native(locale)
                parts.append(Example(name, ((0, len(name), "PERSON"),)))
            parts.append(self.render(piece))
        return joined(parts, "")

    def _several(self) -> Example:
        names = ("sentences", "everyday", "nothing")
        parts = [self._from(*names) for _ in range(self.chance.randint(2, 4))]
        return joined(parts, self.chance.choice((" ", " ", "\n", "\n\n")))

    def any(self) -> Example:
        """Return one example of any kind."""
        kinds: list[tuple[float, Callable[[], Example]]] = [
            (28, lambda: self._from("sentences")),
            (22, lambda: self._from("everyday")),
            (11, self.records.any),
            (8, lambda: self._from("documents")),
            (10, self._several),
            (12, lambda: self._from("nothing")),
            (5, self._composed),
            (4, self._foreign),
        ]
        chosen = self.chance.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]()
        change = self.chance.choices((str.lower, str.upper, None), (8, 2, 90))[0]
        return chosen.recased(change) if change else chosen


def synthetic(count: int, seed: int) -> list[Example]:
    """Return `count` made-up examples."""
    generator = Generator(random.Random(seed))
    return [generator.any() for _ in range(count)]
