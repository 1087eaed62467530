"""The shared sentence encoder: MiniLM-L6 in 8 bits on ONNX Runtime, loaded once per process, on first use."""

import asyncio
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from app.core.contracts.engines import Embeddings, EngineReport
from app.engines.encoder.model import WEIGHTS, EncoderUnavailableError, Model

__all__ = ["ENGINE", "Encoder", "EncoderUnavailableError"]

ENGINE = "embedded-minilm-l6"
_REMEMBERED = 8_192
_THREADS = 2
_KEY_BYTES = 32
_DIGEST_BYTES = 16


class Encoder:
    """The embedded Embedder: 384 numbers for the first 256 tokens of a text.

    Vectors of the last ``remembered`` texts are kept under digests by a key of this process, never the texts.
    Where the weights or the runtime are absent each call raises EncoderUnavailableError, at once.
    """

    def __init__(self, folder: Path = WEIGHTS, *, remembered: int = _REMEMBERED) -> None:
        self._folder = folder
        self._remembered = remembered
        self._known: OrderedDict[bytes, bytes] = OrderedDict()
        self._key = os.urandom(_KEY_BYTES)
        self._loading = threading.Lock()
        self._loaded: Model | EncoderUnavailableError | None = None
        # Use separate threads, so that a long ingestion does not block those of the rest of the service.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="encoder")

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return a vector for each of ``texts``; a cancelled call ends after its current batch."""
        loop = asyncio.get_running_loop()
        # A round trip to a thread takes as long as a short text, so avoid one for a loaded model and for the end.
        model = self._loaded
        if model is None or isinstance(model, EncoderUnavailableError):
            model = await loop.run_in_executor(self._threads, self._model)
        digests = [self._digest(text) for text in texts]
        vectors = {digest: vector for digest in digests if (vector := self._recall(digest)) is not None}
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in vectors}
        order, recalled = list(missing), len(vectors)
        batches = model.batches(list(missing.values()))
        while len(vectors) < len(order) + recalled:
            for position, vector in zip(
                *await loop.run_in_executor(self._threads, next, batches), strict=True
            ):
                vectors[order[position]] = vector
                self._remember(order[position], vector)
        return Embeddings([vectors[digest] for digest in digests], EngineReport(ENGINE, model.version[:12]))

    def _model(self) -> Model:
        """Return the model, which the first caller loads; a failure is cached, too."""
        with self._loading:
            if self._loaded is None:
                try:
                    self._loaded = Model(self._folder)
                except EncoderUnavailableError as error:
                    self._loaded = error
        if isinstance(self._loaded, EncoderUnavailableError):
            raise EncoderUnavailableError(self._loaded.message)
        return self._loaded

    def _digest(self, text: str) -> bytes:
        data = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self._key, digest_size=_DIGEST_BYTES).digest()

    def _recall(self, digest: bytes) -> bytes | None:
        vector = self._known.get(digest)
        if vector is not None:
            self._known.move_to_end(digest)
        return vector

    def _remember(self, digest: bytes, vector: bytes) -> None:
        self._known[digest] = vector
        while len(self._known) > self._remembered:
            self._known.popitem(last=False)
