"""An issuer of tokens on loopback, made with joserfc: its keys, its metadata, and its ways to fail."""

import json
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote_plus

from joserfc import jwt
from joserfc.jwk import ECKey, Key

SECRET = "introspection: secret+of the tests"
LOGIN = "Basic " + b64encode(f"sluice:{quote_plus(SECRET)}".encode()).decode()
COMMAND_LINE = "sluice-cli"
"""A public client."""
AUDIENCE = "https://sluice.example.com/mcp"


def new_key(name: str) -> ECKey:
    """Return a key pair that signs ES256."""
    return ECKey.generate_key("P-256", {"kid": name, "use": "sig", "alg": "ES256"})


@dataclass
class Issuer:
    """Serves ``documents`` by path; ``answer`` replaces what it does with a request."""

    url: str = ""
    key: Key = field(default_factory=lambda: new_key("first"))
    documents: dict[str, Any] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    answer: Callable[[BaseHTTPRequestHandler], None] | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    codes: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """For each authorization code, which works once: the challenge that was asked with, and the answer."""

    device: dict[str, Any] = field(default_factory=dict)
    grants: list[dict[str, Any]] = field(default_factory=list)
    """What it answers next to who asks for a token without a code."""

    states: dict[str, Any] = field(default_factory=dict)
    """What it says of tokens when it is asked; of all others, that they do not count."""

    def publish(self, *keys: Key) -> None:
        """List these keys, and the metadata that says where."""
        listed = {"keys": [key.as_dict(private=False) for key in keys]}
        self.documents["/keys"] = listed
        self.documents["/.well-known/openid-configuration"] = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "introspection_endpoint": f"{self.url}/introspect",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "device_authorization_endpoint": f"{self.url}/device",
        }

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a good token; None leaves a claim out."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ada",
            "iat": now,
            "exp": now + 300,
            "groups": ["llm-users"],
        }
        return {name: value for name, value in {**claims, **changed}.items() if value is not None}

    def token(self, *, key: Key | None = None, header: dict[str, Any] | None = None, **changed: Any) -> str:
        """Return a signed token; ``key`` signs instead of the issuer's own."""
        signer = key or self.key
        head = {"alg": "ES256", "kid": signer.kid, "typ": "at+jwt", **(header or {})}
        return jwt.encode(head, self.claims(**changed), signer, algorithms=[head["alg"]])


@contextmanager
def token_issuer() -> Iterator[Issuer]:
    """Run an issuer with one key until the end of the body."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked[self.path] += 1
            if issuer.answer is not None:
                issuer.answer(self)
            elif self.path in issuer.documents:
                send(self, json.dumps(issuer.documents[self.path]).encode())
            else:
                send(self, b"{}", status=404)

        def do_POST(self) -> None:
            issuer.asked[self.path] += 1
            if issuer.answer is not None:
                issuer.answer(self)
                return
            body = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
            if self.path == "/device" and body["client_id"] == [COMMAND_LINE]:
                send(self, json.dumps(issuer.device).encode())
                return
            if self.path == "/token" and body["grant_type"] != ["authorization_code"]:
                issuer.asked[body["grant_type"][0]] += 1
                answer = issuer.grants.pop(0) if issuer.grants else {"error": "invalid_grant"}
                send(self, json.dumps(answer).encode(), status=400 if "error" in answer else 200)
                return
            if self.path == "/token":
                challenge, granted = issuer.codes.pop(body["code"][0], ("", {}))
                digest = sha256(body["code_verifier"][0].encode()).digest()
                fits = challenge == urlsafe_b64encode(digest).rstrip(b"=").decode()
                known = self.headers["authorization"] == LOGIN or body.get("client_id") == [COMMAND_LINE]
                ours = known and body["grant_type"] == ["authorization_code"]
                answer = granted if fits and ours else {"error": "invalid_grant"}
                send(self, json.dumps(answer).encode(), status=200 if fits and ours else 400)
                return
            if self.path != "/introspect" or self.headers["authorization"] != LOGIN:
                send(self, b"{}", status=401)
            else:
                state = issuer.states.get(body["token"][0], {"active": False})
                send(self, json.dumps(state).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    issuer.publish(issuer.key)
    try:
        yield issuer
    finally:
        issuer.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def send(request: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Answer a request."""
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.send_header("content-type", "application/json")
    request.send_header("content-length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
