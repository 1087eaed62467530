"""Paths whose clients speak another API than ours: where they put the credential, and how refusals look to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.core.errors import ServiceError

RawHeaders = Sequence[tuple[bytes, bytes]]


class ForeignRefusal(NamedTuple):
    """A refusal in the form that clients of another API understand; the body is JSON."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class ForeignSurface:
    """The paths below ``prefix``, which ends with a slash.

    ``credential`` returns the key of this service that the headers of a request present, None without one; it raises
    ServiceError for several. ``refusal`` forms an error, None: as everywhere; the status is for errors with a more
    exact one than their own. ``upgrade`` forms the answer to a client that wants a WebSocket at a path, because none is
    spoken here. ``slashes`` says of a method and a raw path whether an id in it may hold encoded slashes, which are
    refused elsewhere. A query below the prefix is the surface's own affair.
    """

    prefix: str
    credential: Callable[[RawHeaders], str | None]
    refusal: Callable[[ServiceError, int | None], ForeignRefusal] | None = None
    upgrade: Callable[[str], ForeignRefusal] | None = None
    slashes: Callable[[str, bytes], bool] | None = None
