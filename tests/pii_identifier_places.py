# ruff: noqa: E501, SIM905 - tables of templates and values keep a row on a line
"""Values of identifiers that differ by country: addresses, post codes, dates."""

import datetime as dt
import random
import string

from tests.pii_identifier_values import digits

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
_SHORT = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def day(draw: random.Random) -> dt.date:
    """Return a day on which a person of today may be born or treated."""
    return dt.date(1930, 1, 1) + dt.timedelta(days=draw.randrange(35_000))


def date(draw: random.Random, language: str | None = None) -> str:
    """Return a date as it is written in one of seven languages."""
    when, language = day(draw), language or draw.choice(sorted(_MONTHS))
    month = _MONTHS[language].split()[when.month - 1]
    forms = {
        "en": (f"{month} {when.day}, {when.year}", f"{when.day} {month} {when.year}", f"{when:%m/%d/%Y}", f"{when:%m-%d-%Y}",
               f"{_SHORT[when.month - 1]} {when.day}, {when.year}", f"{when.day}-{_SHORT[when.month - 1]}-{when.year}",
               f"{when:%Y-%m-%d}", f"{when:%m/%d/%y}", f"{when.month}/{when.day}/{when.year}", f"{month} {when.day}th, {when.year}"),
        "de": (f"{when:%d.%m.%Y}", f"{when.day}. {month} {when.year}", f"{when:%d.%m.%y}", f"{when.day}.{when.month}.{when.year}"),
        "fr": (f"{when:%d/%m/%Y}", f"{when.day} {month} {when.year}", f"1er {month} {when.year}"),
        "es": (f"{when:%d/%m/%Y}", f"{when.day} de {month} de {when.year}"),
        "it": (f"{when:%d/%m/%Y}", f"{when.day} {month} {when.year}"),
        "pt": (f"{when:%d/%m/%Y}", f"{when.day} de {month} de {when.year}"),
        "nl": (f"{when:%d-%m-%Y}", f"{when.day} {month} {when.year}"),
    }  # fmt: skip
    return draw.choice(forms[language])


def english_date(draw: random.Random) -> str:
    """Return a date as English texts write one."""
    return date(draw, "en")


def age_over_89(draw: random.Random) -> str:
    """Return the age of the very old."""
    return str(draw.choice((90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 101, 103, 107)))


def postcode(draw: random.Random) -> str:
    """Return a post code of one of nine forms."""
    one, two = ("".join(draw.choices("ABDEGHJLNPRSTUW", k=count)) for count in (1, 2))
    return draw.choice((digits(draw, 5), f"{digits(draw, 5)}-{digits(draw, 4)}", f"{two}{digits(draw, 1)} {digits(draw, 1)}{two}",
                        f"K{digits(draw, 1)}{one} {digits(draw, 1)}{one}{digits(draw, 1)}", f"{digits(draw, 4)} {two}",
                        f"{digits(draw, 5)}-{digits(draw, 3)}", f"{digits(draw, 4)}", f"{digits(draw, 6)}",
                        f"{digits(draw, 3)}-{digits(draw, 4)}"))  # fmt: skip


def address(draw: random.Random) -> str:
    """Return a street address as it is written in one of eleven countries, often with post code and town."""
    country = draw.choice(
        ("us", "us", "us", "gb", "gb", "de", "de", "fr", "es", "it", "nl", "br", "in", "ca", "au", "box")
    )
    number, five = str(draw.randint(1, 240)), digits(draw, 5)
    whole = draw.random() < 0.7
    if country in {"us", "ca", "au"}:
        street = draw.choice(
            (
                "Maple",
                "Old Mill",
                "Lincoln",
                "N 5th",
                "West 42nd",
                "Evergreen",
                "SW Harbor",
                "Martin Luther King Jr",
            )
        )
        kind = draw.choice(
            (
                "Street",
                "St",
                "Ave",
                "Avenue",
                "Blvd",
                "Rd",
                "Road",
                "Lane",
                "Dr.",
                "Drive",
                "Terrace",
                "Court",
                "Way",
            )
        )
        unit = draw.choice(("", "", "", ", Apt 4B", " Suite 210", ", Unit 7", " #12"))
        town = {"us": f"Springfield, {draw.choice(('IL', 'CA', 'TX', 'NY'))} {five}", "ca": "Ottawa, ON K1A 0B6",
                "au": f"Fitzroy VIC {digits(draw, 4)}"}[country]  # fmt: skip
        line = f"{digits(draw, draw.choice((2, 3, 4)))} {street} {kind}{unit}"
        return f"{line}, {town}" if whole else line
    if country == "gb":
        line = f"{number} {draw.choice(('High', 'Victoria', 'Station', 'Church', 'Kingsway'))} {draw.choice(('Street', 'Road', 'Lane', 'Gardens', 'Close'))}"
        return (
            f"{line}, {draw.choice(('London SW1A 2AA', 'Leeds LS1 4DY', 'Bristol, BS1 5TR'))}"
            if whole
            else line
        )
    if country == "de":
        street = draw.choice(
            (
                "Musterstraße",
                "Hauptstr.",
                "Lindenweg",
                "Goetheplatz",
                "Am Markt",
                "Berliner Allee",
                "Schlossgasse",
            )
        )
        return f"{street} {number}{draw.choice(('', 'a', ' b'))}{f', {five} Berlin' if whole else ''}"
    if country == "box":
        return f"P.O. Box {number}{f', Denver, CO {five}' if whole else ''}"
    return {
        "fr": f"{number} {draw.choice(('rue de la Paix', 'avenue Victor Hugo', 'boulevard Saint-Michel', 'place Bellecour'))}{f', {five} Lyon' if whole else ''}",
        "es": f"{draw.choice(('Calle Mayor', 'Avenida de América', 'C/ Alcalá', 'Plaza de España'))} {number}{f', {five} Madrid' if whole else ''}",
        "it": f"{draw.choice(('Via Roma', 'Viale Monza', 'Corso Garibaldi', 'Piazza del Duomo'))} {number}{f', {five} Milano' if whole else ''}",
        "nl": f"{draw.choice(('Keizersgracht', 'Dorpsstraat', 'Kerkweg', 'Beethovenlaan'))} {number}{f', {digits(draw, 4)} AB Amsterdam' if whole else ''}",
        "br": f"{draw.choice(('Rua das Flores', 'Avenida Paulista', 'Travessa do Carmo'))}, {number}{f', São Paulo - SP, {five}-000' if whole else ''}",
        "in": f"{number}, {draw.choice(('MG Road', 'Nehru Nagar', 'Gandhi Marg'))}{f', Bengaluru 5600{digits(draw, 2)}' if whole else ''}",
    }[country]  # fmt: skip


def profile(draw: random.Random) -> str:
    """Return the page of a person on the web."""
    name = "".join(draw.choices(string.ascii_lowercase, k=8))
    return draw.choice((f"https://www.linkedin.com/in/{name}", f"https://instagram.com/{name}", f"facebook.com/{name}.{name[:3]}",
                        f"https://example.org/~{name}", f"https://people.example.com/{name}/cv.html"))  # fmt: skip
