"""All recognizers of national identifiers, by region."""

from typing import Final

from app.engines.pii.recognizers.national import americas, asia, documents, east, south, west
from app.engines.pii.recognizers.national.rows import NationalRecognizer

ROWS: Final = (
    *west.ROWS,
    *east.ROWS,
    *americas.ROWS,
    *asia.ROWS,
    *south.ROWS,
    *documents.ROWS,
)
"""The rows of all regions."""


def national_recognizers() -> list[NationalRecognizer]:
    """Return one recognizer for each row of the tables."""
    return [NationalRecognizer(row) for row in ROWS]
