"""Whoever leaves is let go from every open stream: by logout, by the mirror, by what the issuer says of the token."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from joserfc import jwt
from pydantic import SecretStr

from app.console.live import LiveLimits, LivePages
from app.console.services import ConsoleServices
from app.edge.guard import EdgeGuard
from app.protocol.server import McpParts
from app.services.access.identity.logouts import EVENT
from app.services.access.identity.sign_ins import issuer_id
from app.settings import AuthSettings
from app.settings.auth import IssuerSettings
from tests.gateway.provider import KEY as PROVIDER_KEY
from tests.gateway.provider import Provider, provider
from tests.integration.token_issuer import AUDIENCE, SECRET, Issuer, token_issuer
from tests.protocol.aggregated_service import aggregated
from tests.protocol.ended_streams import Doors, counting, streams_of, works
from tests.protocol.mcp_service import KEY
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

SOON_S = 10.0
"""Longer than any stream goes on: it is looked at five times a second here."""
RULES = [{"when": {"groups": "staff"}, "tenant": "default", "roles": ["invoker", "auditor"]}]
CONSOLE = {
    "clientId": "sluice",
    "clientSecret": SECRET,
    "redirectUri": "http://127.0.0.1:9/console/sign-in/return",
    "name": "Example login",
}


@dataclass
class Place:
    """A service with everything behind it, its issuer, and a client with all roles."""

    url: str
    issuer: Issuer
    models: Provider
    http: httpx2.AsyncClient

    def token(self, name: str) -> str:
        token = self.issuer.token(sub=name, groups=["staff"])
        self.issuer.states[token] = {"active": True, **self.issuer.claims(sub=name, groups=["staff"])}
        return token

    async def session(self, name: str) -> str:
        """Sign somebody in to the console, and return the cookie."""
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False) as browser:
            left = await browser.get(f"/console/sign-in/with/{issuer_id(self.issuer.url)}")
            asked = dict(parse_qsl(urlsplit(left.headers["location"]).query))
            own = {"aud": "sluice", "nonce": asked["nonce"], "sub": name, "groups": ["staff"]}
            granted = {"id_token": self.issuer.token(header={"typ": "JWT"}, **own), "token_type": "Bearer"}
            self.issuer.codes[name] = (asked["code_challenge"], granted)
            back = await browser.get(
                "/console/sign-in/return", params={"code": name, "state": asked["state"]}
            )
            assert back.status_code == 200, back.text
            return "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """Return a service that looks at what is open five times a second; as it comes, it does twice a minute."""
    monkeypatch.setattr("app.main.EdgeGuard", partial(EdgeGuard, recheck_s=0.2))
    monkeypatch.setattr("app.main.McpParts", partial(McpParts, ping_s=0.1))
    quick = LivePages(LiveLimits(step_s=0.1, heartbeat_s=0.2))
    monkeypatch.setattr("app.main.ConsoleServices", partial(ConsoleServices, live=quick))
    async with place_in(tmp_path) as made:
        yield made


@asynccontextmanager
async def place_in(folder: Path) -> AsyncIterator[Place]:
    """Run a service with a server of tools, a provider of models and an issuer."""
    script = ScriptedServer("alpha")
    script.add_tool("works", works)
    with token_issuer() as issuer, provider() as models, serving_http(script) as alpha:
        settings = IssuerSettings.model_validate(
            {
                "issuer": issuer.url,
                "audience": [AUDIENCE],
                "rules": RULES,
                "console": CONSOLE,
                "provisioning": {"claim": "sub", "attribute": "externalId", "required": False},
                "introspection": {
                    "clientId": "sluice",
                    "clientSecret": SECRET,
                    "tokens": ["signed"],
                    "cache": 1,
                },
            }
        )
        auth = AuthSettings(bootstrap_key=SecretStr(str(KEY)), issuers=(settings,))
        servers = {"alpha": {"url": alpha}}
        sections = {"auth": auth}
        async with aggregated(folder, servers, sections=sections, allowed_networks=("127.0.0.0/8",)) as (
            url,
            _,
        ):
            origin = url.removesuffix("/mcp")
            headers = {"authorization": f"Bearer {KEY}"}
            async with httpx2.AsyncClient(
                base_url=origin, headers=headers, trust_env=False, timeout=30
            ) as http:
                models.answer = counting
                document = {"kind": "openai", "baseUrl": f"{models.url}/v1", "apiKey": PROVIDER_KEY}
                document |= {"allowedNetworks": ["127.0.0.0/8"], "models": ["gpt-*"]}
                (await http.put("/api/v1/providers/main", json=document)).raise_for_status()
                yield Place(origin, issuer, models, http)


async def signs_out(place: Place, token: str) -> None:
    now = int(time.time())
    claims = {"iss": place.issuer.url, "aud": "sluice", "sub": "ada", "iat": now, "exp": now + 60}
    head = {"alg": "ES256", "kid": place.issuer.key.kid, "typ": "logout+jwt"}
    told = jwt.encode(head, {**claims, "jti": "1", "events": {EVENT: {}}}, place.issuer.key)
    answer = await place.http.post("/console/logout", data={"logout_token": told})
    assert answer.status_code == 200, answer.text


async def is_deactivated(place: Place, token: str) -> None:
    path = (await place.http.get('/scim/v2/Users?filter=externalId eq "ada"')).json()["Resources"][0]["id"]
    change = {"op": "replace", "path": "active", "value": False}
    (await place.http.patch(f"/scim/v2/Users/{path}", json={"Operations": [change]})).raise_for_status()


async def is_revoked(place: Place, token: str) -> None:
    del place.issuer.states[token]


@pytest.mark.parametrize("leaves", [signs_out, is_deactivated, is_revoked])
async def test_every_stream_ends_with_whoever_leaves_and_with_nobody_else(
    place: Place, leaves: Callable[[Place, str], Awaitable[None]]
) -> None:
    person = {"userName": "ada@example.org", "externalId": "ada", "active": True}
    (await place.http.post("/scim/v2/Users", json=person)).raise_for_status()
    ada, grace = place.token("ada"), place.token("grace")
    sessions = [await place.session(name) for name in ("ada", "grace")]
    doors = Doors(place.url)
    async with streams_of(doors, ada, sessions[0]) as hers, streams_of(doors, grace, sessions[1]) as others:
        await asyncio.sleep(0.6)  # what is looked at often goes on
        assert not [name for name, one in (*hers.items(), *others.items()) if one.ended is not None]
        await leaves(place, ada)
        # An issuer that says of a token that it is revoked says nothing of the session of a browser.
        left = {name: one for name, one in hers.items() if name != "live" or leaves is not is_revoked}
        await asyncio.gather(*(one.over(SOON_S) for one in left.values()))
        sizes = {name: len(one.seen) for name, one in left.items()}
        before = len(others["chat"].seen)
        await heard(place, others)
        assert {name: len(one.seen) for name, one in left.items()} == sizes
        assert len(others["chat"].seen) > before
        assert not [name for name, one in others.items() if one.ended is not None]
        check_ends(left)
        await all_let_go(place, 1)


async def heard(place: Place, others: dict[str, Any]) -> None:
    """Let something happen of which every stream of notifications tells."""
    group = {"name": "late", "members": [{"kind": "tool", "name": "alpha__*"}]}
    (await place.http.put("/api/v1/groups/late", json=group)).raise_for_status()
    await others["session"].until(b"groups/list_changed")
    await others["listening"].until(b"groups/list_changed")
    await others["restoring"].send({"text": "still [PERSON_1]. "})
    await others["restoring"].until(b"still Jane Smith")
    await asyncio.sleep(0.3)


def check_ends(left: dict[str, Any]) -> None:
    """Check how each answer ended: in good order where its protocol has one, without an end where it would be a lie."""
    assert [name for name, one in left.items() if name != "waiting" and one.status != 200] == []
    assert left["session"].is_whole and left["listening"].is_whole
    assert not left["chat"].is_whole and b"[DONE]" not in left["chat"].seen
    assert not left["restoring"].is_whole and b"done" not in left["restoring"].seen
    assert b"finally" not in left["working"].seen and not left["working"].is_whole
    refused = bytes(left["waiting"].seen)
    assert (
        left["waiting"].status == 401 and b"www-authenticate" in refused.lower() and b"finally" not in refused
    )
    if "live" in left:
        assert b"event: ended" in left["live"].seen


async def all_let_go(place: Place, number: int) -> None:
    """Wait until the provider's request has ended, too, and is on record."""
    async with asyncio.timeout(10):
        while place.models.left < number:
            await asyncio.sleep(0.05)
        while True:
            page = await place.http.get("/api/v1/audit/events?action=gateway.answer&limit=5")
            if found := page.json()["items"]:
                break
            await asyncio.sleep(0.05)
    assert [(event["outcome"], event["error_code"]) for event in found] == [("failed", "credential_ended")]
    assert re.search(r"\bada\b", json.dumps(found)) is None  # digests may hold the same letters


async def test_a_key_that_is_revoked_ends_its_streams_alone(place: Place) -> None:
    keys = []
    for _ in range(2):
        made = await place.http.post("/api/v1/keys", json={"roles": ["invoker"]})
        keys.append(made.json())
    doors = Doors(place.url)
    async with (
        streams_of(doors, keys[0]["key"], None) as mine,
        streams_of(doors, keys[1]["key"], None) as others,
    ):
        (await place.http.delete(f"/api/v1/keys/{keys[0]['id']}")).raise_for_status()
        await asyncio.gather(*(one.over(SOON_S) for one in mine.values()))
        assert not [name for name, one in others.items() if one.ended is not None]


async def test_streams_go_on_while_the_issuer_is_away(place: Place) -> None:
    doors, token = Doors(place.url), place.token("ada")

    def away(request: Any) -> None:
        request.send_error(503)

    async with streams_of(doors, token, None) as hers:
        place.issuer.answer = away
        await asyncio.sleep(2.5)  # two and a half times as long as an answer of the issuer counts
        assert not [name for name, one in hers.items() if one.ended is not None]
        place.issuer.answer = None
        del place.issuer.states[token]
        await asyncio.gather(*(one.over(SOON_S) for one in hers.values()))
