"""Sign in to a service from the command line: with a browser on this machine (RFC 8252) or elsewhere (RFC 8628)."""

import base64
import hashlib
import hmac
import http.server
import secrets
import time
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx2

from app.cli.access.token_file import StoredToken, store_token, stored_tokens
from app.cli.addresses import is_open_on_the_way
from app.cli.terminal import UNREACHABLE, CommandError, fail, note
from app.core.addresses import scheme_of

_WAIT_S: Final = 300.0
_TIMEOUT_S: Final = 15.0
_KNOCK_S: Final = 5.0
"""How long a program that connects and says nothing is waited for."""
_EARLY_S: Final = 30.0
_SLOWER_S: Final = 5.0
_PAUSES_S: Final = range(1, 60)
_LONGEST_S: Final = 366 * 86_400
_OK: Final = 200
_MISSING: Final = 404
_MOST: Final = 4096
_DEVICE: Final = "urn:ietf:params:oauth:grant-type:device_code"
_PAGE: Final = b"You may close this window."


@dataclass(frozen=True, slots=True)
class SignInPlan:
    """Where to sign in for a service: what it says of itself, and its issuer of itself."""

    resource: str
    issuer: str
    scope: str
    metadata: Mapping[str, Any]
    client_id: str

    def token_of(self, granted: Mapping[str, Any]) -> StoredToken:
        """Return what an issuer granted, to be kept."""
        access, refresh = granted.get("access_token"), granted.get("refresh_token")
        if not isinstance(access, str) or str(granted.get("token_type", "")).lower() != "bearer":
            fail("The issuer gave no token.")
        return StoredToken(
            issuer=self.issuer,
            token_endpoint=self.place("token_endpoint"),
            client_id=self.client_id,
            resource=self.resource,
            access=access,
            refresh=refresh if isinstance(refresh, str) else None,
            ends=time.time() + _seconds(granted.get("expires_in"), _TIMEOUT_S, range(_LONGEST_S)),
        )

    def place(self, name: str) -> str:
        """Return an address in what the issuer says of itself; end the command where it says none."""
        address = self.metadata.get(name)
        if not isinstance(address, str):
            fail(f"{self.issuer} has no {name} in its metadata: whoever runs it can add it.")
        return address


def origin_of(url: str) -> str:
    """Return the address of a service without a path; end the command for one whose answers others could read."""
    if is_open_on_the_way(url):
        fail("Signing in needs https:// but for this machine.")
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, "", "", ""))


def _is_at(resource: object, origin: str) -> TypeGuard[str]:
    """Return whether what a service says of its own address is one at ``origin``."""
    place = urlsplit(origin).netloc
    return (
        isinstance(resource, str) and scheme_of(resource) is not None and urlsplit(resource).netloc == place
    )


def planned(url: str, client_id: str) -> SignInPlan:
    """Ask a service which issuer it trusts (RFC 9728), and that one where to sign in."""
    origin = origin_of(url)
    described = _json(f"{origin}/.well-known/oauth-protected-resource")
    resource, issuers = described.get("resource"), described.get("authorization_servers")
    if not _is_at(resource, origin):
        fail(f"{origin} says that it is {resource}: use the address that the service has for its clients.")
    if not isinstance(issuers, list) or not issuers or not isinstance(issuers[0], str):
        fail(f"{origin} names no issuer.")
    issuer = issuers[0]
    metadata = _json(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if metadata.get("issuer") != issuer:
        fail(f"{issuer} says that it is another issuer.")
    scopes = described.get("scopes_supported")
    scope = " ".join(each for each in scopes if isinstance(each, str)) if isinstance(scopes, list) else ""
    for name in ("authorization_endpoint", "token_endpoint", "device_authorization_endpoint"):
        if isinstance(metadata.get(name), str):
            origin_of(metadata[name])
    plan = SignInPlan(resource, issuer, scope, metadata, client_id)
    plan.place("token_endpoint")  # before anybody is led anywhere
    return plan


def by_browser(plan: SignInPlan, browse: Callable[[str], object] = webbrowser.open) -> StoredToken:
    """Open a browser at the issuer, and wait on this machine for it to come back."""
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    answers: list[dict[str, str]] = []
    with http.server.HTTPServer(("127.0.0.1", 0), _waiting(state, answers)) as server:
        redirect = f"http://127.0.0.1:{server.server_port}/callback"
        asked = {
            "response_type": "code",
            "client_id": plan.client_id,
            "redirect_uri": redirect,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": plan.resource,
            **({"scope": plan.scope} if plan.scope else {}),
        }
        place = plan.place("authorization_endpoint")
        address = f"{place}{'&' if urlsplit(place).query else '?'}{urlencode(asked)}"
        note(f"Sign in here, if no browser opens: {address}")
        browse(address)
        server.timeout, until = 1.0, time.monotonic() + _WAIT_S
        while not answers and time.monotonic() < until:
            server.handle_request()
    form = {
        "grant_type": "authorization_code",
        "code": _code_of(plan, answers[0] if answers else {}),
        "redirect_uri": redirect,
        "code_verifier": verifier,
        "resource": plan.resource,
        "client_id": plan.client_id,
    }
    status, granted = _posted(plan.place("token_endpoint"), form)
    if status != _OK:
        fail("The issuer did not confirm that you have signed in.")
    return plan.token_of(granted)


def _waiting(state: str, answers: list[dict[str, str]]) -> type[http.server.BaseHTTPRequestHandler]:
    """Return what serves the address that the browser comes back to, and notes what it brings."""

    class Waiting(http.server.BaseHTTPRequestHandler):
        timeout = _KNOCK_S

        def do_GET(self) -> None:
            place = urlsplit(self.path)
            came = dict(parse_qsl(place.query))
            ours = hmac.compare_digest(came.get("state", "").encode(), state.encode())
            # Another program of this machine may knock; only the answer to our question counts.
            if place.path == "/callback" and ours and not answers:
                answers.append(came)
            self.send_response(_OK if ours else _MISSING)
            self.end_headers()
            self.wfile.write(_PAGE if ours else b"")

        def log_message(self, *_: Any) -> None:
            """Say nothing: addresses here hold codes."""

    return Waiting


def _code_of(plan: SignInPlan, answer: Mapping[str, str]) -> str:
    """Return the code that an issuer has sent through the browser."""
    needed = plan.metadata.get("authorization_response_iss_parameter_supported") is True
    if answer.get("iss", None if needed else plan.issuer) != plan.issuer:
        fail("Nobody has signed in, or at another issuer.")
    code = answer.get("code", "")
    if "error" in answer or not 1 <= len(code) <= _MOST:
        fail("The issuer has not signed you in.")
    return code


def by_device(plan: SignInPlan, pause: Callable[[float], None] = time.sleep) -> StoredToken:
    """Show a code to be entered at the issuer on any device, and wait until it was."""
    place = plan.metadata.get("device_authorization_endpoint")
    if not isinstance(place, str):
        fail(f"{plan.issuer} signs nobody in by a device's code: leave --device out.")
    form = {
        "client_id": plan.client_id,
        "resource": plan.resource,
        **({"scope": plan.scope} if plan.scope else {}),
    }
    status, begun = _posted(place, form)
    if status != _OK or not all(
        isinstance(begun.get(n), str) for n in ("device_code", "user_code", "verification_uri")
    ):
        fail("The issuer gave no code.")
    note(f"Open {begun['verification_uri']} and enter {begun['user_code']}")
    interval = _seconds(begun.get("interval"), _SLOWER_S, _PAUSES_S)
    left = _seconds(begun.get("expires_in"), _WAIT_S, range(int(_WAIT_S)))
    while left > 0:
        pause(interval)
        left -= max(interval, 1.0)
        form = {"grant_type": _DEVICE, "device_code": begun["device_code"], "client_id": plan.client_id}
        status, granted = _posted(plan.place("token_endpoint"), form)
        if status == _OK:
            return plan.token_of(granted)
        if granted.get("error") == "slow_down":
            interval += _SLOWER_S
        elif granted.get("error") != "authorization_pending":
            fail("The issuer refuses this sign-in.")
    raise CommandError("Nobody has entered the code in time.")


def _seconds(value: object, default: float, bounds: range) -> float:
    """Return a number of an issuer's answer within bounds; what is no number is ``default``."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - NaN
        return default
    return float(min(max(value, bounds.start), bounds.stop))


def current_token(url: str) -> str | None:
    """Return the token for a service that is kept here, renewed where it is over; None where nobody signed in."""
    origin = urlunsplit((*urlsplit(url)[:2], "", "", ""))
    stored = stored_tokens().get(origin)
    if stored is None:
        return None
    if time.time() < stored.ends - _EARLY_S:
        return stored.access
    if stored.refresh is None:
        fail(f"Your sign-in to {origin} is over: sluice auth login --url {origin}")
    form = {"grant_type": "refresh_token", "refresh_token": stored.refresh, "client_id": stored.client_id}
    status, granted = _posted(stored.token_endpoint, {**form, "resource": stored.resource})
    if status != _OK:
        store_token(origin, None)
        fail(f"Your sign-in to {origin} is over: sluice auth login --url {origin}")
    plan = SignInPlan(
        stored.resource, stored.issuer, "", {"token_endpoint": stored.token_endpoint}, stored.client_id
    )
    renewed = plan.token_of({"refresh_token": stored.refresh, **granted})
    store_token(origin, renewed)
    return renewed.access


def _json(address: str) -> Mapping[str, Any]:
    origin_of(address)
    try:
        answer = httpx2.get(address, timeout=_TIMEOUT_S, headers={"accept": "application/json"})
        value = answer.json() if answer.status_code == _OK else None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        value = None
    if not isinstance(value, dict):
        fail(f"{address} does not say where to sign in.", UNREACHABLE)
    return value


def _posted(address: str, form: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
    try:
        answer = httpx2.post(
            address, data=dict(form), timeout=_TIMEOUT_S, headers={"accept": "application/json"}
        )
        value = answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        fail(f"{urlsplit(address).netloc} does not answer.", UNREACHABLE)
    return answer.status_code, value if isinstance(value, dict) else {}
