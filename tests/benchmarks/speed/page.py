"""Keep docs/figures.md: put freshly measured tables in the place of the older ones of the same title."""

import re
from collections.abc import Sequence

BEGIN = "<!-- figures: begin -->"
END = "<!-- figures: end -->"
HEADING = re.compile(r"^(?=### )", re.MULTILINE)


def updated(page: str, tables: Sequence[str], measured: str) -> str:
    """Return ``page`` with ``tables``, each followed by the sentence ``measured``.

    A table replaces the one of the same title. A new table comes last, and a table that was not measured this time
    stays as it is. Raises ValueError where the page has no place for tables.
    """
    before, begin, rest = page.partition(BEGIN)
    body, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"The page has no {BEGIN} followed by {END}.")
    sections = {title_of(section): section.strip() for section in HEADING.split(body) if section.strip()}
    sections |= {title_of(table): f"{table.strip()}\n\n{measured}" for table in tables}
    return "\n\n".join([before + begin, *sections.values(), end]) + after


def title_of(table: str) -> str:
    """Return the first line of a table's section, without the marks of a heading."""
    return table.lstrip("# \n").partition("\n")[0].strip()
