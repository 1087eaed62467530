"""Characters of a text as an array of numbers, so that properties of all of them are computed at once."""

import numpy as np
import numpy.typing as npt


def codes_of(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of ``text``."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def strangers(codes: npt.NDArray[np.uint32]) -> str:
    """Return the characters of a text that are not ASCII, each once, sorted."""
    present = np.zeros(max(128, int(codes.max()) + 1), np.bool_)
    present[codes] = True
    return "".join(map(chr, (np.flatnonzero(present[128:]) + 128).tolist()))
