"""Answers and events in which one member is of another type than any API has."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from tests.sampling import sample
from tests.unit.core.gateway.recorded import HANDLE

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 1.5, 10**20, "x", "", [], {}, [1, HANDLE], {"type": "x", "a": [None]}),
)
Path = tuple[str | int, ...]


def places_in(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all members and elements of a value."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for step, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_in(member, (*path, step))


def with_member(value: Any, path: Path, member: Any) -> Any:
    """Return a copy of ``value`` with another member at ``path``."""
    changed = holder = copy.deepcopy(value)
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = member
    return changed


def bodies(suite: str, body: Any, count: int | None = None) -> Iterator[Any]:
    """Yield a body with one member of another type: ``count`` of all ways, or each."""
    ways = [(path, member) for path in places_in(body) for member in VALUES]
    for path, member in ways if count is None else sample(suite, ways, min(count, len(ways))):
        yield with_member(body, path, member)


def streams(suite: str, raw: bytes, count: int | None = None) -> Iterator[tuple[int, int, bytes]]:
    """Yield a stream with one member of one event of another type, and where that event begins and ends."""
    events = raw.replace(b"\r\n", b"\n").split(b"\n\n")
    ways = []
    for number, event in enumerate(events):
        head, mark, data = event.partition(b"data: {")
        if mark:
            value = json.loads(b"{" + data)
            ways += [(number, head, value, path, member) for path in places_in(value) for member in VALUES]
    for number, head, value, path, member in (
        ways if count is None else sample(suite, ways, min(count, len(ways)))
    ):
        changed = head + b"data: " + json.dumps(with_member(value, path, member)).encode()
        before = b"".join(event + b"\n\n" for event in events[:number])
        yield (
            len(before),
            len(before) + len(changed) + 2,
            before + b"\n\n".join([changed, *events[number + 1 :]]),
        )
