"""Measure each class of identifiers through the middleware and write the figures into docs/detection-coverage.md.

Run ``python -m tests.benchmarks.quality.coverage_page``; it takes a minute or two.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.quality.identifiers import Figures, detector, figures
from tests.pii_identifiers import KINDS

PAGE = Path(__file__).parents[3] / "docs" / "detection-coverage.md"
TEXTS = 200
_FIGURE = re.compile(r"[01]\.\d\d / [01]\.\d\d \((?P<name>[\w, \-]+)\)")
"""Precision and recall with the class that they are about: ``1.00 / 0.97 (birth date)``."""


def main() -> None:
    """Measure, and write the page."""
    measured = figures(detector(), "held-out", TEXTS)
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")


def updated(page: str, measured: Mapping[str, Figures]) -> str:
    """Return ``page`` with the figures of all classes; raise KeyError for a class that does not exist."""
    by_name = {_plain(kind): made for kind, made in measured.items()}

    def figure(place: re.Match[str]) -> str:
        made = by_name[_plain(place["name"])]
        return f"{made.precision:.2f} / {made.recall:.2f} ({place['name']})"

    return _FIGURE.sub(figure, page)


def shown(page: str) -> set[str]:
    """Return the classes whose figures stand on ``page``."""
    names = {_plain(kind): kind for kind in KINDS}
    return {names[_plain(place["name"])] for place in _FIGURE.finditer(page)}


def _plain(name: str) -> str:
    """Return a name without case and punctuation."""
    return " ".join(re.findall(r"\w+", name.casefold()))


if __name__ == "__main__":
    main()
