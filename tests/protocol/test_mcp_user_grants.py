"""Servers behind that are called with what the user granted in a browser: the way there, its attacks, and its end."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
import pytest

from tests.protocol.answering import Answering
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import HANDSHAKE, PREFIX, REVISIONS, Reply, client
from tests.protocol.passing_service import call
from tests.protocol.test_mcp_upstream_auth import rest
from tests.protocol.test_mcp_user_tokens import echo, exchanging, trusting
from tests.upstreams.authorizing import (
    AuthorizationServer,
    Guarded,
    authorization_server,
    guarded_http,
)
from tests.upstreams.scripted import ScriptedServer

CALLBACK = "/console/server-grants/callback"
BOTH = {"elicitation": {"form": {}, "url": {}}}


@pytest.fixture
def provider() -> Iterator[AuthorizationServer]:
    with authorization_server() as made:
        yield made


class Company:
    """A service, the provider of its people, and a server alpha that has an authorization server of its own."""

    def __init__(
        self, url: str, people: AuthorizationServer, own: AuthorizationServer, guarded: Guarded, folder: Path
    ) -> None:
        self.url, self.people, self.own, self.guarded, self.folder = url, people, own, guarded, folder
        self.origin = url.removesuffix("/mcp")
        self.ada, self.grace = people.user_token("ada"), people.user_token("grace")

    async def ask(self, method: str, path: str, token: str, body: Any = None) -> httpx2.Response:
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            place = f"{self.origin}/api/v1/server-grants{path}"
            return await http.request(method, place, json=body, headers=headers)

    async def begin(self, token: str) -> str:
        answer = await self.ask("POST", "", token, {"server": "alpha"})
        assert answer.status_code == 201, answer.text
        place: str = answer.json()["authorize"]
        return place

    async def visit(self, authorize: str, person: str, **changed: str | None) -> httpx2.Response:
        """Sign in at the authorization server as a person, and open the address that leads back."""
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as browser:
            left = await browser.get(f"{authorize}&person={person}")
            back = urlsplit(left.headers["location"])
            assert f"{back.scheme}://{back.netloc}{back.path}" == f"https://sluice.example.com{CALLBACK}"
            answer = {**dict(parse_qsl(back.query)), "session_state": "of the server's own", **changed}
            query = {name: value for name, value in answer.items() if value is not None}
            return await browser.get(f"{self.origin}{CALLBACK}", params=query)

    async def connect(self, token: str, person: str) -> None:
        code = code_of(await self.visit(await self.begin(token), person))
        answer = await self.ask("POST", "/confirm", token, {"code": code})
        assert (answer.status_code, answer.json()) == (200, {"server": "alpha"})

    def forms(self, grant: str) -> list[dict[str, str]]:
        return [form for form in self.own.asked if form["grant_type"] == grant]


def code_of(page: httpx2.Response) -> str:
    assert page.status_code == 200, page.text
    code: str = page.text.partition("<p><code>")[2].partition("</code>")[0]
    return code


@asynccontextmanager
async def company(folder: Path, people: AuthorizationServer, **more: Any) -> AsyncIterator[Company]:
    with authorization_server() as own, guarded_http(ScriptedServer("alpha"), own) as guarded:
        settings = exchanging(guarded, mode="user_grant")
        async with trusting(folder, settings, people, **more) as url:
            yield Company(url, people, own, guarded, folder)


async def test_a_person_grants_once_and_calls_of_both_revisions_go_with_that(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    async with company(tmp_path, provider) as made:
        authorize = await made.begin(made.ada)
        asked = parse_qs(urlsplit(authorize).query)
        assert asked["resource"] == [made.guarded.url] and asked["code_challenge_method"] == ["S256"]
        assert asked["scope"] == ["see use offline_access"] and asked["mode"] == ["tests"]
        page = await made.visit(authorize, "ada at alpha")
        answer = await made.ask("POST", "/confirm", made.ada, {"code": code_of(page)})
        assert answer.status_code == 200, answer.text
        for revision in REVISIONS:
            assert "result" in (await echo(made.url, revision, made.ada, revision)).message
            other = (await echo(made.url, revision, made.grace, "grace")).error
            assert other["data"]["code"] == "conflict"
            assert other["data"]["authorize"].startswith(made.own.url)
            refused = (await echo(made.url, revision, str(KEY), "key")).error
            assert refused["data"]["code"] == "forbidden"
        assert made.guarded.calls() == [("ada at alpha", f"echo {revision}") for revision in REVISIONS]
        mine, hers = [(await made.ask("GET", "", token)).json()["items"] for token in (made.ada, made.grace)]
        assert [grant["server"] for grant in mine] == ["alpha"] and hers == []
        secrets = [*made.own.tokens, *made.own.refreshes, page.text[page.text.index("<code>") + 6 :][:43]]
        shown = str(mine)
        stored = b"".join(file.read_bytes() for file in tmp_path.glob("aggregated.db*"))
        assert not any(secret in shown or secret.encode() in stored for secret in secrets)
        assert made.ada not in made.guarded.bearers and not provider.asked


async def test_a_modern_client_is_asked_in_the_call_and_its_answer_continues_it(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    async with company(tmp_path, provider) as made, client(made.url, "2026-07-28", made.ada) as wire:
        meta = {f"{PREFIX}clientCapabilities": BOTH}
        params = {"name": "alpha__echo", "arguments": {"text": "at last"}}
        asked = (await wire.call("tools/call", meta, {"mcp-name": "alpha__echo"}, **params)).result
        opening, asking = asked["inputRequests"].values()
        assert asked["resultType"] == "input_required"
        assert (opening["params"]["mode"], asking["params"]["mode"]) == ("url", "form")
        code = code_of(await made.visit(opening["params"]["url"], "ada"))
        answers = {key: {"action": "accept"} for key in asked["inputRequests"]}
        wrong = {**answers, "dev.sluice/code": {"action": "accept", "content": {"code": "A" * 43}}}
        again = await wire.call(
            "tools/call", meta, {"mcp-name": "alpha__echo"}, inputResponses=wrong, **params
        )
        assert again.result["resultType"] == "input_required"
        right = {**answers, "dev.sluice/code": {"action": "accept", "content": {"code": f" {code} "}}}
        done = await wire.call(
            "tools/call", meta, {"mcp-name": "alpha__echo"}, inputResponses=right, **params
        )
        assert "at last" in done.text and "content" in done.result
        assert made.guarded.calls() == [("ada", "echo at last")]


async def test_a_client_of_the_handshake_is_asked_on_its_stream(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    async with company(tmp_path, provider) as made, client(made.url, HANDSHAKE, made.ada) as wire:
        await wire.open(BOTH)
        codes: list[str] = []

        class Person(Answering):
            async def _answer(self, message: dict[str, Any]) -> None:
                params, answer = message["params"], {"action": "accept"}
                if params["mode"] == "url":
                    codes.append(code_of(await made.visit(params["url"], "ada")))
                    self.answers = {"elicitation/create": answer}
                else:
                    self.answers = {"elicitation/create": {**answer, "content": {"code": codes[-1]}}}
                await super()._answer(message)

        reply = await Person(wire).tool("alpha__echo", text="at last")
        assert "content" in reply.result, reply.messages
        assert made.guarded.calls() == [("ada", "echo at last")]


async def test_what_somebody_else_grants_is_nobodys(tmp_path: Path, provider: AuthorizationServer) -> None:
    async with company(tmp_path, provider) as made:
        # Grace follows a link of Ada's, and sees the code. Ada does not know it, and Grace did not begin.
        code = code_of(await made.visit(await made.begin(made.ada), "grace"))
        foreign = await made.ask("POST", "/confirm", made.grace, {"code": code})
        guessed = await made.ask("POST", "/confirm", made.ada, {"code": "A" * 43})
        assert (foreign.status_code, guessed.status_code) == (404, 404)
        assert foreign.json()["detail"] == guessed.json()["detail"]
        for token in (made.ada, made.grace):
            assert (await echo(made.url, "2026-07-28", token, "no")).error["data"]["code"] == "conflict"
        assert not made.guarded.calls()
        # It counts once, for the one who began.
        assert (await made.ask("POST", "/confirm", made.ada, {"code": code})).status_code == 200
        assert (await made.ask("POST", "/confirm", made.ada, {"code": code})).status_code == 404


async def test_a_way_back_counts_once_and_only_from_the_authorization_server_that_was_asked(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    async with company(tmp_path, provider) as made:
        authorize = await made.begin(made.ada)
        assert (await made.visit(authorize, "ada")).status_code == 200
        assert (await made.visit(authorize, "ada")).status_code == 404
        exchanged = len(made.forms("authorization_code"))
        assert exchanged == 1
        changes: list[dict[str, str | None]] = [
            {"iss": "https://attacker.example"},
            {"iss": None},
            {"code": None},
            {"error": "access_denied"},
        ]
        for changed in changes:
            page = await made.visit(await made.begin(made.ada), "ada", **changed)
            assert page.status_code in {502, 503} and "One more step" not in page.text
        states: list[str | None] = [
            None,
            "",
            "a",
            "default.sub-1." + "A" * 43,
            "default.console:x." + "A" * 43,
        ]
        for state in states:
            assert (await made.visit(await made.begin(made.ada), "ada", state=state)).status_code == 404
        assert len(made.forms("authorization_code")) == exchanged
        key = await made.ask("POST", "", str(KEY), {"server": "alpha"})
        assert key.status_code == 409


async def test_an_authorization_server_without_pkce_or_without_a_page_is_not_gone_to(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    async with company(tmp_path, provider) as made:
        for changed in (
            {"code_challenge_methods_supported": None},
            {"code_challenge_methods_supported": ["plain"]},
            {"authorization_endpoint": None},
            {"authorization_endpoint": "javascript:alert(1)"},
            {"authorization_endpoint": "http://[::1"},
            {"issuer": "https://attacker.example"},
        ):
            made.own.metadata = changed
            answer = await made.ask("POST", "", made.ada, {"server": "alpha"})
            assert answer.status_code == 502, answer.text
            assert "javascript" not in answer.text and "attacker" not in answer.text


async def test_refresh_tokens_are_rotated_and_a_grant_that_ended_is_asked_for_again(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    async with company(tmp_path, provider) as made:
        await made.connect(made.ada, "ada")
        assert "result" in (await echo(made.url, "2026-07-28", made.ada, "first")).message
        for number in range(2):
            made.own.tokens = {
                token: given for token, given in made.own.tokens.items() if given.subject == "service"
            }
            assert "result" in (await echo(made.url, "2026-07-28", made.ada, f"{number}")).message
        used = [form["refresh_token"] for form in made.forms("refresh_token")]
        assert len(used) == len(set(used)) == 2
        made.own.tokens = {
            token: given for token, given in made.own.tokens.items() if given.subject == "service"
        }
        made.own.refreshes.clear()
        refused = (await echo(made.url, "2026-07-28", made.ada, "over")).message
        assert "error" in refused
        asked = (await echo(made.url, "2026-07-28", made.ada, "over")).error
        assert asked["data"]["code"] == "conflict" and "authorize" in asked["data"]
        assert (await made.ask("GET", "", made.ada)).json()["items"] == []


async def test_a_grant_is_taken_back_here_and_at_its_issuer(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    async with company(tmp_path, provider) as made:
        await made.connect(made.ada, "ada")
        await made.connect(made.grace, "grace")
        assert "result" in (await echo(made.url, "2026-07-28", made.ada, "ada")).message
        items = (await made.ask("GET", "", str(KEY))).json()["items"]
        holders = {grant["holder"] for grant in items}
        assert len(holders) == len(items) == 2
        (adas,) = (await made.ask("GET", "", made.ada)).json()["items"]
        foreign = await made.ask("DELETE", f"/alpha?holder={adas['holder']}", made.grace)
        assert foreign.status_code == 403
        assert (await made.ask("DELETE", "/alpha", made.ada)).status_code == 204
        assert (await made.ask("DELETE", "/alpha", made.ada)).status_code == 404
        (graces,) = holders - {adas["holder"]}
        assert (await made.ask("DELETE", f"/alpha?holder={graces}", str(KEY))).status_code == 204
        assert len(made.own.revoked) == 2 and not made.own.refreshes
        for token in (made.ada, made.grace):
            assert (await call_error(made, token))["code"] == "conflict"
        assert made.guarded.calls() == [("ada", "echo ada")]


async def test_a_person_whom_the_provider_removes_has_no_grant_any_more(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/scim+json"}
    schemas = ["urn:ietf:params:scim:schemas:core:2.0:User"]
    patch = {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{"op": "replace", "path": "active", "value": False}],
    }
    async with (
        company(tmp_path, provider, provisioning={"claim": "sub"}) as made,
        httpx2.AsyncClient(base_url=f"{made.origin}/scim/v2", headers=headers, trust_env=False) as scim,
    ):
        ids = {}
        for name in ("ada", "grace"):
            user = {"schemas": schemas, "userName": name, "externalId": name, "active": True}
            answer = await scim.post("/Users", content=json.dumps(user))
            assert answer.status_code == 201, answer.text
            ids[name] = answer.json()["id"]
        await made.connect(made.ada, "ada")
        await made.connect(made.grace, "grace")
        assert "result" in (await echo(made.url, "2026-07-28", made.ada, "still")).message
        answer = await scim.patch(f"/Users/{ids['ada']}", content=json.dumps(patch))
        assert answer.status_code == 200, answer.text
        async with asyncio.timeout(30):
            while not made.own.revoked:
                await asyncio.sleep(0.02)
        items = (await made.ask("GET", "", str(KEY))).json()["items"]
        (graces,) = (await made.ask("GET", "", made.grace)).json()["items"]
        assert items == [graces] and len(made.own.revoked) == 1
        assert (await made.ask("GET", "", made.ada)).status_code == 401
        assert "result" in (await echo(made.url, "2026-07-28", made.grace, "still")).message


async def test_what_somebody_granted_follows_no_server_to_another_address(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    near = {"allowed_networks": ("127.0.0.0/8",)}
    async with company(tmp_path, provider, upstreams=near) as made, rest(made.url) as http:
        with (
            guarded_http(ScriptedServer("beta"), made.own) as beta,
            guarded_http(ScriptedServer("beta"), made.own) as elsewhere,
        ):
            address, other = beta.url, elsewhere.url
            elsewhere.url = beta.url  # it takes what was given for the other one

            async def put(method: str, path: str, url: str) -> None:
                settings = exchanging(beta, mode="user_grant", resource=beta.url) | {"url": url}
                body = {"settings": settings} | ({"name": "beta"} if method == "POST" else {})
                (await http.request(method, path, json=body)).raise_for_status()
                (await http.post("/servers/beta/approve")).raise_for_status()

            async def called(text: str) -> Reply:
                async with client(made.url, "2026-07-28", made.ada) as wire, asyncio.timeout(20):
                    while "no such tool" in str(reply := await call(wire, "beta__echo", {"text": text})):
                        await asyncio.sleep(0.05)  # what is approved is listed a little later
                    return reply

            await put("POST", "/servers", address)
            begun = await made.ask("POST", "", made.ada, {"server": "beta"})
            code = code_of(await made.visit(begun.json()["authorize"], "ada"))
            late = await made.ask("POST", "", made.grace, {"server": "beta"})
            assert (await made.ask("POST", "/confirm", made.ada, {"code": code})).status_code == 200
            assert "result" in (await called("here")).message
            await put("PUT", "/servers/beta", other)
            own = {token for token, given in made.own.tokens.items() if given.subject == "ada"}
            assert (await called("there")).error["data"]["code"] == "conflict"
            assert own and not own & set(elsewhere.bearers) and not elsewhere.calls()
            # Nor does the answer to a question of before go there.
            assert (await made.visit(late.json()["authorize"], "grace")).status_code == 404
            assert not made.forms("refresh_token")


async def call_error(made: Company, token: str) -> Any:
    async with client(made.url, "2026-07-28", token) as wire:
        return (await call(wire, "alpha__echo", {"text": "no"})).error["data"]
