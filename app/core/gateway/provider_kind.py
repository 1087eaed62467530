"""A kind of provider: the paths of its door, its families, its headers, and how errors look to its clients."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

from app.core.content.shapes.members import is_machine_word
from app.core.errors import ServiceError, UpstreamUnavailableError
from app.core.gateway.answers import AnswerTable, GatewayAnswer
from app.core.gateway.channels import OpenChannel
from app.core.gateway.json_body import JsonBody, json_text
from app.core.gateway.offsets import OffsetMap
from app.core.gateway.requests import GatewayRequest, RequestTable
from app.core.gateway.streams import EventStream

Headers = Iterable[tuple[str, str]]

STATUSES: Final[Mapping[str, int]] = {
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "precondition_required": 428,
    "invalid_request": 400,
    "invalid_arguments": 400,
    "too_large": 413,
    "rate_limited": 429,
    "overloaded": 503,
    "deadline_exceeded": 504,
    "blocked_by_policy": 403,
    "unscannable_content": 400,
    "audit_unavailable": 503,
    "store_unavailable": 503,
    "upstream_unavailable": 502,
    "internal_error": 500,
}
"""Statuses of our errors. Clients try again after 408, 409, 429 and from 500 on, so only what may pass has these."""

_UNNAMED: Final = "This path"
_ID: Final = r"[A-Za-z0-9_.:-]{1,200}"
_MODEL: Final = r"[\w.:/@+-]{1,200}"
_ENCODED_MODEL: Final = r"(?:[\w.:/@+-]|%2[Ff]){1,200}"


class NotCoveredError(Exception):
    """The path is not served here: what it carries would pass unredacted. ``message`` names it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class ProviderError(NamedTuple):
    """A refusal in the shape of a provider's error; the body is JSON."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class ApiFamily:
    """One API: the tables of its requests (by the name of the operation, "" for all others), its answers and events."""

    name: str
    requests: Mapping[str, RequestTable]
    answers: AnswerTable
    streams: type[EventStream] | None = None

    def request(self, operation: "Operation", body: bytes, value: Any = None) -> GatewayRequest:
        """Return a parsed request; raise InvalidRequestError, InvalidArgumentsError or TooLargeError.

        ``value`` is the body's, where it was parsed strictly before.
        """
        table = self.requests.get(operation.name) or self.requests[""]
        parsed = JsonBody.parse(body) if value is None else JsonBody.parsed(body, value)
        return GatewayRequest.read(parsed, table)

    def answer(
        self, _operation: "Operation", body: bytes, documents: Sequence[OffsetMap] = ()
    ) -> GatewayAnswer:
        """Return a parsed answer; raise UpstreamUnavailableError if it is no JSON.

        ``documents`` map offsets in the request's documents back to the caller's (``offsets.document_maps``).
        """
        text = body.decode(errors="replace")
        parsed = None if "\ufffd" in text and b"\xef\xbf\xbd" not in body else JsonBody.lenient(text)
        if parsed is None:
            raise UpstreamUnavailableError(
                "The provider's answer is not JSON, so nothing of it is passed on."
            )
        return GatewayAnswer.read(parsed, self.answers, documents)

    def stream(
        self, operation: "Operation", open_channel: OpenChannel, documents: Sequence[OffsetMap] = ()
    ) -> EventStream:
        """Return what changes a streamed answer."""
        if self.streams is None:
            raise NotCoveredError(400, "not_covered", f"{operation.name} has no streams.")
        return self.streams(open_channel, documents)


@dataclass(frozen=True, slots=True)
class Operation:
    """What a path means.

    ``path`` is behind the provider's base URL, ``pattern`` is that of all such paths. ``ids`` are those in the path.
    ``family`` is None where neither request nor answer has texts, ``answers`` tells whether the answer has.
    """

    name: str
    path: str
    family: ApiFamily | None = None
    answers: bool = False
    ids: Mapping[str, str] = field(default_factory=dict)
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One path of a door: its method, its pattern (``{response}`` is an id) and what it means."""

    method: str
    pattern: str
    name: str
    family: ApiFamily | None = None
    answers: bool = True

    def match(self, path: str, model: str = _MODEL) -> Mapping[str, str] | None:
        """Return the ids in ``path``, or None if it is another path; ``model`` is a pattern of the names of models."""
        matched = _expression(self.pattern, model).fullmatch(path)
        return matched.groupdict() if matched is not None else None


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """Allow lists, in lower case: headers of requests and answers, parameters of the query, and where keys stand.

    A name that ends with ``*`` stands for all that begin with it.
    """

    requests: frozenset[str]
    answers: frozenset[str]
    parameters: frozenset[str]
    key: Callable[[str], tuple[str, str]]
    key_headers: tuple[str, ...] = ("authorization", "x-api-key", "x-sluice-key")

    def request(self, headers: Headers) -> list[tuple[str, str]]:
        """Return the headers of a caller that may go on to the provider."""
        return [(name, value) for name, value in headers if _is_listed(name, self.requests)]

    def answer(self, headers: Headers) -> list[tuple[str, str]]:
        """Return the headers of a provider that may go on to the caller."""
        return [(name, value) for name, value in headers if _is_listed(name, self.answers)]

    def query(self, pairs: Headers) -> list[tuple[str, str]]:
        """Return the parameters that may go on; a value that is no plain word of machines stays here."""
        return [(name, value) for name, value in pairs if name in self.parameters and is_machine_word(value)]

    def credential(self, key: str) -> tuple[str, str]:
        """Return the header with the provider's key."""
        return self.key(key)

    def keys(self, headers: Headers) -> list[str]:
        """Return all credentials that a caller sent, without the scheme of authorization."""
        return [
            re.sub(r"(?i)^bearer\s+", "", value)
            for name, value in headers
            if name.lower() in self.key_headers and value
        ]


@lru_cache
def _expression(pattern: str, model: str) -> re.Pattern[str]:
    """Return the expression for a pattern of a path; ``model`` is one for the names of models."""
    return re.compile(
        re.sub(
            r"\\{(\w+)\\}",
            lambda step: f"(?P<{step[1]}>{model if step[1] == 'model' else _ID})",
            re.escape(pattern),
        )
    )


def _is_listed(name: str, names: frozenset[str]) -> bool:
    lowered = name.lower()
    return lowered in names or any(
        listed.endswith("*") and lowered.startswith(listed[:-1]) for listed in names
    )


class ModelPage(NamedTuple):
    """A provider's list of its models; ``shown`` tells which names, its own or aliases, lead to this provider."""

    body: bytes
    shown: Callable[[str], bool]
    aliases: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """A kind of provider; ``refused`` are beginnings of paths that are refused by name.

    ``models`` makes one list of models out of several, None if none of them is one. ``empty_list`` is a list without
    models, ``whole_list`` the parameters of the query with which a provider lists all at once.
    """

    name: str
    prefix: str
    routes: tuple[RouteRow, ...]
    refused: frozenset[str]
    sockets: str
    headers: HeaderRules
    form: Callable[[int, str, str], Any]
    models: Callable[[Sequence[ModelPage]], bytes | None]
    empty_list: bytes
    whole_list: tuple[tuple[str, str], ...] = ()

    def find(self, method: str, path: str, *, upgrade: bool = False) -> Operation:
        """Return what a path below the prefix means; raise NotCoveredError, which names it, for what is not served."""
        if upgrade and path.strip("/").startswith(self.sockets):
            raise NotCoveredError(
                426,
                "upgrade_required",
                f"{self.sockets} is not served over a WebSocket here; send it with POST.",
            )
        matched = [(row, ids) for row in self.routes if (ids := row.match(path)) is not None and not upgrade]
        for row, ids in matched:
            if row.method == method:
                answers = row.family is not None and row.answers
                return Operation(row.name, path, row.family, answers, ids, row.pattern)
        if matched and self._name_of(path) == _UNNAMED:
            raise NotCoveredError(405, "method_not_allowed", f"{method} is not served at this path.")
        raise NotCoveredError(
            404, "not_covered", f"{self._name_of(path)} is not covered: it would pass unredacted."
        )

    def has_slashes(self, method: str, raw_path: str) -> bool:
        """Return whether the slashes that are encoded in a path are those of a model's name, as clients write it."""
        return any(row.method == method and row.match(raw_path, _ENCODED_MODEL) for row in self.routes)

    def error(self, code: str, message: str, *, status: int | None = None) -> ProviderError:
        """Return a refusal of ours in the provider's shape."""
        exact = status or STATUSES.get(code, 400)
        body = self.form(exact, f"sluice_{code}", message)
        return ProviderError(exact, json_text(body).encode())

    def fault(self, error: ServiceError) -> ProviderError:
        """Return one of our errors in the provider's shape; a bug has the status of one."""
        return self.error(error.code, error.message, status=STATUSES.get(error.code, 500))

    def _name_of(self, path: str) -> str:
        steps = path.strip("/").removeprefix("v1/").split("/")
        named = next(
            ("/".join(steps[:size]) for size in (2, 1) if "/".join(steps[:size]) in self.refused), None
        )
        # Whatever else a client asks for may be content, and messages never repeat content.
        return named or _UNNAMED


def relisted(pages: Sequence[ModelPage], entry: Callable[[str], Mapping[str, Any]]) -> JsonBody | None:
    """Return one list of models (``data``), each name once, in the form of the first page; None if none is a list.

    An alias looks like its model, or like ``entry`` says where the provider does not list that.
    """
    first: JsonBody | None = None
    shown: dict[str, Mapping[str, Any]] = {}
    for page in pages:
        listed = JsonBody.lenient(page.body.decode(errors="replace"))
        data = listed.value.get("data") if listed is not None and isinstance(listed.value, dict) else None
        if not isinstance(data, list):
            continue
        first = first or listed
        by_id = {
            model["id"]: model
            for model in data
            if isinstance(model, dict) and isinstance(model.get("id"), str)
        }
        names = {
            **by_id,
            **{alias: by_id.get(model) or entry(model) for alias, model in page.aliases.items()},
        }
        for name, model in names.items():
            if page.shown(name):
                shown.setdefault(name, {**model, "id": name})
    return first.replaced({("data",): list(shown.values())}) if first is not None else None
