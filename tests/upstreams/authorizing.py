"""An authorization server on loopback, and MCP servers that take its tokens alone: each notes what reaches it."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus, urlencode

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.upstreams.running import serving
from tests.upstreams.scripted import ScriptedServer

CLIENT_ID = "sluice-of-the-tests"
SECRET = "upstream: secret+of/the tests"
AUDIENCE = "https://sluice.example.com/mcp"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource/mcp"


@dataclass(frozen=True)
class Given:
    """What a token stands for."""

    subject: str
    resource: str
    scope: str


@dataclass
class AuthorizationServer:
    """Gives tokens to whoever has the secret; ``answer`` replaces what its token endpoint does.

    ``tokens`` are those that count. ``asked`` are the forms that came to the token endpoint. It is the identity
    provider of its users, too, whose tokens it exchanges, except those of ``refused``; assertions are taken from
    ``trusted``. ``sources`` has for each token the one that it was given for.
    """

    url: str = ""
    lifetime_s: int | None = 600
    tokens: dict[str, Given] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    answer: Callable[[dict[str, str]], Response] | None = None
    key: ECKey = field(
        default_factory=lambda: ECKey.generate_key("P-256", {"kid": "k", "use": "sig", "alg": "ES256"})
    )
    refused: set[str] = field(default_factory=set)
    trusted: "AuthorizationServer | None" = None
    taken: set[str] = field(default_factory=set)
    sources: dict[str, str] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    refreshes: dict[str, Given] = field(default_factory=dict)
    spent: set[str] = field(default_factory=set)
    revoked: list[str] = field(default_factory=list)

    async def authorize(self, request: Request) -> Response:
        """Grant what a person asks for who has signed in as the member ``person`` says, and lead back."""
        asked = dict(request.query_params)
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.url}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}", 302)

    async def revoke(self, request: Request) -> Response:
        form = await request.form()
        self.revoked.append(str(form["token"]))
        self.refreshes.pop(str(form["token"]), None)
        return Response(None, 200)

    def granted(self, form: dict[str, str]) -> Given | None:
        """Return what a code or a refresh token stands for; both count once."""
        if form["grant_type"] == "refresh_token":
            given = self.refreshes.pop(form["refresh_token"], None)
            if given is None and form["refresh_token"] in self.spent:
                self.refreshes.clear()  # somebody has stolen it: the whole family ends
            self.spent.add(form["refresh_token"])
            return given
        asked = self.codes.pop(form["code"], None)
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        if asked is None or asked["redirect_uri"] != form["redirect_uri"] or asked["client_id"] != CLIENT_ID:
            return None
        if base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != asked["code_challenge"]:
            return None
        return Given(asked["person"], asked["resource"], asked.get("scope", ""))

    def signed(self, kind: str, **claims: Any) -> str:
        """Return a signed token."""
        now = int(time.time())
        own = {"iss": self.url, "iat": now, "exp": now + 300, "jti": secrets.token_hex(8)}
        return jwt.encode({"alg": "ES256", "kid": "k", "typ": kind}, {**own, **claims}, self.key)

    def user_token(self, name: str, **claims: Any) -> str:
        """Return a token with which a person calls the service."""
        return self.signed("at+jwt", **{"sub": name, "aud": AUDIENCE, "groups": ["llm-users"], **claims})

    def subject_of(self, form: dict[str, str]) -> str | None:
        """Return for whom a grant is, None where it is refused."""
        if form["grant_type"] == "client_credentials":
            return "service"
        try:
            if form["grant_type"] == EXCHANGE:
                claims = jwt.decode(form["subject_token"], self.key).claims
            else:
                assert self.trusted is not None
                shown = jwt.decode(form["assertion"], self.trusted.key)
                claims = shown.claims
                if shown.header["typ"] != "oauth-id-jag+jwt" or claims["aud"] != self.url:
                    return None
                if claims["resource"] != form["resource"] or claims["jti"] in self.taken:
                    return None
                self.taken.add(claims["jti"])
        except JoseError:
            return None
        return None if claims["sub"] in self.refused else claims["sub"]

    def give(self, subject: str, resource: str, scope: str = "") -> str:
        """Return a new token."""
        token = secrets.token_urlsafe(24)
        self.tokens[token] = Given(subject, resource, scope)
        return token

    def document(self) -> dict[str, Any]:
        """Return its metadata (RFC 8414)."""
        places = {
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize?mode=tests",
            "revocation_endpoint": f"{self.url}/revoke",
        }
        ways = {"code_challenge_methods_supported": ["S256"], "scopes_supported": ["see", "offline_access"]}
        promised = {"authorization_response_iss_parameter_supported": True}
        return {"issuer": self.url, **places, **ways, **promised, **self.metadata}

    async def described(self, _request: Request) -> Response:
        return JSONResponse(self.document())

    async def keys(self, _request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.asked.append(form)
        if self.answer is not None:
            return self.answer(form)
        if not self.knows(request, form):
            return JSONResponse({"error": "invalid_client"}, 401)
        if form["grant_type"] in {"authorization_code", "refresh_token"}:
            return self.regranted(form)
        subject = self.subject_of(form)
        if subject is None:
            return JSONResponse({"error": "invalid_grant"}, 400)
        if form.get("requested_token_type") == ID_JAG:
            bound = {"sub": subject, "aud": form["audience"], "resource": form["resource"]}
            assertion = self.signed("oauth-id-jag+jwt", **bound)
            return JSONResponse(
                {
                    "access_token": assertion,
                    "token_type": "N_A",
                    "issued_token_type": ID_JAG,
                    "expires_in": 60,
                }
            )
        token = self.give(subject, form["resource"], form.get("scope", ""))
        self.sources[token] = form.get("subject_token", "")
        told: dict[str, Any] = {"access_token": token, "token_type": "Bearer"}
        return JSONResponse(told if self.lifetime_s is None else {**told, "expires_in": self.lifetime_s})

    def regranted(self, form: dict[str, str]) -> Response:
        given = self.granted(form)
        if given is None or given.resource != form["resource"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        refresh = secrets.token_urlsafe(24)
        self.refreshes[refresh] = given
        token = self.give(given.subject, given.resource, given.scope)
        told = {"access_token": token, "token_type": "Bearer", "refresh_token": refresh}
        return JSONResponse({**told, "expires_in": self.lifetime_s})

    def knows(self, request: Request, form: dict[str, str]) -> bool:
        """Return whether the client proves itself, in one of the two ways for secrets."""
        kind, _, login = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            name, _, secret = base64.b64decode(login).decode().partition(":")
            return (unquote_plus(name), unquote_plus(secret)) == (CLIENT_ID, SECRET)
        return (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, SECRET)


@contextmanager
def authorization_server() -> Iterator[AuthorizationServer]:
    """Serve one until the end of the body."""
    made = AuthorizationServer()
    routes = [
        Route("/.well-known/oauth-authorization-server", made.described),
        Route("/.well-known/openid-configuration", made.described),
        Route("/keys", made.keys),
        Route("/authorize", made.authorize),
        Route("/revoke", made.revoke, methods=["POST"]),
        Route("/token", made.token, methods=["POST"]),
    ]
    with serving(Starlette(routes=routes)) as port:
        made.url = f"http://127.0.0.1:{port}"
        yield made


@dataclass
class Guarded:
    """An MCP server behind a check of tokens; ``seen`` has the subject, the session and the call of each request.

    ``named`` are the authorization servers that its metadata names; ``bearers`` are the tokens that came.
    """

    app: ASGIApp
    authority: AuthorizationServer
    url: str = ""
    named: list[str] | None = None
    scopes: list[str] = field(default_factory=lambda: ["see", "use"])
    seen: list[tuple[str, str | None, str]] = field(default_factory=list)
    bearers: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        if request.url.path == RESOURCE_METADATA:
            await JSONResponse(self.document())(scope, receive, send)
            return
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = self.authority.tokens.get(token)
        self.bearers.append(token)
        if given is None or given.resource != self.url:
            where = self.url.removesuffix("/mcp") + RESOURCE_METADATA
            challenge = {"WWW-Authenticate": f'Bearer resource_metadata="{where}"'}
            await JSONResponse({"error": "invalid_token"}, 401, challenge)(scope, receive, send)
            return
        body = await whole(receive)
        self.seen.append((given.subject, request.headers.get("mcp-session-id"), _called(body)))
        await self.app(scope, replayed(body, receive), send)

    def document(self) -> dict[str, Any]:
        """Return its metadata (RFC 9728)."""
        named = self.named if self.named is not None else [self.authority.url]
        return {"resource": self.url, "authorization_servers": named, "scopes_supported": self.scopes}

    def calls(self) -> list[tuple[str, str]]:
        """Return who called which tool with which text."""
        return [
            (who, what.removeprefix("tools/call "))
            for who, _, what in self.seen
            if what.startswith("tools/call")
        ]


@contextmanager
def guarded_http(
    script: ScriptedServer,
    authority: AuthorizationServer,
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> Iterator[Guarded]:
    """Serve a scripted server over streamable HTTP to whoever has a token of ``authority`` for it."""
    made = Guarded(around(script.server().streamable_http_app()), authority)
    with serving(made) as port:
        made.url = f"http://127.0.0.1:{port}/mcp"
        yield made


async def whole(receive: Receive) -> bytes:
    """Return the whole body of a request."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a channel that gives the body that was read already, and then what follows."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _called(body: bytes) -> str:
    message = json.loads(body) if body else {}
    method = str(message.get("method", ""))
    if method != "tools/call":
        return method
    params = message["params"]
    return f"{method} {params['name']} {params['arguments'].get('text', '')}"
