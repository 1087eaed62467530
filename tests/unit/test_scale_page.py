"""docs/scale.md: its results follow from its parts by its formulas."""

import math
import re

from tests.pages import ROOT

PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
RATES = (1_000, 10_000, 100_000)
BUSY, DAYS, CORES, CONNECTIONS = 0.6, 30, 16, 11


def table(heading: str) -> dict[str, list[str]]:
    """Return the rows of the first table below a heading, by their first cell."""
    text = PAGE.split(f"\n## {heading}\n", 1)[1]
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert lines is not None
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in lines[0].splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def part(letter: str) -> float:
    """Return the mean of a part's two columns."""
    (row,) = [cells for name, cells in table("Parts").items() if name.startswith(f"`{letter}`")]
    return (float(row[0]) + float(row[1])) / 2


def computed(rate: int) -> dict[str, float]:
    cores = math.ceil(round(rate * part("c") / 1000 / BUSY, 6))
    return {
        "cores of the service": cores,
        "machines of the service": math.ceil(cores / CORES) + 1,
        "connections": cores * CONNECTIONS,
        "cores of PostgreSQL": math.ceil(round(rate * part("d") / 1000 / BUSY, 6)),
        "write-ahead log, MB/s": rate * part("w") / 1000,
        "disk, TB": rate / 3 * part("b") * 86_400 * DAYS / 1e9,
        "databases": math.ceil(round(rate * part("s") / 1000 / BUSY, 6)),
    }


def test_each_result_follows_from_the_parts() -> None:
    results = table("Results")
    for column, rate in enumerate(RATES):
        expected = computed(rate)
        assert expected.keys() == results.keys()
        for name, value in expected.items():
            shown = float(results[name][column].replace(",", ""))
            assert abs(shown - value) <= 0.05 + 1e-9, (name, rate, value)


def test_the_formulas_name_every_result_and_the_means_are_those_of_the_parts() -> None:
    assert table("Formulas").keys() == table("Results").keys()
    shown = re.findall(r"`([cdwbs])` ([0-9.]+) (?:ms|KB)[,.]", PAGE)
    assert [letter for letter, _ in shown] == ["c", "d", "w", "b", "s"]
    assert all(float(value) == part(letter) for letter, value in shown)
