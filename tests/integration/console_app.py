"""The console on real services and one database, and a browser without scripts: cookies, pages and their forms."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from itertools import chain
from typing import Any

from httpx2 import ASGITransport, AsyncClient, Response

from app.api.surface import SURFACES
from app.console.services import ConsoleServices
from app.console.surface import CONSOLE, console_routers
from app.core.access import Role
from app.core.identities import TrustedIssuer
from app.edge.guard import EdgeGuard
from app.edge.lifespan_state import Served
from app.edge.limits import DeclaredLimits, EdgeLimits
from app.engines.tokens import JoseReader
from app.services.access.console_sessions import ConsoleSessions
from app.services.access.identity.sign_ins import IdentitySignIns
from app.services.access.issuer_keys import IssuerKeys
from app.services.access.sessions import SessionService
from app.services.access.token_callers import TokenCallers
from app.services.audit.anchoring import LogLag
from app.upstream.issuers import IssuerClient
from tests.integration.rest_app import Rest, open_rest

ORIGIN = "http://localhost:8000"
TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')


@dataclass
class Browser:
    """Keeps cookies and the last page; ``address`` is where it asks from."""

    http: AsyncClient
    shown: Response | None = None

    async def open(self, path: str, **headers: str) -> Response:
        """Ask for a page as browsers do, without following where it leads."""
        self.shown = await self.http.get(path, headers={"accept": "text/html", **headers})
        return self.shown

    async def send(self, path: str, form: Mapping[str, str] | None = None, **headers: str) -> Response:
        """Send a form with the token of the last page, unless it brings one itself."""
        token = TOKEN.search(self.shown.text) if self.shown is not None else None
        values = {"form_token": token[1] if token else "", **(form or {})}
        return await self.http.post(path, data=values, headers={"origin": ORIGIN, **headers})

    async def sign_in(self, key: str, following: str = "/console/") -> Response:
        """Sign in with a key."""
        await self.open("/console/sign-in")
        return await self.send("/console/sign-in", {"key": key, "next": following})


@dataclass(frozen=True)
class Console:
    """The console, its services, and the REST surface beside it."""

    rest: Rest
    guard: EdgeGuard
    sessions: ConsoleSessions

    @asynccontextmanager
    async def browsing(self, *roles: Role | str, address: str = "127.0.0.1") -> AsyncIterator[Browser]:
        """Return a browser; with roles, signed in under a key that has them."""
        transport = ASGITransport(self.guard, client=(address, 4711))
        async with AsyncClient(transport=transport, base_url=ORIGIN) as http:
            browser = Browser(http)
            if roles:
                answer = await browser.sign_in(await self.rest.key(*roles))
                assert answer.status_code == 303, answer.text
            yield browser


class Stream:
    """A request whose answer is read while it comes."""

    def __init__(self) -> None:
        self.status, self._left = 0, asyncio.Event()
        self._came: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def receive(self) -> dict[str, Any]:
        """Say nothing until the browser leaves."""
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self._came.put_nowait(message.get("body", b""))
            if not message.get("more_body", False):
                self._came.put_nowait(None)

    async def part(self, word: bytes = b"") -> bytes | None:
        """Return the next part of the answer that has ``word``; None: it has ended."""
        async with asyncio.timeout(30):
            while True:
                came = await self._came.get()
                if came is None or word in came:
                    return came

    def leave(self) -> None:
        """Close the connection."""
        self._left.set()


@asynccontextmanager
async def streaming(console: Console, browser: Browser, path: str) -> AsyncIterator[Stream]:
    """Ask for an answer that goes on, with the session of a browser."""
    route, _, query = path.partition("?")
    cookie = f"sluice_console={browser.http.cookies.get('sluice_console')}"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": route,
        "raw_path": route.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"localhost:8000"), (b"cookie", cookie.encode())],
        "client": ("127.0.0.1", 4711),
        "server": ("localhost", 8000),
    }
    stream = Stream()
    running = asyncio.ensure_future(console.guard(scope, stream.receive, stream.send))
    try:
        yield stream
    finally:
        stream.leave()
        async with asyncio.timeout(30):
            await running


@asynccontextmanager
async def open_console(
    database_url: str,
    *,
    trusted: Callable[[Rest], TrustedIssuer] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    **more: Any,
) -> AsyncIterator[Console]:
    """Return the console on a migrated database; ``more`` are services in the place of its own.

    ``trusted`` returns an issuer whose tokens it takes, and whose people sign in where it is set up for that.
    """
    async with open_rest(database_url) as rest:
        services, database = rest.services, rest.services.access.database
        kept, gate = SessionService(database, now=now), services.authenticator
        client, reader, callers = IssuerClient(development=True), JoseReader(), gate.tokens
        if trusted is not None:
            issuer = trusted(rest)
            keys = {issuer.issuer: IssuerKeys(issuer, client, reader)}
            callers = TokenCallers(keys, {}, reader, database, services.audit)
            gate = replace(gate, tokens=callers, now=now)
        assert callers is not None
        people = IdentitySignIns(client, callers, kept, gate)
        sessions = ConsoleSessions(kept, gate, services.audit, people)
        routers = console_routers()
        # The reference that the framework brings is not the service's.
        rest.app.router.routes[:] = [
            route for route in rest.app.router.routes if getattr(route, "path", "") != "/docs"
        ]
        for router in routers:
            rest.app.include_router(router)
        values = {
            "sessions": sessions,
            "access": services.access,
            "issuers": services.issuers,
            "audit": services.audit,
            "policies": services.policies,
            "pipelines": services.pipelines,
            "servers": services.servers,
            "grants": services.grants,
            "providers": services.providers,
            "client_catalogs": services.client_catalogs,
            "invoke": services.invoke,
            "explaining": services.explaining,
            "vault": services.vault,
            "tenant_erasure": services.tenant_erasure,
            "collections": services.collections,
            "ingestion": services.ingestion,
            "trials": services.trials,
            "lag": LogLag(database, (), lambda: datetime.now(UTC)),
            "version": "0",
        }
        rest.app.state.console_services = ConsoleServices(**{**values, **more})
        served = Served(gate, gates={CONSOLE.prefix: sessions})
        declared = DeclaredLimits.of(chain.from_iterable(router.routes for router in routers))
        guard = EdgeGuard(rest.app, EdgeLimits(), declared, served, surfaces=(*SURFACES, CONSOLE))
        yield Console(rest, guard, sessions)


def navigation(page: Response) -> list[str]:
    """Return the names of the pages that a page leads to."""
    listed = re.search(r'<nav class="side".*?</ul>', page.text, re.DOTALL)
    assert listed is not None
    return re.findall(r"<span>([^<]+)</span>", listed[0])


def text_of(page: Response) -> str:
    """Return a page's text, without its elements."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.text)).split())


def elements(page: Response, names: Iterable[str]) -> list[str]:
    """Return the opening tags of elements, as they stand in a page."""
    return re.findall(rf"<(?:{'|'.join(names)})\b[^>]*>", page.text)


class _Fields(HTMLParser):
    """Reads the fields of all forms of a page, with the values that a browser would send."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._select = self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name") or ""
        if tag == "input" and given.get("type") not in ("checkbox", "radio"):
            self.values[name] = given.get("value") or ""
        elif tag == "select":
            self._select = name
        elif tag == "option" and (self._select not in self.values or "selected" in given):
            self.values[self._select] = given.get("value") or ""
        elif tag == "textarea":
            self._area, self.values[name] = name, ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self.values[self._area] = self.values[self._area].removeprefix("\n")
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area] += data


def fields_of(page: Response) -> dict[str, str]:
    """Return the fields of a page by name, as a browser would send them untouched."""
    reader = _Fields()
    reader.feed(page.text)
    return reader.values
