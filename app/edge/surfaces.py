"""Paths whose clients speak another API than ours: where they put the credential, and how refusals look to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.core.errors import ServiceError
from app.edge.lifespan_state import CallerGate, Served
from app.edge.problems import status_of

RawHeaders = Sequence[tuple[bytes, bytes]]


class ForeignRefusal(NamedTuple):
    """A refusal in the form that clients of another API understand; ``headers`` beside those of every answer."""

    status: int
    body: bytes
    media_type: bytes = b"application/json"
    headers: RawHeaders = ()


@dataclass(frozen=True, slots=True)
class ForeignSurface:
    """The paths below ``prefix``, which ends with a slash.

    ``credential`` returns the key of this service that the headers of a request present, None without one; it raises
    ServiceError for several. ``refusal`` forms an error, None: as everywhere; the status is for errors with a more
    exact one than their own. ``upgrade`` forms the answer to a client that wants a WebSocket at a path, because none is
    spoken here. ``slashes`` says of a method and a raw path whether an id in it may hold encoded slashes, which are
    refused elsewhere. A query below the prefix is the surface's own affair.
    ``page`` forms an error that people see, with its status and the request id, in the place of ``refusal``.
    ``open_paths`` are those whose body brings the credential itself: it is read before anybody is known.
    """

    prefix: str
    credential: Callable[[RawHeaders], str | None]
    refusal: Callable[[ServiceError, int | None], ForeignRefusal] | None = None
    upgrade: Callable[[str], ForeignRefusal] | None = None
    slashes: Callable[[str, bytes], bool] | None = None
    page: Callable[[ServiceError, int, str], ForeignRefusal] | None = None
    open_paths: frozenset[str] = frozenset()

    def gate_of(self, path: str, served: Served) -> CallerGate | None:
        """Return who knows the callers of one of its paths, None where nobody is asked."""
        return None if path in self.open_paths else served.gates.get(self.prefix, served.gate)

    @property
    def refuses(self) -> bool:
        """Return whether errors have a form of its own here."""
        return self.page is not None or self.refusal is not None

    def refused(self, error: ServiceError, status: int | None, request_id: str) -> ForeignRefusal:
        """Return an error in the surface's own form, which it has."""
        if self.page is not None:
            return self.page(error, status or status_of(error), request_id)
        assert self.refusal is not None  # noqa: S101 - the caller has asked whether there is one of the two
        return self.refusal(error, status)
