"""Records with names in them, as JSON, YAML, XML, CSV-like pairs, log fields and tool calls."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from app.engines.pii.training.examples import Example, joined
from app.engines.pii.training.lists import happens

Render = Callable[[str], Example]

_PERSON_KEYS = (
    *(
        "name",
        "full_name",
        "fullName",
        "customer",
        "customer_name",
        "contact",
        "owner",
        "author",
        "user",
        "displayName",
    ),
    *(
        "employee",
        "patient",
        "recipient",
        "sender",
        "assignee",
        "created_by",
        "manager",
        "cardholder",
        "passenger",
    ),
    *(
        "Name",
        "from",
        "to",
        "reviewer",
        "requested_by",
        "Account Holder",
        "beneficiary",
        "guest_name",
        "signedBy",
    ),
)
_KEYS: tuple[tuple[float, tuple[str, ...], str], ...] = (
    (0.75, _PERSON_KEYS, "{person}"),
    (0.25, ("first_name", "firstName", "given_name", "fname", "First Name", "givenName"), "{first}"),
    (0.25, ("last_name", "lastName", "surname", "family_name", "lname", "Last Name"), "{last}"),
    (
        0.5,
        ("city", "town", "location", "birthplace", "City", "destination", "origin", "branch", "region"),
        "{city}",
    ),
    (0.35, ("country", "Country", "country_name", "nationality_country"), "{country}"),
    (
        0.4,
        ("address", "street_address", "shipping_address", "billing_address", "Address", "addr"),
        "{address}",
    ),
    (
        0.35,
        ("company", "organization", "employer", "org", "companyName", "vendor", "client", "school"),
        "{company}",
    ),
)
_OTHER = (
    *(
        ("email", "{email}"),
        ("phone", "{phone}"),
        ("id", "{id}"),
        ("product", "{product}"),
        ("created_at", "{timestamp}"),
    ),
    *(
        ("ip", "{ip}"),
        ("job_title", "{job}"),
        ("username", "{user}"),
        ("amount", "{money}"),
        ("date_of_birth", "{date}"),
    ),
    *(
        ("url", "{url}"),
        ("subject", "{heading}"),
        ("status", ""),
        ("plan", ""),
        ("type", ""),
        ("department", ""),
    ),
    *(
        ("notes", ""),
        ("language", ""),
        ("filename", "report_final.pdf"),
        ("class", "OrderService"),
        ("model", "{product}"),
    ),
    *(("title", "{heading}"), ("tag", ""), ("topic", "{heading}"), ("ref", "{token}"), ("level", "{level}")),
)
_PLAIN = (
    *(
        "active",
        "Gold",
        "Pending",
        "true",
        "Open",
        "Closed",
        "Enterprise",
        "new",
        "High",
        "Refund Request",
        "Sales",
    ),
    *(
        "Engineering",
        "English",
        "German",
        "Urgent",
        "Standard Shipping",
        "Premium Plan",
        "null",
        "Friday",
        "Invoice",
    ),
    *(
        "Monthly Report",
        "Data Science",
        "Backlog",
        "In Progress",
        "Customer Success",
        "Blue",
        "Standard",
        "Draft",
    ),
)
_TOOLS = (
    "create_ticket",
    "send_email",
    "lookup_customer",
    "update_record",
    "crm.create_contact",
    "book_flight",
)
_STYLES = (
    "json",
    "json",
    "json",
    "json lines",
    "pairs",
    "yaml",
    "xml",
    "python",
    "query",
    "log",
    "tool",
    "labels",
)


@dataclass(slots=True)
class Records:
    """Make up records; every choice comes from `chance`."""

    chance: random.Random
    render: Render

    def any(self) -> Example:
        """Return a record in one of the styles."""
        style = self.chance.choice(_STYLES)
        parts = [self._field(style, key, self._value(slot)) for key, slot in self._chosen()]
        return self._assembled(style, parts)

    def _chosen(self) -> list[tuple[str, str]]:
        fields = [
            (self.chance.choice(keys), slot) for odds, keys, slot in _KEYS if self.chance.random() < odds
        ]
        fields += self.chance.sample(_OTHER, self.chance.randint(1, 5))
        self.chance.shuffle(fields)
        return list(dict(fields).items())

    def _value(self, slot: str) -> Example:
        if slot == "{person}" and happens(self.chance, 0.08):
            slot = "{native}"
        value = self.render(slot) if slot else Example(self.chance.choice(_PLAIN))
        return Example(value.text.replace("\n", " "), value.spans)

    def _field(self, style: str, key: str, value: Example) -> Example:
        tag = key.replace(" ", "_")
        colon = '": "' if happens(self.chance, 0.8) else '":"'
        before, after = {
            "pairs": (f"{key}=", ""),
            "yaml": (f"{key}: ", ""),
            "labels": (f"{key.replace('_', ' ').title()}: ", ""),
            "xml": (f"<{tag}>", f"</{tag}>"),
            "python": (f"'{key}': '", "'"),
            "query": (f"{tag}=", ""),
            "log": (f'{key}="', '"'),
        }.get(style, (f'"{key}{colon}', '"'))
        return joined([Example(before), value, Example(after)], "")

    def _assembled(self, style: str, parts: list[Example]) -> Example:
        if style in ("yaml", "labels"):
            return joined(parts, "\n")
        if style == "query":
            return joined(parts, "&")
        if style == "pairs":
            return joined(parts, self.chance.choice((" ", "; ", ", ")))
        if style == "log":
            return joined([self.render("{timestamp} {level} "), joined(parts, " ")], "")
        before, between, after = {
            "json lines": ("{\n  ", ",\n  ", "\n}"),
            "tool": ('{"tool": "' + self.chance.choice(_TOOLS) + '", "arguments": {', ", ", "}}"),
            "xml": ("<record>", self.chance.choice(("", "\n")), "</record>"),
        }.get(style, ("{", ", ", "}"))
        return joined([Example(before), joined(parts, between), Example(after)], "")
