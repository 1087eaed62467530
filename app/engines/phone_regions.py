"""The countries whose phone numbers are recognized without the country's code."""

from typing import Final

REGIONS: Final = (
    "US",
    "GB",
    "DE",
    "FR",
    "IN",
    "IL",
    "BR",
    "IT",
    "ES",
    "NL",
    "AU",
    "ZA",
    "JP",
    "MX",
    "PL",
    "SE",
    "CH",
    "AT",
)
