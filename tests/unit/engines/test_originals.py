"""Originals of any length are looked for: as they are written, in JSON and in URLs, without end to the process."""

import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from app.core.content.handles import Handle, Original
from app.engines.originals import OriginalFinder
from tests.proportion import assert_in_proportion

SENTENCE = 'Zürich to Genève, 5% off; all "quoted" lines\tof № 7. '
LENGTHS = (20, 1_023, 1_024, 1_025, 5_000, 600_000)
WAYS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "ascii": lambda text: json.dumps(text)[1:-1],
    "url": quote,
    "form": quote_plus,
}


def original(length: int, end: str = "end") -> str:
    return (SENTENCE * (length // len(SENTENCE) + 1))[: length - len(end) - 1].strip() + f" {end}"


def finder(*texts: str) -> OriginalFinder:
    made = OriginalFinder()
    for number, text in enumerate(texts, 1):
        made.add([(Handle("NOTE", number), Original(text))])
    return made


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", LENGTHS)
def test_an_original_of_any_length_is_found_where_it_stands_whole(length: int, way: str) -> None:
    text, looks = original(length), finder(original(length))
    written = WAYS[way](text)
    around = f"see {written}. and again {written}"
    found = looks.find(around)
    assert [around[match.start : match.end] for match in found] == [written] * 2
    assert {match.handle for match in found} == {Handle("NOTE", 1)}
    # All but its last letter is something else, and so is what goes on in the same word.
    assert not looks.find(f"see {WAYS[way](text[:-1])}")
    assert not looks.find(f"see {WAYS[way](text + 'ing')}")


def test_originals_that_begin_alike_are_told_apart_in_any_order() -> None:
    shared = original(1_024 * 2)[:1_024].strip() + "x"
    head = (shared * 2)[:1_024]
    texts = [f"{head} one", f"{head} two", head, f"{head} one more", "short"]
    for order in (texts, texts[::-1]):
        looks = finder(*order)
        for number, text in enumerate(order, 1):
            around = f"a {text} b"
            assert [(match.start, match.end, match.handle) for match in looks.find(around)] == [
                (2, 2 + len(text), Handle("NOTE", number))
            ]
    # The first of those that are written alike counts.
    assert finder(texts[0], texts[0]).find(texts[0])[0].handle == Handle("NOTE", 1)
    assert finder(head, head).find(head)[0].handle == Handle("NOTE", 1)


def test_what_is_kept_of_a_long_original_is_little_more_than_its_text() -> None:
    assert finder(original(600_000)).size < 6 * 600_000


def test_time_grows_with_the_text_where_everything_repeats() -> None:
    def searched(size: int) -> None:
        looks = finder("ab " * (size // 2) + "no", "ab " * (size // 3) + "yes")
        looks.find("ab " * size)
        looks.find(quote("ab " * size) + "%20no")

    assert_in_proportion(searched, 20_000, 160_000)
