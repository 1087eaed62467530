"""The key or token for Sluice in a request of another API's client, which may put it into one of several headers."""

import re
from typing import Final

from app.core.access import KEY_PATTERN
from app.core.errors import InvalidRequestError
from app.edge.surfaces import RawHeaders

OWN_KEY: Final = b"x-sluice-key"
_SIGNED: Final = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
"""The shape of a token of an issuer; whether it is one of ours, the gate says."""
_HEADERS: Final = frozenset({OWN_KEY, b"authorization", b"x-api-key", b"api-key"})


def own_key(headers: RawHeaders) -> str | None:
    """Return the key of Sluice, or the token, among the credentials of a request.

    A token counts where there is no key. Raises InvalidRequestError for several.
    """
    credentials = _credentials(headers)
    keys = [key for name, key in credentials if name == OWN_KEY or KEY_PATTERN.search(key)]
    keys = keys or [key for _, key in credentials if _SIGNED.fullmatch(key)]
    if len(keys) > 1:
        raise InvalidRequestError(
            "The request has several keys or tokens of Sluice: send one, in Authorization, x-api-key or X-Sluice-Key."
        )
    return keys[0] if keys else None


def foreign_key(headers: RawHeaders) -> str | None:
    """Return the caller's own key of a provider, which counts only beside a key of Sluice in X-Sluice-Key."""
    credentials = _credentials(headers)
    if all(name != OWN_KEY for name, _ in credentials):
        return None
    return next((key for name, key in credentials if name != OWN_KEY), None)


def _credentials(headers: RawHeaders) -> list[tuple[bytes, str]]:
    credentials = []
    for name, value in headers:
        text = value.decode("latin-1").strip()
        if name == b"authorization":
            scheme, _, text = text.partition(" ")
            text = text.strip() if scheme.lower() == "bearer" else ""
        if name in _HEADERS and text:
            credentials.append((name, text))
    return credentials
