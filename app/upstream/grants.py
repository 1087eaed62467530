"""Ask authorization servers for tokens, and MCP servers which authorization servers they trust."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus

import aiohttp
import httpx2
from mcp.client.auth.extensions.client_credentials import SignedJWTParameters
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    issuers_match,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

from app.core.addresses import scheme_of
from app.core.grants import ClientIdentity, GrantedToken, GrantFailedError, ProtectedServer
from app.upstream.issuers import IssuerClient, IssuerDownError, bounded_json

_OK: Final = 200
_UNAUTHORIZED: Final = 401
_REFUSALS: Final = frozenset({400, 401, 403})
_ABSENT: Final = range(400, 500)
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,16384}")
_REFRESH: Final = re.compile(r"[ -~]{1,16384}")
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,256}")
_MOST_SCOPES: Final = 50
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name of RFC 8693
_ACCESS_TOKENS: Final = (_ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:jwt")
"""What a token that opens a server may be called; one that says who somebody is, or renews another, opens none."""
_ASSERTION_S: Final = 60
_SHORTEST_S: Final = 1.0
_LIFETIME_S: Final = 300.0
"""How long a token counts whose answer does not say."""
_LONGEST_S: Final = 3_600.0
_CODES: Final = frozenset(
    {
        "access_denied",
        "insufficient_scope",
        "interaction_required",
        "invalid_client",
        "invalid_grant",
        "invalid_request",
        "invalid_scope",
        "invalid_target",
        "login_required",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)
"""Errors of OAuth that may be repeated: any other text is the server's own."""


@dataclass(frozen=True, slots=True)
class GrantClient:
    """Gets tokens over ``issuers``, which checks addresses, follows no redirect and bounds answers and time."""

    issuers: IssuerClient

    async def protected(self, url: str, issuer: str) -> ProtectedServer:
        """Return what a server says of its tokens; see ``GrantSource``.

        The server's challenge is asked for first; without one, its metadata is where RFC 9728 has it. A server without
        metadata is its own url.
        """
        challenge = await self._challenge(url)
        place, scope = (
            extract_resource_metadata_from_www_auth(challenge),
            extract_scope_from_www_auth(challenge),
        )
        document = await self._first(build_protected_resource_metadata_discovery_urls(place, url))
        if document is None:
            return ProtectedServer(resource_url_from_server_url(url), _scopes((scope or "").split()))
        servers, resource = document.get("authorization_servers"), document.get("resource")
        # The SDK's own comparisons raise for what cannot be parsed.
        if scheme_of(resource) is None or not check_resource_allowed(url, str(resource)):
            raise GrantFailedError("its metadata is of another resource")
        named = servers if isinstance(servers, list) else []
        if not any(scheme_of(server) is not None and issuers_match(server, issuer) for server in named):
            raise GrantFailedError("its metadata names other authorization servers than auth.issuer")
        supported = document.get("scopes_supported")
        listed = scope.split() if scope is not None else supported if isinstance(supported, list) else []
        return ProtectedServer(str(resource), _scopes(listed))

    async def granted(self, client: ClientIdentity, form: Mapping[str, str]) -> GrantedToken:
        """Return the token for a grant; see ``GrantSource``."""
        address = client.token_uri or await self._endpoint(client.issuer, "token_endpoint")
        proof, headers = await _proof(client)
        answer = await self._asked(address, {**form, **proof}, headers)
        token, kind, lifetime = answer.get("access_token"), answer.get("token_type"), answer.get("expires_in")
        issued_type, refresh = answer.get("issued_token_type"), answer.get("refresh_token")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token) or not isinstance(kind, str):
            raise GrantFailedError("its answer has no token")
        wanted = form.get("requested_token_type", _ACCESS_TOKEN)
        is_token = kind.lower() == "bearer" and issued_type in (None, wanted, *_ACCESS_TOKENS)
        # An assertion that is exchanged for a token elsewhere is no token itself (RFC 8693, section 2.2.1).
        is_assertion = kind.lower() == "n_a" and issued_type == wanted != _ACCESS_TOKEN
        if not (is_token or is_assertion):
            raise GrantFailedError("its token is of a type that is not supported")
        return GrantedToken(
            token,
            _lifetime_s(lifetime),
            refresh if isinstance(refresh, str) and _REFRESH.fullmatch(refresh) else None,
            issued_type if isinstance(issued_type, str) else None,
        )

    async def revoked(self, client: ClientIdentity, token: str) -> None:
        """Take back a refresh token; see ``GrantSource``."""
        address = await self._endpoint(client.issuer, "revocation_endpoint")
        proof, headers = await _proof(client)
        form = {"token": token, "token_type_hint": "refresh_token", **proof}
        try:
            async with (
                self.issuers.session(address) as session,
                session.post(address, data=form, allow_redirects=False, headers=headers) as response,
            ):
                response.close()
        except IssuerDownError as error:
            raise GrantFailedError(str(error)) from None
        if response.status != _OK:
            raise GrantFailedError(f"it answers with status {response.status}")

    async def _challenge(self, url: str) -> httpx2.Response:
        """Return what the server answers to whoever brings no token, without the body."""
        headers = {"Accept": "text/event-stream, application/json"}
        try:
            async with (
                self.issuers.session(url) as session,
                session.get(url, allow_redirects=False, headers=headers) as response,
            ):
                challenge = response.headers.get("WWW-Authenticate", "")
                response.close()
        except IssuerDownError as error:
            raise GrantFailedError(str(error)) from None
        status = response.status if response.status == _UNAUTHORIZED else _OK
        return httpx2.Response(status, headers={"WWW-Authenticate": challenge} if status != _OK else {})

    async def _first(self, addresses: list[str]) -> Mapping[str, Any] | None:
        """Return the first document that is there, None where none is."""
        for address in addresses:
            try:
                document = await self.issuers.fetched(address)
            except IssuerDownError as error:
                if error.status in _ABSENT:
                    continue
                raise GrantFailedError(str(error)) from None
            if not isinstance(document, dict):
                raise GrantFailedError("its metadata is no object")
            return document
        return None

    async def _endpoint(self, issuer: str, name: str) -> str:
        metadata = await self.metadata(issuer)
        address = metadata.get(name)
        if not isinstance(address, str):
            raise GrantFailedError(f"its metadata has no {name}")
        return address

    async def metadata(self, issuer: str) -> Mapping[str, Any]:
        """Return an authorization server's metadata (RFC 8414, else OpenID Connect), or raise GrantFailedError."""
        places = build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer)
        document = await self._first(places)
        if document is None:
            raise GrantFailedError("it has no metadata")
        if document.get("issuer") != issuer:
            raise GrantFailedError("its metadata names another issuer")
        return document

    async def _asked(
        self, address: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> Mapping[str, Any]:
        accept = {"Accept": "application/json", **headers}
        try:
            async with (
                self.issuers.session(address) as session,
                session.post(address, data=dict(form), allow_redirects=False, headers=accept) as response,
            ):
                if response.status != _OK and response.status not in _REFUSALS:
                    raise GrantFailedError(f"it answers with status {response.status}")
                answer = await _answer(response)
        except IssuerDownError as error:
            raise GrantFailedError(str(error)) from None
        if response.status != _OK:
            code = answer.get("error")
            known_code = code if isinstance(code, str) and code in _CODES else None
            raise GrantFailedError(
                f"it refuses ({known_code or f'status {response.status}'})", known_code or "refused"
            )
        return answer


async def _answer(response: aiohttp.ClientResponse) -> Mapping[str, Any]:
    try:
        answer = await bounded_json(response)
    except IssuerDownError:
        if response.status == _OK:
            raise
        return {}
    if not isinstance(answer, dict):
        raise IssuerDownError("its answer is no object")
    return answer


async def _proof(client: ClientIdentity) -> tuple[dict[str, str], dict[str, str]]:
    """Return the members of the form and the headers that prove who asks."""
    if client.method == "client_secret_basic":
        # RFC 6749, section 2.3.1: both are encoded as in a form before they are put together.
        login = aiohttp.encode_basic_auth(quote_plus(client.client_id), quote_plus(client.credential))
        return {}, {"Authorization": login}
    named = {"client_id": client.client_id}
    if client.method == "client_secret_post":
        return {**named, "client_secret": client.credential}, {}
    if client.method == "private_key_jwt":
        return {**named, **await _assertion(client)}, {}
    return named, {}


async def _assertion(client: ClientIdentity) -> dict[str, str]:
    signer = SignedJWTParameters(
        issuer=client.client_id,
        subject=client.client_id,
        signing_key=client.credential,
        signing_algorithm=client.algorithm,
        lifetime_seconds=_ASSERTION_S,
    )
    try:
        assertion = await signer.create_assertion_provider()(client.issuer)
    except Exception:  # noqa: BLE001 - errors of keys are of many kinds, and may quote the key
        raise GrantFailedError("the privateKey for it is no key for its signingAlgorithm") from None
    return {
        "client_assertion": assertion,
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    }


def _lifetime_s(value: Any) -> float:
    """Return how long a token counts, within bounds; some servers write the number as text."""
    if isinstance(value, str) and _SECONDS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _LIFETIME_S
    return float(min(max(value, _SHORTEST_S), _LONGEST_S))


def _scopes(listed: list[Any]) -> tuple[str, ...]:
    """Return scopes without what is none; a server's metadata asks for no more than is reasonable."""
    texts = [scope for scope in listed if isinstance(scope, str) and _SCOPE.fullmatch(scope)]
    return tuple(dict.fromkeys(texts))[:_MOST_SCOPES]
