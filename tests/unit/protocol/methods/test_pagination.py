"""Pages of a list in memory: every item once, no empty last page, and no cursor of another list."""

import base64
import hashlib

import pytest

from app.core.errors import InvalidArgumentsError
from app.protocol.methods.pagination import page, page_of


def pages(count: int, size: int) -> list[list[int]]:
    items, names = list(range(count)), [str(number) for number in range(count)]
    found: list[list[int]] = []
    cursor: str | None = None
    while True:
        part, cursor = page(items, names, cursor, size)
        found.append(list(part))
        if cursor is None:
            return found


@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [
        (0, 2, [[]]),
        (1, 2, [[0]]),
        (2, 2, [[0, 1]]),
        (3, 2, [[0, 1], [2]]),
        (4, 2, [[0, 1], [2, 3]]),
        (3, 1, [[0], [1], [2]]),
    ],
)
def test_every_item_is_on_one_page_and_no_page_is_empty(
    count: int, size: int, expected: list[list[int]]
) -> None:
    assert pages(count, size) == expected


def test_a_cursor_of_another_list_is_refused() -> None:
    _, cursor = page([1, 2, 3], ["a", "b", "c"], None, 2)
    assert cursor is not None
    for names in (["a", "b", "d"], ["b", "a", "c"], ["ab", "c"], ["a", "b", "c", "d"]):
        with pytest.raises(InvalidArgumentsError):
            page(names, names, cursor, 2)


@pytest.mark.parametrize("start", [0, 3, 4])
def test_a_cursor_that_points_before_the_second_item_or_behind_the_last_is_none_of_ours(start: int) -> None:
    fingerprint = hashlib.sha256(b"list").digest()
    cursor = base64.urlsafe_b64encode(fingerprint[:9] + start.to_bytes(3)).decode()
    with pytest.raises(InvalidArgumentsError) as refused:
        page_of([1, 2, 3], fingerprint, cursor, 2)
    assert refused.value.details == {"pointer": "/cursor"}


@pytest.mark.parametrize(
    "change", [lambda text: text + "AAAA", lambda text: text[:-4], lambda _: "é", lambda _: "%"]
)
def test_what_is_no_cursor_is_refused(change: object) -> None:
    _, cursor = page([1, 2, 3], ["a", "b", "c"], None, 2)
    with pytest.raises(InvalidArgumentsError):
        page([1, 2, 3], ["a", "b", "c"], change(cursor), 2)  # type: ignore[operator]
