"""Ask issuers of tokens for their metadata and keys: checked addresses, no redirects, bounded answers."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit, urlunsplit

import aiohttp

from app import __version__
from app.core.errors import ServiceError
from app.core.identities import ConsoleClient, Introspection
from app.core.strictjson import loads
from app.upstream.transport.dialing import AddressRefusedError, gated_connector

MOST_BYTES: Final = 262_144
_PATIENCE_S: Final = 5.0
_OK: Final = 200
_LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
_METADATA: Final = ("openid-configuration", "oauth-authorization-server")


class IssuerDownError(Exception):
    """An issuer gave no usable answer; the message says what was wrong and holds nothing of the answer.

    ``status`` is that of an answer that was another than 200.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class IssuerClient:
    """Fetches JSON from issuers.

    Every address needs https. ``networks`` are those allowed beside public addresses; in ``development`` this machine
    is, too, and may be asked in plain http.
    """

    networks: tuple[str, ...] = ()
    development: bool = False
    patience_s: float = _PATIENCE_S

    async def key_set(self, issuer: str, jwks_uri: str | None) -> Any:
        """Return an issuer's key set as it is, found by the issuer's metadata where no ``jwks_uri`` is set.

        Raises IssuerDownError.
        """
        address = jwks_uri or _address_in(await self.metadata(issuer), "jwks_uri")
        return await self.fetched(address)

    async def metadata(self, issuer: str) -> Mapping[str, Any]:
        """Return what an issuer says of itself (OpenID Connect Discovery, else RFC 8414), or raise IssuerDownError."""
        failure = IssuerDownError("no metadata")
        for address in _metadata_addresses(issuer):
            try:
                document = await self.fetched(address)
            except IssuerDownError as error:
                failure = error
                continue
            if not isinstance(document, dict) or document.get("issuer") != issuer:
                raise IssuerDownError("its metadata names another issuer")
            return document
        raise failure

    async def fetched(self, address: str) -> Any:
        """Return the JSON at an address, or raise IssuerDownError."""
        accept = {"Accept": "application/json"}
        async with (
            self.session(address) as session,
            session.get(address, allow_redirects=False, headers=accept) as response,
        ):
            return await _value(response)

    async def introspection_address(self, issuer: str) -> str:
        """Return where an issuer says whether tokens count, by its metadata, or raise IssuerDownError."""
        return _address_in(await self.metadata(issuer), "introspection_endpoint")

    async def introspected(self, address: str, introspection: Introspection, token: str) -> Any:
        """Return what an issuer says of a token (RFC 7662), or raise IssuerDownError."""
        login = _login(introspection.client_id, introspection.client_secret)
        headers = {"Accept": "application/json", "Authorization": login}
        form = {"token": token, "token_type_hint": "access_token"}
        async with (
            self.session(address) as session,
            session.post(address, data=form, allow_redirects=False, headers=headers) as response,
        ):
            return await _value(response)

    async def redeemed(self, address: str, client: ConsoleClient, form: Mapping[str, str]) -> Any:
        """Return what an issuer gives for an authorization code (RFC 6749, 4.1.3), or raise IssuerDownError."""
        headers = {"Accept": "application/json"}
        if client.client_secret is None:
            form = {**form, "client_id": client.client_id}
        else:
            headers["Authorization"] = _login(client.client_id, client.client_secret)
        async with (
            self.session(address) as session,
            session.post(address, data=form, allow_redirects=False, headers=headers) as response,
        ):
            return await _value(response)

    @asynccontextmanager
    async def session(self, address: str) -> AsyncIterator[aiohttp.ClientSession]:
        """Lend a session for one request to this address, or raise IssuerDownError for whatever fails in the body."""
        try:
            async with (
                asyncio.timeout(self.patience_s),
                aiohttp.ClientSession(
                    connector=gated_connector(address, self._networks_for(address)),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                    trust_env=False,
                    headers={"User-Agent": f"sluice/{__version__}", "Accept-Encoding": "identity"},
                    max_line_size=8_190,
                    max_field_size=8_190,
                    max_headers=128,
                ) as session,
            ):
                yield session
        except AddressRefusedError as error:
            raise IssuerDownError(f"its address is refused ({error.refusal})") from None
        except TimeoutError:
            raise IssuerDownError("it does not answer in time") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise IssuerDownError("it does not answer") from None

    def _networks_for(self, address: str) -> tuple[str, ...]:
        parts = urlsplit(address)
        if parts.scheme != "https" and not (self.development and parts.scheme == "http"):
            raise AddressRefusedError("An issuer's address begins with https://.", "plain")
        # In development, plain http reaches this machine and nothing else.
        if self.development:
            return _LOOPBACK if parts.scheme == "http" else (*self.networks, *_LOOPBACK)
        return self.networks


def _login(client_id: str, secret: str) -> str:
    # RFC 6749, section 2.3.1: both are encoded as in a form before they are put together.
    return aiohttp.encode_basic_auth(quote_plus(client_id), quote_plus(secret))


async def _value(response: aiohttp.ClientResponse) -> Any:
    if response.status != _OK:
        raise IssuerDownError(f"it answers with status {response.status}", response.status)
    return await bounded_json(response)


async def bounded_json(response: aiohttp.ClientResponse) -> Any:
    """Return the JSON of an answer, whatever its status, or raise IssuerDownError."""
    parts: list[bytes] = []
    left = MOST_BYTES
    while part := await response.content.readany():
        left -= len(part)
        if left < 0:
            response.close()  # the rest is not waited for
            raise IssuerDownError("its answer is too large")
        parts.append(part)
    try:
        return loads(b"".join(parts))
    except ServiceError:
        raise IssuerDownError("its answer is no JSON") from None


def _metadata_addresses(issuer: str) -> list[str]:
    """Return where the metadata may be: appended to the issuer, and inserted before its path."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    openid, oauth = _METADATA
    places = [
        f"{path}/.well-known/{openid}",
        f"/.well-known/{oauth}{path}",
        f"/.well-known/{openid}{path}",
    ]
    return [urlunsplit((parts.scheme, parts.netloc, place, "", "")) for place in dict.fromkeys(places)]


def _address_in(metadata: Mapping[str, Any], name: str) -> str:
    address = metadata.get(name)
    if not isinstance(address, str):
        raise IssuerDownError(f"its metadata has no {name}")
    return address
