"""Tenants behind one surface: ten thousand random attempts to list, call and read what is another's."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.catalog.primitives import PrimitiveKind
from app.core.contracts.policy import Grant, Limits, Policy
from app.core.errors import ServiceError
from app.store.database import Database
from tests.catalogs import catalog_of, primitive, tool
from tests.factories import PATIENT, with_schema
from tests.integration.forwarding_setup import Desk, desk_on
from tests.protocol.mcp_harness import Access, build, serving
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client
from tests.protocol.passing_service import ask
from tests.protocol.test_mcp_direct_primitives import primitives_of

TENANTS = ("acme", "umbrella", "initech")
SERVICE_ATTEMPTS = 9000
WIRE_ATTEMPTS = 600
UNLIMITED = Limits(requests_per_second=1e6, burst=10**6)


def caller(tenant: str, number: int = 0) -> Caller:
    return Caller(tenant, f"0000000{number}", frozenset({Role.INVOKER}))


def word(tenant: str) -> str:
    """Return what only the names of this tenant hold."""
    return f"of-{tenant}"


@pytest.fixture
async def database(tmp_path):
    opened = Database(with_schema(f"sqlite:///{tmp_path}/isolation.db"), patience=PATIENT)
    yield opened
    await opened.close()


@pytest.fixture
async def desk(database):
    async with desk_on(database, TENANTS[0]) as opened:
        for tenant in TENANTS:
            offer(opened, tenant)
            opened.policies.memory._values[tenant] = (float("inf"), (1, Policy(limits=UNLIMITED)))
        yield opened


def offer(desk: Desk, tenant: str) -> None:
    """Give a tenant servers of the names that the others have too, with a mark in what is its own."""
    mark = word(tenant)
    primitives = [tool("files", "read"), tool(f"{mark}", "secret"), tool("mail", f"send-{mark}")]
    primitives += [tool("shared", f"tool{number}") for number in range(len(tenant) % 3)]
    primitives += [
        primitive(PrimitiveKind.PROMPT, "mail", f"prompt-{mark}"),
        primitive(PrimitiveKind.RESOURCE, "files", f"memo://{mark}/1"),
        primitive(PrimitiveKind.TEMPLATE, "files", f"memo://{mark}/{{id}}"),
    ]
    desk.offer(*primitives, tenant=tenant)

    async def answer(method: str, _params: Any, _hooks: Any) -> dict[str, Any]:
        link = {"type": "resource_link", "uri": f"link://{mark}", "name": mark}
        return {
            "content": [link],
            "contents": [],
            "messages": [],
            "completion": {"values": [mark]},
            "of": method,
        }

    for name in ("files", "mail", "shared", mark):
        desk.server(name, tenant, answer=answer)


def names_of(desk: Desk, tenant: str) -> list[tuple[PrimitiveKind, str]]:
    catalog = desk.shelf.catalogs[tenant]
    return [(kind, name) for kind, found in catalog.primitives.items() for name in found]


def foreign_marks(tenant: str) -> list[str]:
    return [word(other) for other in TENANTS if other != tenant]


async def attempt(desk: Desk, chance: random.Random, mine: str, caller: Caller) -> Any:
    """Do one random thing with a name of any tenant and return what came back, None where it was refused."""
    theirs = chance.choice(TENANTS)
    kind, name = chance.choice(names_of(desk, theirs))
    if chance.random() < 0.2:
        name = chance.choice([f"link://{word(theirs)}", f"memo://{word(theirs)}/7", f"sluice://files/{name}"])
        kind = PrimitiveKind.RESOURCE
    if chance.random() < 0.25:
        view = await desk.listing.view(caller)
        return [entry.definition for entry in desk.listing.listed(view, kind).entries]
    forward = desk.forwarding
    try:
        if kind is PrimitiveKind.TOOL:
            return await forward.call_tool(desk.asked(caller, params={"name": name, "arguments": {}}))
        if kind is PrimitiveKind.PROMPT and chance.random() < 0.5:
            return await forward.get_prompt(desk.asked(caller, params={"name": name}))
        if kind is PrimitiveKind.RESOURCE:
            return await forward.read_resource(desk.asked(caller, params={"uri": name}))
        ref = (
            {"type": "ref/prompt", "name": name}
            if kind is PrimitiveKind.PROMPT
            else {"type": "ref/resource", "uri": name}
        )
        argument = {"name": "a", "value": ""}
        return await forward.complete(desk.asked(caller, params={"ref": ref, "argument": argument}))
    except ServiceError as error:
        return [error.message]  # the details repeat the URI that was asked for


def leaks(desk: Desk, mine: str, answer: Any) -> Iterator[str]:
    """Yield what an answer or a server's log holds of other tenants."""
    text = str(answer)
    yield from (mark for mark in foreign_marks(mine) if mark in text)


async def attempts(desk: Desk, count: int, seed: int) -> tuple[list[Any], int]:
    """Make random attempts; return what leaked, and how many were answered rather than refused."""
    chance = random.Random(seed)
    found: list[Any] = []
    answered = 0
    for _ in range(count):
        mine = chance.choice(TENANTS)
        answer = await attempt(desk, chance, mine, caller(mine, chance.randrange(3)))
        answered += isinstance(answer, dict)
        found += [(mine, mark) for mark in leaks(desk, mine, answer)]
    return found, answered


async def test_no_attempt_shows_or_reaches_anything_of_another_tenant(desk, monkeypatch):
    # The record of each attempt is not what is looked at here, and would take most of the time.
    monkeypatch.setattr(type(desk.replica.audit), "record", unrecorded)
    found, answered = await attempts(desk, SERVICE_ATTEMPTS, 4711)

    assert found == []
    assert answered > SERVICE_ATTEMPTS / 10
    for (tenant, _), server in desk.servers.items():
        assert not [call for call in server.calls if any(mark in str(call) for mark in foreign_marks(tenant))]


async def test_a_catalog_of_the_wrong_tenant_would_be_noticed(desk, monkeypatch):
    monkeypatch.setattr(type(desk.replica.audit), "record", unrecorded)
    desk.shelf.catalogs["acme"] = catalog_of(
        *desk.shelf.catalogs["acme"].of(PrimitiveKind.TOOL).values(),
        *desk.shelf.catalogs["umbrella"].of(PrimitiveKind.TOOL).values(),
    )
    found, _ = await attempts(desk, 300, 4711)

    assert ("acme", word("umbrella")) in found


async def unrecorded(_audit: Any, *_events: Any) -> None:
    """Record nothing."""


@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
async def test_over_the_wire_tenants_and_keys_see_only_their_own(desk, revision):
    """Two keys of one tenant with different grants, and one of another, with the same attempts."""
    grants = [
        Grant(keys=["00000001"], members=[{"kind": "tool", "name": "files__*"}]),
        Grant(keys=["00000002"], members=[{"kind": "tool", "name": "mail__*"}]),
    ]
    policy = Policy(limits=UNLIMITED, grants=grants)
    desk.policies.memory._values["acme"] = (float("inf"), (2, policy))
    access = Access()
    access.keys = {"one": caller("acme", 1), "two": caller("acme", 2), "other": caller("umbrella", 1)}
    allowed = {
        "one": {"files__read"},
        "two": {f"mail__send-{word('acme')}"},
        "other": {name for kind, name in names_of(desk, "umbrella") if kind is PrimitiveKind.TOOL},
    }
    every = sorted(
        {name for tenant in TENANTS for kind, name in names_of(desk, tenant) if kind is PrimitiveKind.TOOL}
    )
    mcp = build(primitives=primitives_of(desk), authenticator=access)
    chance = random.Random(42)
    async with serving(mcp) as url:
        for key, mine in allowed.items():
            async with client(url, revision, key) as wire:
                shown = {one["name"] for one in (await wire.call("tools/list")).result["tools"]}
                assert shown == mine
                for _ in range(WIRE_ATTEMPTS // len(allowed)):
                    name = chance.choice(every)
                    reply = await ask(wire, "tools/call", name=name, arguments={})
                    assert ("result" in reply.message) == (name in mine), (key, name)
