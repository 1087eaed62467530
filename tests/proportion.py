"""Whether work grows with the length of its input and no faster, on a machine that is busy with other things."""

import gc
import time
from collections.abc import Callable

TRIES = 12


def assert_in_proportion(
    work: Callable[[int], object], short: int, long: int, *, harmless_s: float = 0.03
) -> None:
    """Fail where ``work`` on ``long`` takes far more CPU time than its length explains.

    So little time as ``harmless_s`` for the long input shows nothing, and passes.

    Work in proportion takes ``long / short`` times as long, quadratic work the square of that; the limit lies between.
    What else runs on the machine only adds to a measurement, so that the least of several counts, and they are
    repeated until they hold: disturbances pass, quadratic work stays.
    """

    def spent(size: int) -> float:
        begun = time.thread_time()
        work(size)
        return time.thread_time() - begun

    work(short)  # what is built at the first use is no part of it
    least_short, least_long = float("inf"), float("inf")
    was_enabled = gc.isenabled()
    gc.disable()  # it walks over what other tests of this process left
    try:
        for _ in range(TRIES):
            least_long = min(least_long, spent(long))
            if least_long <= harmless_s:
                return
            least_short = min(least_short, spent(short), spent(short))
            if least_long <= (long / short) ** 1.6 * least_short:
                return
    finally:
        if was_enabled:
            gc.enable()
    raise AssertionError(f"{short:,} took {least_short:.3f} s and {long:,} took {least_long:.3f} s")
