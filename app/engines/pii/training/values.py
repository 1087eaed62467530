"""Everything in a sentence that is not a name: dates, numbers, products, log levels, e-mail addresses."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from app.engines.pii.training.lists import entries
from app.engines.pii.training.people import People, unaccented

MONTHS = entries("months")
WEEKDAYS = entries("weekdays")
_TITLES = ("Mr.", "Mrs.", "Ms.", "Dr.", "Prof.", "Mr", "Ms", "Mrs", "Dr", "Miss", "Sir", "mr", "mrs", "dr.")
_GREETINGS = ("Hi", "Hello", "Dear", "Hey", "Good morning", "hi", "hey", "hello", "Good afternoon", "Hallo")
_GOODBYES = (
    *(
        "Best regards",
        "Regards",
        "Thanks",
        "Kind regards",
        "Cheers",
        "Sincerely",
        "Best",
        "Many thanks",
        "BR",
    ),
    *("Warm regards", "Yours truly", "thx", "Thank you", "All the best", "Talk soon", "-"),
)
_LEVELS = ("INFO", "WARN", "ERROR", "DEBUG", "WARNING", "TRACE")
_TOKENS = ("PERSON", "EMAIL", "PHONE", "SSN", "ADDRESS", "LOCATION", "ORGANIZATION", "DATE", "CARD", "URL")


@dataclass(slots=True)
class Values:
    """Make up values by the name of their slot; every choice comes from `chance`."""

    chance: random.Random
    people: People

    def make(self, slot: str) -> str:
        """Return a value for a slot."""
        maker: Callable[[], str] = getattr(self, slot)
        return maker()

    def _n(self, low: int, high: int) -> str:
        return str(self.chance.randint(low, high))

    def _letters(self, name: str) -> str:
        return re.sub(r"[^a-z]", "", unaccented(name.lower())) or "user"

    def email(self) -> str:
        """Return an e-mail address."""
        first, last = (self._letters(name) for name in self.people.pair())
        local = self.chance.choice(
            (f"{first}.{last}", f"{first[0]}{last}", f"{first}{self._n(1, 99)}", "info", "support")
        )
        return f"{local}@{self.chance.choice(entries('domains'))}"

    def user(self) -> str:
        """Return an account name."""
        first, last = (self._letters(name) for name in self.people.pair())
        accounts = (
            f"{first}_{last}",
            f"{first[0]}{last}",
            f"{first}{self._n(1, 999)}",
            "admin",
            "svc-backup",
            "root",
            "guest",
        )
        return self.chance.choice(accounts)

    def phone(self) -> str:
        """Return a telephone number."""
        n = self._n
        forms = (
            f"({n(200, 999)}) {n(200, 999)}-{n(1000, 9999)}",
            f"+{n(1, 99)} {n(10, 999)} {n(100, 999)} {n(1000, 9999)}",
            f"{n(200, 999)}-{n(200, 999)}-{n(1000, 9999)}",
            f"0{n(1000, 9999)} {n(100000, 999999)}",
            n(2000000000, 9999999999),
        )
        return self.chance.choice(forms)

    def ssn(self) -> str:
        """Return a social security number."""
        return f"{self._n(100, 899)}-{self._n(10, 99)}-{self._n(1000, 9999)}"

    def date(self) -> str:
        """Return a date in words or figures."""
        day, year, month = self._n(1, 28), self._n(1950, 2027), self.month()
        forms = (
            *(
                f"{day} {month} {year}",
                f"{month} {day}, {year}",
                f"{self._n(1, 12)}/{day}/{year}",
                f"{month[:3]} {day}",
            ),
            *(
                f"{year}-{self._n(10, 12)}-{self._n(10, 28)}",
                f"{month} {day}th",
                self.weekday(),
                month,
                "yesterday",
            ),
            *(f"{self.weekday()}, {month} {day}", "next week", "tomorrow", "today"),
        )
        return self.chance.choice(forms)

    def time(self) -> str:
        """Return a time of day."""
        return self.chance.choice(
            (
                f"{self._n(0, 23)}:{self._n(10, 59)}",
                f"{self._n(1, 12)} pm",
                f"{self._n(1, 12)}:{self._n(10, 59)} AM",
            )
        )

    def month(self) -> str:
        """Return a month."""
        return self.chance.choice(MONTHS)

    def weekday(self) -> str:
        """Return a day of the week."""
        return self.chance.choice(WEEKDAYS)

    def money(self) -> str:
        """Return an amount of money."""
        amount = self.chance.choice(
            (self._n(1, 9999), f"{self._n(1, 99)},{self._n(100, 999)}", f"{self._n(1, 999)}.50")
        )
        return self.chance.choice(("$", "€", "£", "USD ", "EUR ")) + amount

    def number(self) -> str:
        """Return a number."""
        return self._n(1, 99999)

    def id(self) -> str:
        """Return a reference number."""
        return self.chance.choice(("INV-", "TCK-", "#", "PO", "CUS_", "ord_", "A-", "REQ")) + self._n(
            100, 999999
        )

    def ip(self) -> str:
        """Return an IPv4 address."""
        return f"{self._n(1, 255)}.{self._n(0, 255)}.{self._n(0, 255)}.{self._n(1, 254)}"

    def url(self) -> str:
        """Return a web address."""
        path = self.chance.choice(("", "/orders", "/login?next=/", f"/v1/users/{self._n(1, 999)}"))
        return (
            self.chance.choice(("https://", "http://", "www."))
            + self.chance.choice(entries("domains"))
            + path
        )

    def card(self) -> str:
        """Return a card number."""
        n = self._n
        return f"{n(4000, 5999)} {n(1000, 9999)} {n(1000, 9999)} {n(1000, 9999)}"

    def iban(self) -> str:
        """Return something that looks like an IBAN."""
        return self.chance.choice(("DE", "GB", "FR", "ES")) + self._n(10, 99) + self._n(10**15, 10**16 - 1)

    def product(self) -> str:
        """Return a product."""
        return self.chance.choice(entries("products"))

    def job(self) -> str:
        """Return a job title."""
        return self.chance.choice(entries("jobs"))

    def heading(self) -> str:
        """Return a heading in title case."""
        return self.chance.choice(entries("headings"))

    def title(self) -> str:
        """Return a form of address."""
        return self.chance.choice(_TITLES)

    def nationality(self) -> str:
        """Return a nationality or creed."""
        return self.chance.choice(entries("nationalities"))

    def relative(self) -> str:
        """Return a person's role in another's life."""
        return self.chance.choice(entries("relatives"))

    def greeting(self) -> str:
        """Return the start of a letter."""
        return self.chance.choice(_GREETINGS)

    def goodbye(self) -> str:
        """Return the end of a letter."""
        return self.chance.choice(_GOODBYES)

    def level(self) -> str:
        """Return a log level."""
        return self.chance.choice(_LEVELS)

    def timestamp(self) -> str:
        """Return a time stamp."""
        clock = f"{self._n(10, 23)}:{self._n(10, 59)}:{self._n(10, 59)}"
        zone = self.chance.choice(("", ".123Z", "Z", ",442"))
        return f"{self._n(2020, 2027)}-{self._n(10, 12)}-{self._n(10, 28)}{self.chance.choice('T ')}{clock}{zone}"

    def token(self) -> str:
        """Return a place-holder as redaction writes it."""
        return f"[{self.chance.choice(_TOKENS)}_{self._n(1, 40)}]"
