"""How many single-character changes lie between two short texts."""


def distance(one: str, other: str, limit: int) -> int | None:
    """Return the number of insertions, deletions, changes and swaps of neighbours, or None above ``limit``.

    The work is bounded by ``limit`` times the length.
    """
    if abs(len(one) - len(other)) > limit:
        return None
    far = limit + 1
    before: list[int] = []
    last = [column if column <= limit else far for column in range(len(other) + 1)]
    for row, letter in enumerate(one, 1):
        low, high = max(1, row - limit), min(len(other), row + limit)
        now = [far] * (len(other) + 1)
        now[0] = min(row, far)
        for column in range(low, high + 1):
            same = letter == other[column - 1]
            cost = min(last[column] + 1, now[column - 1] + 1, last[column - 1] + (not same))
            swapped = (
                row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == other[column - 1]
            )
            if swapped:
                cost = min(cost, before[column - 2] + 1)
            now[column] = min(cost, far)
        if min(now[max(0, low - 1) : high + 1]) > limit:
            return None
        before, last = last, now
    return last[-1] if last[-1] <= limit else None
