"""Compute embeddings with the OpenAI-compatible ``/embeddings``."""

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from app.core.contracts.engines import Embeddings, EngineReport
from app.engines.remote.client import RemoteAnswer, RemoteClient
from app.engines.resilience import RemoteEngineError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENGINE = "remote-embeddings"
_TEXTS_AT_ONCE = 64
_FLOAT_BYTES = 4
_SMALLEST = 1e-12


class _Entry(RemoteAnswer):
    index: Annotated[int, Field(ge=0)]
    embedding: list[float] | str


class _Entries(RemoteAnswer):
    data: list[_Entry]


class RemoteEmbedder:
    """Requests vectors in batches; all vectors, also those of later calls, must have the same length."""

    def __init__(self, client: RemoteClient) -> None:
        self._client = client
        self._dimensions: int | None = None

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return a vector for each of ``texts``; the report's version is the model's name."""
        vectors: list[bytes] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            vectors += await self._batch(texts[start : start + _TEXTS_AT_ONCE])
        return Embeddings(vectors, EngineReport(ENGINE, self._client.options.model))

    async def _batch(self, texts: Sequence[str]) -> list[bytes]:
        body = {
            "model": self._client.options.model,
            "input": [text or " " for text in texts],  # servers refuse an empty text
            "encoding_format": "float",
        }
        entries = (await self._client.post("/embeddings", body, _Entries)).data
        if sorted(entry.index for entry in entries) != list(range(len(texts))):
            raise RemoteEngineError("wrong number of results")
        rows = [_numbers(entry.embedding) for entry in sorted(entries, key=lambda entry: entry.index)]
        if len({len(row) for row in rows} | ({self._dimensions} if self._dimensions else set())) > 1:
            raise RemoteEngineError("vectors of different lengths")
        self._dimensions = len(rows[0])
        return [_unit(row).tobytes() for row in rows]


def requests_for(texts: Sequence[str]) -> int:
    """Return how many requests `RemoteEmbedder.embed` makes for ``texts``."""
    return max(1, -(-len(texts) // _TEXTS_AT_ONCE))


def _numbers(value: list[float] | str) -> "NDArray[np.float32]":
    """Return a vector that came as numbers, or as base64 of little-endian floats."""
    import numpy as np  # noqa: PLC0415 - loaded with the first vector

    if isinstance(value, list):
        return np.array(value, dtype="<f4")
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise RemoteEngineError("malformed vector") from None
    if len(data) % _FLOAT_BYTES:
        raise RemoteEngineError("malformed vector")
    return np.frombuffer(data, dtype="<f4")


def _unit(row: "NDArray[np.float32]") -> "NDArray[np.float32]":
    import numpy as np  # noqa: PLC0415 - as above

    length = float(np.linalg.norm(row.astype(np.float64))) if len(row) else 0.0
    if not np.isfinite(length) or length < _SMALLEST:
        raise RemoteEngineError("a vector without direction")
    return (row / np.float32(length)).astype("<f4")
