"""Credentials of requests to a provider: whose key goes along, in which header, and that no key of ours ever does."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from app.core.access import KEY_PATTERN
from app.core.errors import InvalidRequestError, UnauthenticatedError
from app.core.gateway.providers import ProviderEntry, ProviderKindName

ANTHROPIC_VERSION: Final = "2023-06-01"
CREDENTIAL_HEADERS: Final = frozenset(
    {"authorization", "x-api-key", "api-key", "x-goog-api-key", "proxy-authorization"}
)
"""Headers that hold keys; what a caller sent in them is never passed on as it came."""

_KEY_HEADERS: Final = CREDENTIAL_HEADERS | {"x-sluice-key"}
_NEVER: Final = frozenset(
    {
        *(
            "accept-encoding",
            "connection",
            "content-encoding",
            "content-length",
            "cookie",
            "expect",
            "forwarded",
        ),
        *("host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "via", "x-real-ip"),
    }
)
_NEVER_PREFIXES: Final = ("x-sluice-", "x-forwarded-", "proxy-", "sec-", "cf-")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OWN_KEY: Final = re.compile(KEY_PATTERN.pattern.encode())
_ESCAPE: Final = re.compile(rb"\\u00([2-7][0-9a-fA-F])")
_MARK: Final = b"slc"

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ProviderCredential:
    """The key for one request, None where the provider needs none; ``callers``: it is the caller's own."""

    key: str | None = field(repr=False)
    callers: bool = False


def credential_for(
    entry: ProviderEntry, caller_key: str | None, *, chosen_by_model: bool
) -> ProviderCredential:
    """Return whose key goes to a provider.

    A caller's own key goes only to a provider that takes it and that the model's name chose. A rule that leads
    elsewhere uses the key that is sealed there. Raises UnauthenticatedError if there is neither.
    """
    if entry.caller_key and caller_key is not None and chosen_by_model:
        return ProviderCredential(caller_key, callers=True)
    if entry.api_key is not None or not entry.caller_key:
        return ProviderCredential(entry.api_key)
    if not chosen_by_model:
        raise UnauthenticatedError(
            f"A rule of the policy leads to the provider {entry.name}, which has no key of its own, and a caller's key "
            "goes only where the model's name leads; store a key there.",
            details={"provider": entry.name},
        )
    raise UnauthenticatedError(
        f"The provider {entry.name} takes your own key: send it where the provider expects it, and the key of Sluice "
        "in X-Sluice-Key.",
        details={"provider": entry.name},
    )


def authentication(kind: ProviderKindName, key: str) -> tuple[str, str]:
    """Return the header in which a kind of provider expects a key."""
    return ("x-api-key", key) if kind == "anthropic" else ("Authorization", f"Bearer {key}")


def outgoing_headers(
    entry: ProviderEntry, passed: Iterable[tuple[str, str]], credential: ProviderCredential
) -> dict[str, str]:
    """Return the headers of a request to a provider, each name once.

    ``passed`` are the caller's that the door's allow list lets through; credentials, cookies and headers of a
    connection among them are dropped all the same. The entry's extra headers replace others, except a caller's key.
    """
    headers: dict[str, tuple[str, str]] = {}
    for name, value in passed:
        if _may_pass(name.lower()) and not _CONTROL.search(value):
            headers[name.lower()] = (name, value)
    if entry.kind == "anthropic":
        headers.setdefault("anthropic-version", ("anthropic-version", ANTHROPIC_VERSION))
    layers: list[Mapping[str, str]] = [entry.extra_headers]
    if credential.key is not None:
        layers.insert(1 if credential.callers else 0, dict([authentication(entry.kind, credential.key)]))
    for layer in layers:
        headers.update({name.lower(): (name, value) for name, value in layer.items()})
    headers["accept-encoding"] = ("Accept-Encoding", "identity")
    return dict(headers.values())


def check_no_own_key(headers: Mapping[str, str], path: str, query: Headers, body: bytes | None) -> None:
    """Raise InvalidRequestError where something that looks like a key of Sluice would leave, also in escapes."""
    _check_head(headers.items(), path, query)
    if body is not None and _holds_own_key(body):
        raise _own_key("the body")


def check_head(headers: Iterable[tuple[str, str]], path: str, query: Headers) -> None:
    """Raise InvalidRequestError where a key of Sluice stands in what a caller sent and where no key belongs.

    What would not be passed on counts as well: such a key stands in the logs of proxies, and its owner is to know.
    """
    others = [(name, value) for name, value in headers if name.lower() not in _KEY_HEADERS]
    _check_head(others, path, query)


def _check_head(headers: Iterable[tuple[str, str]], path: str, query: Headers) -> None:
    texts = [path, *(part for pair in (*headers, *query) for part in pair)]
    if any(KEY_PATTERN.search(text) or KEY_PATTERN.search(unquote(text)) for text in texts):
        raise _own_key("a header or in the address")


def _holds_own_key(body: bytes) -> bool:
    if _MARK in body and _OWN_KEY.search(body):
        return True
    if b"\\u00" not in body:
        return False
    plain = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), body)
    return _OWN_KEY.search(plain) is not None


def _own_key(place: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"The request holds a key of Sluice (slc_…) in {place}. It is never sent to a provider; remove it, and revoke "
        "it if others saw it."
    )


def _may_pass(name: str) -> bool:
    return name not in CREDENTIAL_HEADERS and name not in _NEVER and not name.startswith(_NEVER_PREFIXES)
