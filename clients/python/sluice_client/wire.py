"""One HTTP exchange as data: what to send, how to read the answer, when sending again is safe."""

import json
import random
import ssl
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from sluice_client.errors import ProtocolError, SluiceError, UnreachableError
from sluice_client.results import Json, MiddlewareInfo

T = TypeVar("T")
Progress = Callable[[float, float | None], None]
"""Called with the work done and, if known, the total."""

JSON_TYPE = "application/json"
EVENTS_TYPE = "text/event-stream"
BACK_OFF_S = 0.1
LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Options:
    """How a client behaves.

    ``timeout`` (seconds) is what one attempt may take to answer, ``retries`` how often a refused attempt is sent
    again where that is safe, ``longest_pause`` the longest ``Retry-After`` that is waited for.
    """

    url: str
    key: str | None = None
    timeout: float = 60.0
    connect_timeout: float = 5.0
    retries: int = 2
    longest_pause: float = 10.0
    trust: ssl.SSLContext | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that every request carries."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def __repr__(self) -> str:
        return f"Options(url={self.url!r})"


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """The response; for an event stream ``body`` is the message that answers the request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Json:
        """Return the body as JSON, or raise that the response is not from Sluice."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise ProtocolError(
                f"The answer (HTTP {self.status}) is not JSON: does Sluice listen at this address?",
                status=self.status,
            ) from None


@dataclass(frozen=True, slots=True)
class WireCall:
    """One request to send.

    ``repeatable`` says that doing it twice does no harm. ``failure`` reads the error out of an answer, None for a
    success. ``progress`` is told of progress events.
    """

    method: str
    path: str
    failure: Callable[[WireAnswer], SluiceError | None]
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    repeatable: bool = False
    progress: Progress | None = None


Steps = Generator[WireCall, WireAnswer, T]
"""A use case without I/O: it yields calls, receives their responses, and returns its result."""


class Dialect(Protocol):
    """One protocol for the same calls: REST, or MCP in one of its revisions."""

    session: str | None

    def opening(self, lost: str | None = None) -> Steps[None]:
        """Prepare for the first call; ``lost`` is the id of a session to replace."""

    def closing(self) -> Steps[None]:
        """End the session, if any."""

    def list_middleware(self) -> Steps[list[MiddlewareInfo]]:
        """List the middlewares that the caller may invoke."""

    def invoke(
        self,
        name: str,
        items: list[Json],
        arguments: Mapping[str, Json],
        *,
        repeatable: bool,
        progress: Progress | None,
    ) -> Steps[tuple[list[Json], Mapping[str, Json]]]:
        """Run one middleware on a context; return content and metadata."""


def encoded(value: Json) -> bytes:
    """Return ``value`` as compact JSON; refuse values that JSON cannot represent."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("The context holds half a surrogate pair, which no UTF-8 text can carry.") from None
    except (TypeError, RecursionError) as error:
        raise ValueError(f"The context is not JSON: {error}.") from None


def pause_before_retry(error: SluiceError, call: WireCall, attempt: int, options: Options) -> float | None:
    """Return the seconds to wait before sending ``call`` again, or None if that is unsafe or useless.

    Safe are: requests of which no byte was sent, requests that the service says it did not start
    (``rate_limited``, ``overloaded``), and repeatable requests. Everything else is the caller's decision.
    """
    if attempt >= options.retries:
        return None
    back_off: float = BACK_OFF_S * 2**attempt * (1 + random.random())  # noqa: S311 -- jitter, no secret
    if isinstance(error, UnreachableError):
        return back_off if call.repeatable or not error.sent else None
    untouched = error.code in {"rate_limited", "overloaded"}
    waiting_helps = error.retry_after is not None or (call.repeatable and error.status in {502, 503, 504})
    if not (untouched or call.repeatable) or not waiting_helps:
        return None
    pause = max(back_off, error.retry_after or 0.0)
    return pause if pause <= options.longest_pause else None


def seconds(value: object) -> float | None:
    """Return a ``Retry-After`` given in seconds, None if there is none."""
    try:
        return max(0.0, float(str(value))) if value is not None else None
    except ValueError:
        return None


def short(text: object, default: str) -> str:
    """Return ``text`` if it is a usable message, cut to a limited length."""
    return text[:LONGEST_MESSAGE] if isinstance(text, str) and text else default
