"""Every recognizer of a national identifier, region by region."""

from typing import Final

from app.engines.pii import (
    recognizers_national_americas,
    recognizers_national_asia,
    recognizers_national_documents,
    recognizers_national_east,
    recognizers_national_west,
)
from app.engines.pii.recognizers_national import NationalRecognizer

ROWS: Final = (
    *recognizers_national_west.ROWS,
    *recognizers_national_east.ROWS,
    *recognizers_national_americas.ROWS,
    *recognizers_national_asia.ROWS,
    *recognizers_national_documents.ROWS,
)
"""The rows of all regions."""


def national_recognizers() -> list[NationalRecognizer]:
    """Return one recognizer for each row of the tables."""
    return [NationalRecognizer(row) for row in ROWS]
