"""What the edge demands of the head of a request: host, origin, path, headers; and what routes declare of theirs."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar

from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from app.core.access import Role
from app.core.errors import ForbiddenError, InvalidRequestError, ServiceError
from app.edge.budget import ByteLimits
from app.edge.queries import KnownQueries
from app.edge.surfaces import ForeignSurface

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

PROBES: Final = frozenset({"/livez", "/readyz"})
"""Probes come under the address of the pod or host and tell nothing, so any Host may ask."""

_REMEMBERED_HOSTS: Final = 256
_REMEMBERED_PATHS: Final = 1024
_LONGEST_REMEMBERED: Final = 128
_DECLARED: Final = "sluice_route_limits"
_NEEDED: Final = "sluice_route_needs"
_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/=-]+) *")
_HIDDEN_SLASH = re.compile(rb"%2f|%5c|\\", re.IGNORECASE)
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]+)"?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EdgeLimits:
    """What the edge lets in; a name without a port allows any port.

    ``stream_idle_s`` bounds the pause between two pieces of a streamed body, ``body_timeout_s`` the whole of any
    other body, and ``turn_timeout_s`` how long a large one waits for its turn, which costs a connection and no memory.
    ``in_flight`` bounds the bodies that are held at once, ``parsers`` the threads that parse large ones.
    """

    allowed_hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    allowed_origins: tuple[str, ...] = ("http://127.0.0.1", "http://localhost", "http://[::1]")
    max_body_bytes: int = 8 * 1024 * 1024
    max_depth: int = 64
    body_timeout_s: float = 15
    turn_timeout_s: float = 45
    stream_idle_s: float = 60
    in_flight: ByteLimits = field(default_factory=ByteLimits)
    parsers: int = 1


@dataclass(frozen=True, slots=True)
class RouteLimits:
    """What a route takes beside, or instead of, the one JSON value that the edge reads for every other route.

    A body of a type in ``streamed`` passes through piece by piece, counted and timed; ``json``: the route takes JSON as
    well, which the edge reads. ``whole``: the route collects the pieces, so that they count as held. ``most`` are the
    bytes of a body that is never as large as others may be.
    """

    streamed: frozenset[str]
    json: bool = False
    whole: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """The roles of which a caller needs one before its body is read; ``action`` names the refusal in the record."""

    roles: frozenset[Role]
    action: str


MCP_NEEDS: Final = Needs(frozenset({Role.INVOKER, Role.RESTORER, Role.OPERATOR}), "mcp.request")
"""What a message to an MCP endpoint needs; no method there serves a caller with other roles alone."""


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """What the routes of an application declared, by the patterns of their paths, and by their methods."""

    by_path: tuple[tuple[re.Pattern[str], RouteLimits], ...] = ()
    by_method: Mapping[str, tuple[tuple[re.Pattern[str], Needs | None], ...]] = field(default_factory=dict)
    queries: KnownQueries = field(default_factory=KnownQueries)
    _remembered: Callable[[str, str], "_Declared"] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Remember what the paths that were asked for last declare: dozens of patterns are tried for one."""
        object.__setattr__(self, "_remembered", lru_cache(_REMEMBERED_PATHS)(self._found))

    @classmethod
    def of(cls, routes: Iterable[BaseRoute]) -> "DeclaredLimits":
        """Return what the endpoints of ``routes`` declare with ``takes`` and ``needs``, and which queries they read."""
        routes = list(routes)
        by_path: list[tuple[re.Pattern[str], RouteLimits]] = []
        by_method: dict[str, tuple[tuple[re.Pattern[str], Needs | None], ...]] = {}
        for route in routes:
            if not isinstance(route, Route) or not hasattr(route.endpoint, "__dict__"):
                continue
            declared = vars(route.endpoint)
            if _DECLARED in declared:
                by_path.append((route.path_regex, declared[_DECLARED]))
            for method in route.methods or ():
                by_method[method] = (*by_method.get(method, ()), (route.path_regex, declared.get(_NEEDED)))
        return cls(tuple(by_path), by_method, KnownQueries.of(routes))

    def streamed(self, method: str, path: str, headers: "Headers") -> RouteLimits | None:
        """Return the limits of a body that passes through piece by piece; None where the edge reads it, as JSON."""
        for limits in self._declared(method, path).limits:
            if not limits.json or headers.media_type in limits.streamed:
                return limits
        return None

    def needs_of(self, method: str, path: str) -> Needs | None:
        """Return what the route of a request needs before its body is read, None where it declares nothing."""
        return self._declared(method, path).needed

    def _declared(self, method: str, path: str) -> "_Declared":
        # What is remembered stays small, whatever is asked for.
        is_short = len(path) <= _LONGEST_REMEMBERED and method in self.by_method
        return self._remembered(method, path) if is_short else self._found(method, path)

    def _found(self, method: str, path: str) -> "_Declared":
        limits = tuple(limits for pattern, limits in self.by_path if pattern.match(path))
        fitting = (needed for pattern, needed in self.by_method.get(method, ()) if pattern.match(path))
        return _Declared(limits, next(fitting, None))


class _Declared(NamedTuple):
    """What the routes at one path declare: of bodies, and of the callers of one method."""

    limits: tuple[RouteLimits, ...]
    needed: Needs | None


def takes(limits: RouteLimits) -> Callable[[Endpoint], Endpoint]:
    """Declare the limits of a route at its endpoint; stands below the decorator that makes the route."""

    def declare(endpoint: Endpoint) -> Endpoint:
        vars(endpoint)[_DECLARED] = limits
        return endpoint

    return declare


def needs(*roles: Role, action: str) -> Callable[[Endpoint], Endpoint]:
    """Declare at a route's endpoint the roles of which callers need one, below the decorator that makes the route.

    The use case requires them too: this only makes sure that the edge reads no body of a caller who will be refused.
    """

    def declare(endpoint: Endpoint) -> Endpoint:
        vars(endpoint)[_NEEDED] = Needs(frozenset(roles), action)
        return endpoint

    return declare


class Refused(Exception):  # noqa: N818 - a signal from here to the guard, which answers it
    """The request goes no further; ``status`` is the exact HTTP status where the code's own is too coarse."""

    def __init__(self, error: ServiceError, status: int | None = None, *, linger: bool = False) -> None:
        super().__init__(error.code)
        self.error = error
        self.status = status
        self.linger = linger


class ClientGoneError(Exception):
    """The client closed the connection before its request was complete."""


class Headers:
    """The few headers that the edge looks at; one that must be single and is repeated counts as wrong."""

    _SINGLE = frozenset(
        {b"host", b"content-type", b"content-length", b"content-encoding", b"origin", b"authorization"}
    )

    __slots__ = ("_length", "_values")

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._values = dict(raw)
        self._length: int | None = None
        if len(self._values) == len(raw):
            return
        seen: set[bytes] = set()
        for name, _ in raw:
            if name in seen and name in self._SINGLE:
                raise Refused(InvalidRequestError(f"The header {name.decode()} must be sent once."))
            seen.add(name)

    def get(self, name: bytes) -> str:
        """Return the value of ``name`` (lower case), or an empty string."""
        value = self._values.get(name)
        return "" if value is None else value.decode("latin-1")

    @property
    def bearer(self) -> str | None:
        """Return the bearer token, None where there is none."""
        match = _BEARER.fullmatch(self.get(b"authorization"))
        return match[1] if match else None

    @property
    def media_type(self) -> str:
        """Return the content type in lower case, without its parameters."""
        return self.get(b"content-type").partition(";")[0].strip().lower()

    @property
    def content_length(self) -> int:
        """Return the announced length, 0 where none is announced."""
        if self._length is None:
            length = self._values.get(b"content-length", b"")
            if length and not length.isdigit():
                raise Refused(InvalidRequestError("The header content-length is not a number."))
            self._length = int(length[:20] or b"0")
        return self._length

    @property
    def announces_body(self) -> bool:
        """Return whether the client says that a body follows."""
        return self.content_length > 0 or bool(self._values.get(b"transfer-encoding"))


def check_path(scope: Scope, surface: ForeignSurface | None = None) -> None:
    """Refuse a path that hides a slash or a backslash: a proxy before this service may have read another path.

    ``surface``, to which the path belongs, may know better: a slash in an id at its end. The character NUL, which no
    database stores as text, is refused here as it is in bodies.
    """
    raw = scope.get("raw_path") or scope["path"].encode()
    if b"%00" in raw or b"\0" in raw:
        raise Refused(InvalidRequestError("The path contains the character NUL."))
    if not (b"%" in raw or b"\\" in raw) or not _HIDDEN_SLASH.search(raw):
        return
    if surface is None or surface.slashes is None or not surface.slashes(scope["method"], raw):
        raise Refused(
            InvalidRequestError("The path has an encoded slash or a backslash; write a slash as it is.")
        )


def check_origin(headers: Headers, path: str, limits: EdgeLimits) -> None:
    """Refuse foreign hosts and origins, which is how browsers are turned against local services."""
    if path not in PROBES and not _listed(headers.get(b"host").lower(), limits.allowed_hosts):
        raise Refused(
            InvalidRequestError("This Host is not served here; SLUICE_HTTP__ALLOWED_HOSTS lists the names."),
            HTTPStatus.MISDIRECTED_REQUEST,
        )
    origin = headers.get(b"origin").lower()
    if origin and not _listed(origin, limits.allowed_origins):
        raise Refused(
            ForbiddenError("This Origin may not call; SLUICE_HTTP__ALLOWED_ORIGINS lists those that may.")
        )


def check_type(headers: Headers, accepted: frozenset[str]) -> None:
    """Refuse encodings and media types that the route did not declare."""
    if headers.get(b"content-type") in accepted and not headers.get(b"content-encoding"):
        return
    if headers.get(b"content-encoding").strip().lower() not in {"", "identity"}:
        raise Refused(
            InvalidRequestError("Send the body without a content encoding."),
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    charset = _CHARSET.search(headers.get(b"content-type"))
    if headers.media_type not in accepted or (charset and charset[1].lower() not in {"utf-8", "utf8"}):
        types = " or ".join(sorted(accepted))
        raise Refused(
            InvalidRequestError(f"Send {types} in UTF-8.", details={"accepted": sorted(accepted)}),
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )


def has_body(method: str) -> bool:
    """Return whether requests of ``method`` may carry a body that is looked at."""
    return method not in _BODILESS


@lru_cache(_REMEMBERED_HOSTS)
def _listed(value: str, allowed: tuple[str, ...]) -> bool:
    if not value:
        return False
    without_port = re.sub(r":\d{1,5}$", "", value)
    return any(name.lower() in (value, without_port) for name in allowed)
