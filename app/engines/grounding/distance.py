"""Count the single-character changes between two short texts."""


def distance(left: str, other: str, limit: int) -> int | None:
    """Return the number of insertions, deletions, changes and swaps of neighbours, or None above ``limit``.

    A common beginning and end are skipped at once; the rest costs its length times ``limit``.
    """
    if abs(len(left) - len(other)) > limit:
        return None
    begin = _shared(left, other)
    left, other = left[begin:], other[begin:]
    end = _shared(left[::-1], other[::-1])
    left, other = left[: len(left) - end], other[: len(other) - end]
    far = limit + 1
    before: list[int] = []
    last = [column if column <= limit else far for column in range(len(other) + 1)]
    for row, letter in enumerate(left, 1):
        low, high = max(1, row - limit), min(len(other), row + limit)
        now = [far] * (len(other) + 1)
        now[0] = min(row, far)
        for column in range(low, high + 1):
            same = letter == other[column - 1]
            cost = min(last[column] + 1, now[column - 1] + 1, last[column - 1] + (not same))
            if row > 1 and column > 1 and letter == other[column - 2] and left[row - 2] == other[column - 1]:
                cost = min(cost, before[column - 2] + 1)
            now[column] = min(cost, far)
        if min(now[max(0, low - 1) : high + 1]) > limit:
            return None
        before, last = last, now
    return last[-1] if last[-1] <= limit else None


def _shared(left: str, other: str) -> int:
    """Return the length of the common beginning, by binary search."""
    low, high = 0, min(len(left), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
