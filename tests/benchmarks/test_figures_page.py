"""The page of figures keeps what was not measured again."""

import pytest

from tests.benchmarks.quality import coverage_page
from tests.benchmarks.quality.identifiers import Figures
from tests.benchmarks.speed.page import updated
from tests.benchmarks.speed.report import table
from tests.pii_identifiers import KINDS

PAGE = """# Figures

<!-- figures: begin -->

### Old

| a |
| --- |
| 1 |

### Other

| a |
| --- |
| 2 |

<!-- figures: end -->

The end.
"""


def test_a_measured_table_replaces_the_one_of_its_title_and_says_when_it_was_measured():
    page = updated(PAGE, [table("Old", ["a"], [[3]])], "Measured today.")

    assert "| 3 |\n\nMeasured today.\n\n### Other" in page
    assert "| 1 |" not in page


def test_a_table_that_was_not_measured_stays_as_it_is():
    page = updated(PAGE, [table("Old", ["a"], [[3]])], "Measured today.")

    assert "### Other\n\n| a |\n| --- |\n| 2 |\n\n<!-- figures: end -->\n\nThe end.\n" in page


def test_a_new_table_comes_last():
    page = updated(PAGE, [table("New", ["a"], [[4]])], "Measured today.")

    assert page.index("### Other") < page.index("### New") < page.index("<!-- figures: end -->")


def test_writing_the_same_tables_twice_changes_nothing():
    once = updated(PAGE, [table("Old", ["a"], [[3]])], "Measured today.")

    assert updated(once, [table("Old", ["a"], [[3]])], "Measured today.") == once


def test_a_page_without_a_place_for_tables_is_refused():
    with pytest.raises(ValueError, match="figures: begin"):
        updated("# Figures\n", [], "Measured today.")


def test_the_page_of_coverage_has_the_figures_of_every_class():
    page = coverage_page.PAGE.read_text(encoding="utf-8")

    assert coverage_page.shown(page) == set(KINDS)
    assert "0.50 / 0.25 (birth date)" in coverage_page.updated(
        page, dict.fromkeys(KINDS, Figures(4, 1, 1, 1))
    )


def test_a_class_that_was_not_measured_is_refused():
    with pytest.raises(KeyError):
        coverage_page.updated("| 1.00 / 1.00 (shoe size) |", dict.fromkeys(KINDS, Figures(4, 1, 1, 1)))
