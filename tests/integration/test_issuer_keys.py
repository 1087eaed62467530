"""An issuer's keys: one that is down, slow, huge, lies or rotates harms no key that is known."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from app.core.errors import OverloadedError
from app.core.identities import TrustedIssuer
from app.core.tokens import TokenHead
from app.engines.tokens import JoseReader
from app.services.access.issuer_keys import FRESH_S, UNKNOWN_KEY_S, IssuerKeys
from app.upstream.issuers import MOST_BYTES, IssuerClient, IssuerDownError
from tests.integration.token_issuer import AUDIENCE, Issuer, new_key, send, token_issuer

KEYS = "/keys"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def keys(issuer: Issuer, clock: Clock) -> AsyncIterator[IssuerKeys]:
    made = keys_of(issuer, clock)
    yield made
    await made.close()


def keys_of(issuer: Issuer, clock: Clock, jwks_uri: str | None = None) -> IssuerKeys:
    client = IssuerClient(development=True, patience_s=30)
    trusted = TrustedIssuer(issuer.url, frozenset({AUDIENCE}), (), jwks_uri)
    return IssuerKeys(trusted, client, JoseReader(), clock)


async def names(keys: IssuerKeys, issuer: Issuer, kid: str | None) -> list[str | None]:
    head = TokenHead(issuer.url, "ES256", kid)
    return [key.key_id for key in await keys.candidates(head)]


async def test_keys_are_found_by_metadata_and_fetched_once(issuer: Issuer, keys: IssuerKeys) -> None:
    answers = await asyncio.gather(*(names(keys, issuer, "first") for _ in range(20)))
    assert answers == [["first"]] * 20
    assert issuer.asked == {"/.well-known/openid-configuration": 1, KEYS: 1}


async def test_a_named_address_needs_no_metadata(issuer: Issuer, clock: Clock) -> None:
    keys = keys_of(issuer, clock, f"{issuer.url}{KEYS}")
    assert await names(keys, issuer, "first") == ["first"]
    assert issuer.asked == {KEYS: 1}


async def test_a_token_without_a_name_of_a_key_may_be_of_any_that_fits(
    issuer: Issuer, keys: IssuerKeys
) -> None:
    issuer.publish(issuer.key, new_key("second"))
    assert await names(keys, issuer, None) == ["first", "second"]
    assert await keys.candidates(TokenHead(issuer.url, "RS256", None)) == []


async def test_an_unknown_key_asks_once_a_minute(issuer: Issuer, keys: IssuerKeys, clock: Clock) -> None:
    assert await names(keys, issuer, "first") == ["first"]
    issuer.publish(issuer.key, new_key("second"))
    for number in range(50):
        assert await names(keys, issuer, f"invented-{number}") == []
    assert issuer.asked[KEYS] == 1
    clock.now += UNKNOWN_KEY_S
    answers = await asyncio.gather(*(names(keys, issuer, "second") for _ in range(20)))
    assert answers == [["second"]] * 20
    assert issuer.asked[KEYS] == 2
    for number in range(50):
        assert await names(keys, issuer, f"invented-{number}") == []
    assert issuer.asked[KEYS] == 2


async def test_a_key_that_was_withdrawn_goes(issuer: Issuer, keys: IssuerKeys, clock: Clock) -> None:
    assert await names(keys, issuer, "first") == ["first"]
    issuer.publish(new_key("second"))
    clock.now += FRESH_S + 1
    assert await names(keys, issuer, "first") == ["first"]  # and asks behind this answer
    async with asyncio.timeout(10):
        while await names(keys, issuer, "first"):
            await asyncio.sleep(0.01)
    assert await names(keys, issuer, "second") == ["second"]


async def test_keys_that_moved_to_another_address_are_found(
    issuer: Issuer, keys: IssuerKeys, clock: Clock
) -> None:
    assert await names(keys, issuer, "first") == ["first"]
    second = new_key("second")
    issuer.publish(second)
    issuer.documents["/moved"] = issuer.documents.pop(KEYS)
    issuer.documents["/.well-known/openid-configuration"]["jwks_uri"] = f"{issuer.url}/moved"
    clock.now += UNKNOWN_KEY_S
    assert await names(keys, issuer, "second") == ["second"]


def redirect(request: BaseHTTPRequestHandler) -> None:
    send(request, b"{}", status=302, location="/elsewhere")


def huge(request: BaseHTTPRequestHandler) -> None:
    send(request, json.dumps({"keys": [], "padding": "x" * MOST_BYTES}).encode())


def garbage(request: BaseHTTPRequestHandler) -> None:
    send(request, b'{"keys": [], "keys": []}')


def broken(request: BaseHTTPRequestHandler) -> None:
    send(request, b"{}", status=500)


def emptied(request: BaseHTTPRequestHandler) -> None:
    host = request.headers["host"]
    send(
        request,
        json.dumps({"issuer": f"http://{host}", "jwks_uri": f"http://{host}/keys", "keys": []}).encode(),
    )


def liar(request: BaseHTTPRequestHandler) -> None:
    send(request, b'{"issuer": "https://evil.example.com", "jwks_uri": "https://evil.example.com/keys"}')


@pytest.mark.parametrize("fault", [redirect, huge, garbage, broken, emptied, liar])
async def test_an_issuer_with_a_fault_harms_no_known_key(
    issuer: Issuer, keys: IssuerKeys, clock: Clock, fault: Any
) -> None:
    issuer.answer = fault
    with pytest.raises(OverloadedError):  # nothing is known yet, and nobody is let in
        await names(keys, issuer, "first")
    issuer.answer, clock.now = None, clock.now + UNKNOWN_KEY_S
    assert await names(keys, issuer, "first") == ["first"]
    issuer.answer, clock.now = fault, clock.now + FRESH_S + 1
    assert await names(keys, issuer, "second") == []
    assert await names(keys, issuer, "first") == ["first"]


async def test_an_issuer_that_hangs_is_waited_for_once(
    issuer: Issuer, keys: IssuerKeys, clock: Clock
) -> None:
    assert await names(keys, issuer, "first") == ["first"]
    issuer.answer, clock.now = lambda _request: issuer.stopped.wait(20) and None, clock.now + FRESH_S + 1
    keys._client = IssuerClient(development=True, patience_s=0.2)
    asked = issuer.asked.total()
    answers = await asyncio.gather(
        *(names(keys, issuer, kid) for kid in ("first", "second", "second", "first"))
    )
    assert answers == [["first"], [], [], ["first"]]
    assert issuer.asked.total() <= asked + 3  # the places of the metadata, each once


async def test_metadata_leads_to_no_address_that_is_not_allowed(issuer: Issuer) -> None:
    client = IssuerClient(development=True)
    for address in (
        "http://169.254.169.254/keys",
        "https://169.254.169.254/keys",
        "https://metadata.google.internal/keys",
        "http://192.0.2.1/keys",
        "https://10.0.0.1/keys",
        "file:///etc/passwd",
        "https://user:password@login.example.com/keys",
    ):
        issuer.documents["/.well-known/openid-configuration"]["jwks_uri"] = address
        with pytest.raises(IssuerDownError, match="refused"):
            await client.key_set(issuer.url, None)
    for address in (7, None, ["https://login.example.com"]):
        issuer.documents["/.well-known/openid-configuration"]["jwks_uri"] = address
        with pytest.raises(IssuerDownError):
            await client.key_set(issuer.url, None)


async def test_plain_http_is_for_development(issuer: Issuer) -> None:
    assert await IssuerClient(development=True).fetched(f"{issuer.url}{KEYS}")
    with pytest.raises(IssuerDownError, match="refused"):
        await IssuerClient(("127.0.0.0/8",)).fetched(f"{issuer.url}{KEYS}")


async def test_metadata_of_an_issuer_with_a_path_is_found_in_each_place(issuer: Issuer) -> None:
    named = f"{issuer.url}/realms/acme"
    document = {"issuer": named, "jwks_uri": f"{issuer.url}{KEYS}"}
    for place in (
        "/realms/acme/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/realms/acme",
        "/.well-known/openid-configuration/realms/acme",
    ):
        issuer.documents = {place: document, KEYS: {"keys": []}}
        assert await IssuerClient(development=True).metadata(named) == document
    issuer.documents = {}
    with pytest.raises(IssuerDownError, match="404"):
        await IssuerClient(development=True).metadata(named)
