"""Authorization servers of servers behind: found as the protocol says, asked with a proof, and believed little."""

import json
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from app.core.grants import ClientIdentity, GrantFailedError
from app.upstream.grants import GrantClient
from app.upstream.issuers import IssuerClient
from tests.integration.token_issuer import Issuer, send, token_issuer

PATH = "/.well-known/oauth-protected-resource/mcp"
ROOT = "/.well-known/oauth-protected-resource"
FORM = {"grant_type": "client_credentials", "resource": "https://mcp.example/mcp"}


@pytest.fixture
def server() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


def grants(patience_s: float = 30) -> GrantClient:
    return GrantClient(IssuerClient(development=True, patience_s=patience_s))


def metadata(server: Issuer, **changed: Any) -> dict[str, Any]:
    told = {
        "resource": f"{server.url}/mcp",
        "authorization_servers": [server.url],
        "scopes_supported": ["all"],
    }
    return {name: value for name, value in {**told, **changed}.items() if value is not None}


def challenging(server: Issuer, challenge: str) -> None:
    """Let the server refuse whoever brings no token, with this challenge."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.path == "/mcp":
            send(request, b"{}", status=401, WWW_Authenticate=challenge)
        elif request.path in server.documents:
            send(request, json.dumps(server.documents[request.path]).encode())
        else:
            send(request, b"{}", status=404)

    server.answer = answer


async def test_the_challenge_says_where_the_metadata_is_and_which_scopes_are_needed(server: Issuer) -> None:
    server.documents["/elsewhere"] = metadata(server)
    server.documents[PATH] = metadata(server, resource="https://other.example")
    challenging(server, f'Bearer scope="see use", resource_metadata="{server.url}/elsewhere"')
    found = await grants().protected(f"{server.url}/mcp", server.url)
    assert (found.resource, found.scopes) == (f"{server.url}/mcp", ("see", "use"))


@pytest.mark.parametrize("place", [PATH, ROOT])
async def test_without_a_challenge_the_metadata_is_at_its_well_known_places(
    server: Issuer, place: str
) -> None:
    server.documents[place] = metadata(server, resource=server.url if place == ROOT else None)
    if place == PATH:
        server.documents[place]["resource"] = f"{server.url}/mcp"
        server.documents[ROOT] = {"resource": "nonsense"}
    found = await grants().protected(f"{server.url}/mcp", server.url)
    assert (found.resource, found.scopes) == (server.documents[place]["resource"], ("all",))


async def test_a_server_without_metadata_is_its_own_resource(server: Issuer) -> None:
    found = await grants().protected(f"{server.url}/mcp", server.url)
    assert (found.resource, found.scopes) == (f"{server.url}/mcp", ())


LIES: dict[str, dict[str, Any]] = {
    "another resource": {"resource": "https://other.example/mcp"},
    "a resource beside it": {"resource": "{url}/mcp/admin"},
    "no resource": {"resource": None},
    "a resource that is no address": {"resource": "http://[::1"},
    "an authorization server that is no address": {"authorization_servers": ["http://[::1", 7]},
    "no authorization server": {"authorization_servers": None},
    "another authorization server": {"authorization_servers": ["https://attacker.example"]},
    "one that looks alike": {"authorization_servers": ["{url}/."]},
    "no list": {"authorization_servers": "{url}"},
}


@pytest.mark.parametrize("lie", LIES)
async def test_metadata_that_leads_elsewhere_is_not_followed(server: Issuer, lie: str) -> None:
    changed = json.loads(json.dumps(LIES[lie]).replace("{url}", server.url))
    server.documents[PATH] = metadata(server, **changed)
    with pytest.raises(GrantFailedError):
        await grants().protected(f"{server.url}/mcp", server.url)


def asking(server: Issuer, client: ClientIdentity) -> list[dict[str, Any]]:
    """Let the server give tokens; return the list in which it notes what comes."""
    notes: list[dict[str, Any]] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.path in server.documents:
            send(request, json.dumps(server.documents[request.path]).encode())
        elif request.path == "/token":
            body = parse_qs(request.rfile.read(int(request.headers["content-length"])).decode())
            form = {name: values[0] for name, values in body.items()}
            notes.append({**form, "login": request.headers["authorization"]})
            send(request, b'{"access_token": "t", "token_type": "bearer", "expires_in": "60"}')
        else:
            send(request, b"{}", status=404)

    server.documents["/.well-known/oauth-authorization-server"] = {
        "issuer": client.issuer,
        "token_endpoint": f"{server.url}/token",
    }
    server.answer = answer
    return notes


def pem(key: Any) -> str:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    text: str = key.private_bytes(*form).decode()
    return text


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_a_private_key_proves_who_asks_and_leaves_nothing_to_use_again(
    server: Issuer, algorithm: str
) -> None:
    private = (
        ec.generate_private_key(ec.SECP256R1())
        if algorithm == "ES256"
        else rsa.generate_private_key(65537, 2048)
    )
    client = ClientIdentity(server.url, "sluice", "private_key_jwt", pem(private), algorithm)
    notes = asking(server, client)
    for _ in range(2):
        assert (await grants().granted(client, FORM)).lifetime_s == 60
    kind = ECKey if algorithm == "ES256" else RSAKey
    shown = [
        jwt.decode(note["client_assertion"], kind.import_key(client.credential), [algorithm])
        for note in notes
    ]
    for claims in (token.claims for token in shown):
        assert (claims["iss"], claims["sub"], claims["aud"]) == ("sluice", "sluice", server.url)
        assert claims["exp"] - time.time() <= 60
    assert shown[0].claims["jti"] != shown[1].claims["jti"]
    assert all(note["resource"] == FORM["resource"] and note["login"] is None for note in notes)
    wrong = ClientIdentity(server.url, "sluice", "private_key_jwt", "no key", algorithm)
    with pytest.raises(GrantFailedError, match="no key for its signingAlgorithm"):
        await grants().granted(wrong, FORM)


def hanging(server: Issuer) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        server.stopped.wait(20)
        send(request, b"{}")

    return answer


async def test_an_authorization_server_that_hangs_is_given_up(server: Issuer) -> None:
    server.answer = hanging(server)
    client = ClientIdentity(server.url, "sluice", "client_secret_basic", "s", token_uri=f"{server.url}/token")
    with pytest.raises(GrantFailedError, match="does not answer in time"):
        await grants(patience_s=0.2).granted(client, FORM)
    with pytest.raises(GrantFailedError, match="does not answer in time"):
        await grants(patience_s=0.2).protected(f"{server.url}/mcp", server.url)
    server.stopped.set()


async def test_an_authorization_server_that_is_down_is_no_other_fault(server: Issuer) -> None:
    client = ClientIdentity("http://127.0.0.1:1", "sluice", "none")
    with pytest.raises(GrantFailedError, match="does not answer") as failed:
        await grants().granted(client, FORM)
    assert failed.value.code is None


LIFETIMES: list[Any] = [
    (None, 300),
    (60, 60),
    ("60", 60),
    (10**12, 3600),
    (-5, 1),
    (0, 1),
    (True, 300),
    ("soon", 300),
    ([60], 300),
    (1e300, 3600),
    pytest.param(10**400, 3600, id="huge"),
    pytest.param(-(10**400), 1, id="huge and negative"),
]


@pytest.mark.parametrize(("given", "counted"), LIFETIMES)
async def test_a_lifetime_is_taken_within_bounds(server: Issuer, given: Any, counted: float) -> None:
    told = {"access_token": "t", "token_type": "Bearer", "expires_in": given}
    server.answer = lambda request: send(request, json.dumps(told).encode())
    client = ClientIdentity(server.url, "sluice", "none", token_uri=f"{server.url}/token")
    assert (await grants().granted(client, FORM)).lifetime_s == counted


TYPE = "urn:ietf:params:oauth:token-type:"
TYPES: list[tuple[str | None, str, str | None, bool]] = [
    (None, "Bearer", None, True),
    ("access_token", "Bearer", None, True),
    ("access_token", "bearer", "access_token", True),
    ("access_token", "Bearer", "jwt", True),
    ("id-jag", "N_A", "id-jag", True),
    ("access_token", "Bearer", "id_token", False),
    ("access_token", "Bearer", "refresh_token", False),
    ("access_token", "N_A", "access_token", False),
    ("access_token", "N_A", "id-jag", False),
    ("access_token", "N_A", None, False),
    ("id-jag", "N_A", "id_token", False),
    (None, "N_A", "id-jag", False),
    (None, "Bearer", "refresh_token", False),
    (None, "DPoP", None, False),
]


@pytest.mark.parametrize(("wanted", "kind", "issued", "taken"), TYPES)
async def test_a_token_of_another_type_than_the_one_asked_for_is_not_taken(
    server: Issuer, wanted: str | None, kind: str, issued: str | None, *, taken: bool
) -> None:
    told = {"access_token": "t", "token_type": kind}
    told |= {} if issued is None else {"issued_token_type": TYPE + issued}
    server.answer = lambda request: send(request, json.dumps(told).encode())
    client = ClientIdentity(server.url, "sluice", "none", token_uri=f"{server.url}/token")
    form = {**FORM, **({} if wanted is None else {"requested_token_type": TYPE + wanted})}
    if taken:
        assert (await grants().granted(client, form)).access_token == "t"
        return
    with pytest.raises(GrantFailedError, match="of a type that is not supported"):
        await grants().granted(client, form)


async def test_metadata_is_asked_for_in_the_order_of_the_protocol(server: Issuer) -> None:
    with pytest.raises(GrantFailedError, match="has no metadata"):
        await grants().metadata(f"{server.url}/tenant")
    assert [path for path in server.asked if path != "/keys"] == [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
    ]
