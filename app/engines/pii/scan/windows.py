"""Compute where to search: around each hit as far as a match can reach; windows that touch are joined."""

from app.engines.pii.scan.bytesets import members
from app.engines.pii.scan.superset import Probe

_STEP = 64
_LONG_STEP = 4096


def windows_of(
    probe: Probe | None, ends: list[int] | None, seen: bytes, grain: int
) -> tuple[list[tuple[int, int]], int]:
    """Return the windows in which matches begin and end, and how many more characters the pattern has to read.

    ``ends`` of None: anywhere. A window contains whole matches: none crosses its borders.
    """
    size = len(seen) - 2
    if probe is None or ends is None:
        return [(0, size)], 0
    if probe.begins and grain == 1:
        return [(begin, begin + 1) for begin in sorted(set(ends))], 0
    if ends[0] > ends[-1] or len(ends) > 1:
        ends.sort()
    back, fore = probe.back + grain, probe.fore + 1
    windows: list[tuple[int, int]] = []
    low, high = -1, -1
    for end in ends:
        # The image begins with the edge, so the text's offset of an end is one less.
        start, stop = end - 1 - back, end - 1 + fore
        if probe.left and start > high:
            start = _leftward(seen, start, high, probe.left) - back
        if start <= high and high >= 0:
            if stop <= high:
                continue
        else:
            if high >= 0:
                windows.append((low, high))
            low = max(start, 0)
        high = _rightward(seen, stop, probe.right) + fore if probe.right else stop
    windows.append((low, min(high, size)))
    reach = probe.ahead if probe.left or probe.right else probe.ahead + probe.back + probe.fore
    return windows, reach + 1


def _leftward(seen: bytes, start: int, limit: int, alphabet: int) -> int:
    """Return how far to the left of ``start`` characters of ``alphabet`` go on, but no further than ``limit``."""
    inside = members(alphabet)
    place, step = start + 1, _STEP
    while place > max(limit, 0):
        low = max(place - step, limit, 0)
        rest = seen[low:place].rstrip(inside)
        if rest:
            return low + len(rest) - 1
        place, step = low, _LONG_STEP
    return max(limit, 0)


def _rightward(seen: bytes, stop: int, alphabet: int) -> int:
    """Return how far to the right of ``stop`` characters of ``alphabet`` go on."""
    inside = members(alphabet)
    place, step, size = stop + 1, _STEP, len(seen) - 1
    while place < size:
        part = seen[place : place + step]
        rest = part.lstrip(inside)
        if rest:
            return place + len(part) - len(rest) - 1
        place, step = place + step, _LONG_STEP
    return size - 1
