"""Numbers that no event has are found, in whatever order events come; pruned events explain as many as they were."""

import random

import pytest

from app.core.transparency.gaps import GapSearch, NumberRange, NumberRuns, NumbersSeen, WriterGap


def seen(*numbers: int) -> NumbersSeen:
    result = NumbersSeen()
    for number in numbers:
        result = result.add(number)
    return result


@pytest.mark.parametrize(
    ("numbers", "highest", "missing"),
    [
        ((), 0, ()),
        ((1, 2, 3), 3, ()),
        ((2, 3), 3, ((1, 1),)),
        ((1, 5, 9), 9, ((2, 4), (6, 8))),
        ((1, 5, 3), 5, ((2, 2), (4, 4))),
        ((1, 5, 2, 4, 3), 5, ()),
        ((3, 3, 1), 3, ((2, 2),)),
    ],
)
def test_what_is_missing(
    numbers: tuple[int, ...], highest: int, missing: tuple[tuple[int, int], ...]
) -> None:
    assert seen(*numbers) == (highest, missing)


def test_any_order_gives_the_same_answer() -> None:
    chance = random.Random(1)
    for _ in range(50):
        numbers = chance.sample(range(1, 30), chance.randrange(1, 29))
        result = seen(*numbers)
        left = {number for first, last in result.missing for number in range(first, last + 1)}
        assert left == set(range(1, max(numbers) + 1)) - set(numbers)


def test_writers_are_told_apart() -> None:
    search = GapSearch()
    for writer, number in (("a", 1), ("b", 1), ("a", 2), ("b", 3), ("a", 3)):
        search.add(writer, number)
    assert search.gaps() == [WriterGap("b", NumberRange(2, 2))]


@pytest.mark.parametrize(("pruned", "found"), [(0, True), (1, True), (2, False), (3, False)])
def test_events_that_are_gone_explain_as_many_numbers_as_they_are(pruned: int, found: bool) -> None:
    search = GapSearch()
    search.add("a", 1)
    for _ in range(pruned):
        search.passed()
    search.add("a", 4)
    assert bool(search.gaps()) == found


def test_events_that_are_gone_elsewhere_explain_nothing() -> None:
    search = GapSearch()
    for _ in range(5):
        search.passed()
    search.add("a", 6)
    assert search.gaps() == []
    search.add("a", 8)
    for _ in range(5):
        search.passed()
    assert search.gaps() == [WriterGap("a", NumberRange(7, 7))]


def test_parts_that_are_joined_are_searched_as_the_whole() -> None:
    chance = random.Random(2)
    found = 0
    for _ in range(400):
        events: list[tuple[str, int] | None] = [None] * chance.randrange(4)
        for writer in ("a", "b"):
            events += [
                (writer, number) for number in range(1, chance.randrange(2, 12)) if chance.random() < 0.8
            ]
        if chance.random() < 0.5:  # in order but for some that come late, as a rule
            events.sort(key=lambda event: (event or ("", chance.randrange(9)))[1] + chance.randrange(3))
        else:
            chance.shuffle(events)
        whole, joined = GapSearch(), GapSearch()
        while events:
            part, events = events[: (size := chance.randrange(1, 9))], events[size:]
            runs = NumberRuns()
            for event in part:
                if event is None:
                    whole.passed()
                    runs.passed += 1
                else:
                    whole.add(*event)
                    runs.add(*event)
            joined.take(runs)
        assert sorted(joined.gaps()) == sorted(whole.gaps())
        found += bool(whole.gaps())
    assert 50 < found < 400
