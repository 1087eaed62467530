"""The list of survivors: found by text, never by line, and reported once it matches nothing."""

from pathlib import Path

import pytest

from tests.mutation import survivors
from tests.mutation.survivors import Entry, read_entries, unmatched

ENTRY = """[[survivor]]
function = "Box.put"
before = "if size < limit:"
after = "if size <= limit:"
verdict = "{verdict}"
reason = "{reason}"
"""


def listed(tmp_path, text):
    path = tmp_path / "survivors.toml"
    path.write_text(text)
    return read_entries(path)


def test_an_entry_is_found_by_function_and_text(tmp_path):
    entries = listed(tmp_path, ENTRY.format(verdict="equivalent", reason="size is never limit"))
    assert unmatched(entries, {"Box.put": {"if size < limit:", "return size"}}) == []


@pytest.mark.parametrize("lines", [{}, {"Box.put": {"if size > limit:"}}, {"Box.take": {"if size < limit:"}}])
def test_an_entry_that_matches_nothing_is_reported(tmp_path, lines):
    entries = listed(tmp_path, ENTRY.format(verdict="accepted", reason="the limit is for show"))
    assert [entry.function for entry in unmatched(entries, lines)] == ["Box.put"]


def test_an_entry_of_several_lines_needs_all_of_them():
    entry = Entry("f", "a(\nb)", "pass", "accepted", "why")
    assert unmatched([entry], {"f": {"a(", "b)"}}) == []
    assert unmatched([entry], {"f": {"a("}}) == [entry]


@pytest.mark.parametrize(("verdict", "reason"), [("fine", "why"), ("accepted", " ")])
def test_an_entry_needs_a_verdict_that_is_known_and_a_reason(tmp_path, verdict, reason):
    with pytest.raises(ValueError, match="with a reason"):
        listed(tmp_path, ENTRY.format(verdict=verdict, reason=reason))


def test_an_entry_listed_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="twice"):
        listed(tmp_path, 2 * ENTRY.format(verdict="accepted", reason="why"))


def test_the_list_of_this_repository_can_be_read():
    read_entries(Path(survivors.__file__).with_name("survivors.toml"))
