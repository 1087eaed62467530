"""Decode an answer that a provider compressed although it was asked not to, piece by piece."""

import zlib
from collections.abc import Iterator
from typing import Final

PIECE_BYTES: Final = 65_536
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS


class UnreadableEncodingError(Exception):
    """The encoding is not one that can be decoded, or the bytes are not in it."""


class Inflating:
    """Undoes ``gzip`` and ``deflate``, in pieces: a small input may stand for a huge output."""

    def __init__(self, encoding: str) -> None:
        if encoding not in {"gzip", "x-gzip", "deflate"}:
            raise UnreadableEncodingError
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what the bytes so far stand for, in pieces of at most ``PIECE_BYTES``."""
        while data:
            if self._inflater.eof:  # a file in gzip may have several members
                self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
            try:
                piece = self._inflater.decompress(data, PIECE_BYTES)
            except zlib.error:
                raise UnreadableEncodingError from None
            if piece:
                yield piece
            data = self._inflater.unconsumed_tail or self._inflater.unused_data

    @property
    def complete(self) -> bool:
        """Return whether the compressed data has reached its end."""
        return self._inflater.eof
