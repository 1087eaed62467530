"""Storing float32 matrices in 8 bits: each column or row by its own scale, symmetric about zero."""

import numpy as np
from numpy.typing import NDArray

from app.engines.encoder.export.source import Array

LARGEST = 127
# Only maxima, divisions and roundings: exact in IEEE arithmetic, so every machine gets the same bytes.


def quantized_columns(matrix: Array) -> tuple[NDArray[np.int8], Array]:
    """Return the 8-bit form of ``matrix`` and the scale of each column."""
    scales = _scales(np.abs(matrix).max(axis=0))
    return np.rint(matrix / scales).astype(np.int8), scales


def quantized_rows(matrix: Array) -> tuple[NDArray[np.int8], Array]:
    """Return the 8-bit form of ``matrix`` and the scale of each row."""
    scales = _scales(np.abs(matrix).max(axis=1))
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales


def _scales(largest: Array) -> Array:
    one = np.float32(1)
    return np.where(largest > 0, largest / np.float32(LARGEST), one).astype(np.float32)
