"""Which quotations the sources have word by word."""

import pytest

from tests.unit.engines.grounding.checking import findings, found_texts

SOURCE = (
    "The committee met on Monday. It was the best meeting of the year, and nobody left before noon. "
    "Never store secrets in the repository of a project."
)


@pytest.mark.parametrize(
    "answer",
    [
        'He said "it was the best meeting of the year".',
        "He said \u201cIt was the best meeting of the year, and nobody left before noon.\u201d",
        'It says: "It was the best meeting \u2026 and nobody left before noon."',
        'It says: "It was the best meeting of the [entire] year, and nobody left".',
        "> Never store secrets in the repository of a project.",
        'A so-called "best practice" is no quotation.',
        '`"this is code and no quotation of anybody"`',
    ],
)
async def test_what_stands_there_passes(answer):
    assert await found_texts("quotes", answer, SOURCE) == []


@pytest.mark.parametrize(
    ("answer", "fix"),
    [
        (
            'It says "Never store secrets in the repo of a project".',
            "Never store secrets in the repository of a project",
        ),
        (
            'It says "Never store secret in the repository of a project".',
            "Never store secrets in the repository of a project",
        ),
        (
            'It says "Always store secrets in the repository of a project!"',
            "Never store secrets in the repository of a project",
        ),
        (
            "> It was the best meeting of the whole year, and nobody left before noon.",
            "It was the best meeting of the year, and nobody left before noon",
        ),
        (
            'It says "it was the best meeting of the year, and nobody left before midnight".',
            "It was the best meeting of the year, and nobody left before noon",
        ),
        (
            'It says "the committee met on Monday evening".',
            "The committee met on Monday",
        ),
    ],
)
async def test_a_misquotation_comes_with_the_words_of_the_source(answer, fix):
    (found,) = await findings("quotes", answer, "Something else.", SOURCE)
    assert found.fix == fix
    assert found.place is not None
    assert SOURCE[found.place.start : found.place.end] == fix
    assert found.place.source == 1


async def test_words_that_nobody_said_are_found():
    (said,) = await findings("quotes", 'The chair said "we shall all sail to Peru".', SOURCE)
    (plain,) = await findings("quotes", 'Remember: "we shall all sail to Peru tomorrow".', SOURCE)
    assert (said.severity, said.fix) == ("high", None)
    assert plain.severity == "medium"


async def test_two_passages_that_fit_equally_are_no_fix():
    source = "Store the red keys in the vault at night. Store the blue keys in the vault at night."
    (found,) = await findings("quotes", 'It says "Store the green keys in the vault at night".', source)
    assert found.fix is None
