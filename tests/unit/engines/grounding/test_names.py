"""Which names and handles the sources have."""

import pytest

from tests.unit.engines.grounding.checking import findings, found_texts

SOURCE = (
    "Jane Smithson of Acme Robotics met Peter Okonkwo in Berlin. "
    "The API is documented. [PERSON_1] and [SECRET_AWS_2]"
)


@pytest.mark.parametrize(
    "answer",
    [
        "Yesterday Jane Smithson met Peter Okonkwo in Berlin.",
        "Smithson's firm is Acme Robotics.",
        "On Monday, they spoke English about the API and JSON.",
        "## Main Findings And Results\n\nthey met.",
        "**Key Takeaways:**\nthey met.",
        "- Second, they met.\n- Then they left.",
        "Therefore it works. However, it is slow.",
        "Der Bericht nennt das Treffen der Firma und die Stadt, in der man sich im Oktober wegen der Maschinen traf.",
    ],
)
async def test_names_of_the_sources_and_ordinary_capitals_pass(answer):
    assert await found_texts("names", answer, SOURCE) == []


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("They met in Lisbon.", "Lisbon"),
        ("The firm was founded by Elena Petrova last year.", "Elena Petrova"),
        ("She works with Peter Novak on it.", "Peter Novak"),
    ],
)
async def test_names_that_they_do_not_have_are_found(answer, name):
    assert await found_texts("names", answer, SOURCE) == [name]


async def test_a_misspelt_name_is_mended_where_the_rest_of_it_fits():
    (found,) = await findings("names", "They asked Jane Smithsen about it.", SOURCE)
    assert found.fix == "Smithson"
    (alone,) = await findings("names", "They flew to Berlyn for it.", SOURCE)
    assert (alone.fix, alone.suggestions) == (None, ("Berlin",))


async def test_names_that_do_not_stand_together_are_a_remark():
    (found,) = await findings("names", "They asked Jane Okonkwo about it.", SOURCE)
    assert found.severity == "low"


@pytest.mark.parametrize(
    "answer", ["[PERSON_1] wrote it.", "person_1 wrote it.", "Use [SECRET_AWS_2].", "a[INDEX_1] = 2"]
)
async def test_known_handles_and_what_is_none_pass(answer):
    assert await found_texts("handles", answer, SOURCE) == []


@pytest.mark.parametrize("answer", ["[PERSON_2] wrote it.", "[EMAIL_1] wrote it.", "Use [SECRET_AWS_3]."])
async def test_a_handle_that_stands_for_nothing_is_found(answer):
    (found,) = await findings("handles", answer, SOURCE)
    assert found.severity == "high"


@pytest.mark.parametrize(
    "answer", ["Jame Smithson met him.", "He met Jame Smithson.", "Peter met Jame Smithson."]
)
async def test_a_short_word_is_mended_where_the_rest_of_the_name_fits(answer):
    (found,) = await findings("names", answer, SOURCE)
    assert (found.fix, answer[found.start : found.end]) == ("Jane", "Jame")


async def test_a_first_word_of_a_sentence_is_no_part_of_the_name_behind_it():
    assert await found_texts("names", "Once Smithson met him.", SOURCE) == []
