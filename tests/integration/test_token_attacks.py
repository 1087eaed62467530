"""Attacks with tokens at every door: forged and odd ones, an issuer that is away or lies, and another tenant's."""

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Client, Response
from joserfc import jws
from joserfc.jwk import ECKey

from app.settings.auth import IssuerSettings
from tests.integration.service import Service, running_service
from tests.integration.test_token_doors import CALL, DOORS, INSIDE, INVOKE, MCP, ask
from tests.integration.token_issuer import AUDIENCE, Issuer, new_key, send, token_issuer
from tests.protocol.mcp_wire import ENVELOPE, HANDSHAKE, MODERN

RULES = [
    {"when": {"groups": "others"}, "tenant": "other", "roles": ["invoker", "restorer"]},
    {"when": {"groups": "llm-users"}, "tenant": "default", "roles": ["invoker", "restorer"]},
]


def settings_of(issuer: Issuer, **more: Any) -> IssuerSettings:
    return IssuerSettings.model_validate(
        {"issuer": issuer.url, "audience": [AUDIENCE], "rules": RULES, **more}
    )


@contextmanager
def trusting(folder: Path) -> Iterator[tuple[Service, Issuer, Client]]:
    """Yield a service, an issuer that it trusts, and a client without a credential."""
    with (
        token_issuer() as issuer,
        running_service(folder, issuers=[settings_of(issuer)]) as service,
        Client(base_url=f"http://127.0.0.1:{service.port}", timeout=30) as http,
    ):
        yield service, issuer, http


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Issuer, Client]]:
    with trusting(Path(tmp_path_factory.mktemp("attacks"))) as (service, issuer, http):
        service.http.post("/api/v1/tenants", json={"name": "other"}).raise_for_status()
        yield service, issuer, http


def encoded(*parts: Any) -> str:
    """Return parts of a token; what is no bytes becomes JSON."""
    raw = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in parts]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in raw)


def signed(issuer: Issuer, head: Any, payload: Any, key: ECKey | None = None) -> str:
    """Return a token with exactly this head and payload, signed by the issuer where no other key is given."""
    start = encoded(head, payload)
    signature = jws.default_registry.get_alg("ES256").sign(start.encode(), key or issuer.key)
    return f"{start}.{encoded(signature)}"


def head_of(issuer: Issuer, **more: Any) -> dict[str, Any]:
    return {"alg": "ES256", "kid": issuer.key.kid, "typ": "at+jwt", **more}


def unsigned(issuer: Issuer) -> str:
    return encoded({"alg": "none", "typ": "at+jwt"}, issuer.claims()) + "."


def confused(issuer: Issuer) -> str:
    """Take the public key for a shared secret."""
    start = encoded(head_of(issuer, alg="HS256"), issuer.claims())
    return f"{start}.{encoded(hmac.digest(issuer.key.as_pem(private=False), start.encode(), 'sha256'))}"


def brought(issuer: Issuer) -> str:
    """Bring the key along that has signed."""
    key = new_key("first")
    return signed(issuer, head_of(issuer, jwk=key.as_dict(private=False)), issuer.claims(), key)


def detached(issuer: Issuer) -> str:
    """Sign the claims as they stand, not encoded (RFC 7797)."""
    head = encoded(head_of(issuer, b64=False, crit=["b64"]))
    claims = json.dumps(issuer.claims())
    signature = jws.default_registry.get_alg("ES256").sign(f"{head}.{claims}".encode(), issuer.key)
    return f"{head}.{encoded(claims.encode())}.{encoded(signature)}"


def twice(issuer: Issuer) -> str:
    payload = json.dumps(issuer.claims(groups=[]))[:-1] + ', "groups": ["llm-users"]}'
    return signed(issuer, head_of(issuer), payload.encode())


def with_claims(**changed: Any) -> Callable[[Issuer], str]:
    return lambda issuer: signed(issuer, head_of(issuer), issuer.claims(**changed))


def with_head(**more: Any) -> Callable[[Issuer], str]:
    return lambda issuer: signed(issuer, head_of(issuer, **more), issuer.claims())


def deep(levels: int) -> dict[str, Any]:
    actor: dict[str, Any] = {"sub": "agent"}
    for _ in range(levels):
        actor = {"sub": "agent", "act": actor}
    return actor


ATTACKS: dict[str, Callable[[Issuer], str]] = {
    "alg none": unsigned,
    "alg none with a signature": lambda issuer: unsigned(issuer) + issuer.token().rpartition(".")[2],
    "a public key as a secret": confused,
    "a key that comes along": brought,
    "an extension that must be understood": with_head(crit=["exp"], exp=1),
    "a payload that is not encoded": detached,
    "kid from a file": with_head(kid="../../../../dev/null"),
    "kid of a database": with_head(kid="x' UNION SELECT 'first"),
    "kid that is no text": with_head(kid=["first"]),
    "kid with a line": with_head(kid="first\r\nx-injected: 1"),
    "a logout token": with_head(typ="logout+jwt"),
    "an encrypted one": with_head(typ="JWE", enc="A256GCM"),
    "a type that is no text": with_head(typ=["at+jwt"]),
    "a member twice": twice,
    "no object": lambda issuer: signed(issuer, head_of(issuer), [issuer.claims()]),
    "an audience that is an object": with_claims(aud={AUDIENCE: True}),
    "an audience among others that are none": with_claims(aud=[7, None]),
    "an audience that begins alike": with_claims(aud=f"{AUDIENCE}/../../other"),
    "no audience": with_claims(aud=[]),
    "a slash behind the issuer": lambda issuer: with_claims(iss=f"{issuer.url}/")(issuer),
    "an issuer that looks alike": lambda issuer: with_claims(iss=issuer.url.replace("1", "\u0661"))(issuer),
    "an issuer in a list": lambda issuer: with_claims(iss=[issuer.url])(issuer),
    "a person behind the issuer": lambda issuer: with_claims(iss=issuer.url.replace("//", "//a@"))(issuer),
    "bound to a key of its holder": with_claims(cnf={"jkt": "0ZcOCORZNYy"}),
    "agents without end": with_claims(act=deep(12)),
    "an agent that is nobody": with_claims(act={"iss": "https://a.example"}),
    "a subject that is no text": with_claims(sub={"name": "ada"}),
    "a subject with a line": with_claims(sub="ada\ngrace"),
    "a moment that is a text": with_claims(exp="9999999999"),
    "a moment that is true": with_claims(iat=True),
    "a moment beyond all numbers": with_claims(iat=10**400),
    "too long": lambda issuer: issuer.token(padding="x" * 20_000),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_no_token_for_us_opens_no_door(attacked: tuple[Service, Issuer, Client], attack: str) -> None:
    service, issuer, http = attacked
    token = ATTACKS[attack](issuer)
    for door in DOORS:
        answer = ask(http, door, token)
        assert answer.status_code in {401, 431}, (door, answer.status_code, answer.text)
        assert token not in answer.text and "traceback" not in answer.text.lower()
    assert token not in service.log.getvalue()
    assert "Traceback" not in service.log.getvalue()


def test_what_only_looks_odd_is_taken(attacked: tuple[Service, Issuer, Client]) -> None:
    """Negative control: the same makers of tokens, with nothing wrong in them."""
    _, issuer, http = attacked
    for made in (
        with_head(),
        with_head(typ="JWT", jku="http://127.0.0.1:9/keys", x5c=["MIIB"]),
        with_claims(aud=["https://other.example.com", AUDIENCE]),
        with_claims(act=deep(3)),
        with_claims(sub="Ада Лавлейс 😀"),
    ):
        for door in DOORS:
            answer = ask(http, door, made(issuer))
            assert answer.status_code == INSIDE.get(door, 200), (door, answer.text)


def down(_issuer: Issuer, request: BaseHTTPRequestHandler) -> None:
    request.send_error(503)


def another(issuer: Issuer, request: BaseHTTPRequestHandler) -> None:
    """Say that it is somebody else; the keys are good."""
    listed = issuer.documents["/keys"]
    said = {"issuer": "https://evil.example.com", "jwks_uri": f"{issuer.url}/keys"}
    send(request, json.dumps(listed if request.path == "/keys" else said).encode())


def nonsense(_issuer: Issuer, request: BaseHTTPRequestHandler) -> None:
    send(request, b"[[[")


def endless(_issuer: Issuer, request: BaseHTTPRequestHandler) -> None:
    send(request, b'{"keys": [' + b"7," * 400_000 + b"7]}")


def elsewhere(_issuer: Issuer, request: BaseHTTPRequestHandler) -> None:
    send(request, b"{}", status=302, location="http://127.0.0.1:9/keys")


FAULTS = (down, another, nonsense, endless, elsewhere)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_issuer_that_is_away_or_lies_lets_nobody_in_at_any_door_until_it_is_back(
    tmp_path: Path, fault: Callable[[Issuer, BaseHTTPRequestHandler], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.access.issuer_keys._FIRST_RETRY_S", 0.0)
    with trusting(tmp_path) as (service, issuer, http):
        issuer.answer = partial(fault, issuer)
        for door in DOORS:
            answer = ask(http, door, issuer.token())
            assert answer.status_code in {503, 429}, (door, answer.status_code, answer.text)
            assert "evil" not in answer.text and "retry-after" in answer.headers
            assert ask(http, door, service.key).status_code == INSIDE.get(door, 200)
        issuer.answer = None
        for door in DOORS:
            assert ask(http, door, issuer.token()).status_code == INSIDE.get(door, 200)


def test_an_issuer_that_hangs_holds_up_nobody_who_has_a_key(tmp_path: Path) -> None:
    with trusting(tmp_path) as (service, issuer, http):
        issuer.answer = lambda _request: issuer.stopped.wait(60) and None
        began = time.monotonic()
        assert ask(http, "REST", issuer.token()).status_code == 503
        assert time.monotonic() - began < 20
        for door in DOORS:
            assert ask(http, door, service.key).status_code == INSIDE.get(door, 200)


def test_a_key_that_the_issuer_rotates_counts_at_every_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.access.issuer_keys.UNKNOWN_KEY_S", 0.0)
    with trusting(tmp_path) as (_, issuer, http):
        old = issuer.token()
        assert ask(http, "REST", old).status_code == 200
        issuer.key = new_key("second")
        stranger = issuer.token(key=new_key("second"))
        issuer.publish(issuer.key)
        assert {ask(http, door, stranger).status_code for door in DOORS} == {401}
        for door in DOORS:
            assert ask(http, door, issuer.token()).status_code == INSIDE.get(door, 200), door


def restored(http: Client, door: str, token: str, scope: str) -> Response:
    """Ask for the original of a handle in a scope, at a door."""
    arguments = {"scope": scope}
    context = [{"type": "text", "text": "Call [PERSON_1]."}]
    headers = {**MCP, "authorization": f"Bearer {token}"}
    if door == "REST":
        path = "/api/v1/middleware/pii_restoration/invoke"
        return http.post(path, json={"context": context, "arguments": arguments}, headers=headers)
    params: dict[str, Any] = {"name": "pii_restoration", "context": context, "arguments": arguments}
    if door == MODERN:
        params["_meta"] = ENVELOPE
        own = {"mcp-method": "middleware/invoke", "mcp-name": "pii_restoration"}
        headers |= {"mcp-protocol-version": MODERN, **own}
    else:
        opened = ask(http, "MCP 2025-11-25", token)
        headers |= {
            "mcp-session-id": opened.headers["mcp-session-id"],
            "mcp-protocol-version": HANDSHAKE,
        }
    message = {"jsonrpc": "2.0", "id": 7, "method": "middleware/invoke", "params": params}
    return http.post("/mcp", json=message, headers=headers)


def test_a_token_of_one_tenant_gets_nothing_of_another_at_any_door(
    attacked: tuple[Service, Issuer, Client],
) -> None:
    _, issuer, http = attacked
    own, other = issuer.token(), issuer.token(groups=["others"])
    body = {"context": [{"type": "text", "text": "I am John Doe."}], "arguments": {"scope": "ours"}}
    bearer = {"authorization": f"Bearer {own}"}
    hidden = http.post("/api/v1/middleware/pii_redaction/invoke", json=body, headers=bearer)
    assert hidden.status_code == 200 and "[PERSON_1]" in hidden.text, hidden.text
    for door in ("REST", HANDSHAKE, MODERN):
        assert "John Doe" in restored(http, door, own, "ours").text, door
        assert "John" not in restored(http, door, other, "ours").text, door
    opened = ask(http, "MCP 2025-11-25", own)
    headers = {**MCP, "mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": HANDSHAKE}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    statuses = [
        http.post("/mcp", json=ping, headers={**headers, "authorization": f"Bearer {token}"}).status_code
        for token in (own, other)
    ]
    assert statuses == [200, 404]


def test_a_provider_of_one_tenant_is_none_of_another_for_tokens(
    attacked: tuple[Service, Issuer, Client],
) -> None:
    service, issuer, http = attacked
    document = {
        "kind": "openai",
        "baseUrl": "https://nobody.invalid/v1",
        "models": ["gpt-*"],
        "apiKey": "sk-x",
    }
    service.http.put("/api/v1/providers/main", json=document).raise_for_status()
    chat = {"model": "gpt-5-mini", "messages": []}
    try:
        own, other = (
            http.post(
                "/openai/v1/chat/completions",
                json=chat,
                headers={"authorization": f"Bearer {issuer.token(groups=[group])}"},
            )
            for group in ("llm-users", "others")
        )
        assert (own.status_code == 404, other.status_code) == (False, 404), (own.text, other.text)
    finally:
        service.http.delete("/api/v1/providers/main")


def test_a_forged_token_leaves_nothing_of_what_it_says(
    attacked: tuple[Service, Issuer, Client],
) -> None:
    service, issuer, http = attacked
    forged = issuer.token(key=new_key("first"), sub="the-attackers-word")
    for door in DOORS:
        ask(http, door, forged)
    assert http.post(INVOKE, json=CALL, headers={"authorization": f"Bearer {forged}"}).status_code == 401
    written = b"".join(file.read_bytes() for file in service.directory.iterdir() if file.is_file())
    assert b"the-attackers-word" not in written and "the-attackers-word" not in service.log.getvalue()
