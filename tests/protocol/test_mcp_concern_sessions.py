"""What hosts configured, from one request to the next: handles, cursors, who is told, every replica."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from fastapi import FastAPI

from app.core.access import Caller, Role
from app.core.catalog.concerns import ConcernDefinition
from app.protocol.wire.notifications import StreamNotification
from app.services.access.access import HOST
from tests.protocol.concerned_service import (
    HANDLE,
    SECURITY,
    Concerned,
    Host,
    concerned,
    names_of,
)
from tests.protocol.mcp_service import service as served_on
from tests.protocol.mcp_service import surface_of
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client
from tests.protocol.requirements import covers
from tests.protocol.test_mcp_streams import getting, listening

ALL = ["encryptData", "logData", "validateData"]


@pytest.fixture
async def service(tmp_path) -> AsyncIterator[Concerned]:
    async with concerned(tmp_path) as served:
        yield served


@pytest.fixture
async def host(service: Concerned, revision: str) -> AsyncIterator[Host]:
    async with service.host(revision) as found:
        yield found


@dataclass
class Replica:
    url: str
    app: FastAPI


@contextlib.asynccontextmanager
async def replica(database_url: str) -> AsyncIterator[Replica]:
    async with served_on(database_url) as (url, app):
        yield Replica(url, app)


# Handles


@covers("CB-HANDLE")
async def test_a_handle_belongs_to_its_caller_and_to_nothing_else(service):
    async with service.host(MODERN) as host, service.host(MODERN, await service.key()) as other:
        without = await host.names()
        await host.update({"security": "high"})
        first = host.handle
        await host.update({"cost": "minimal"})
        assert host.handle == first
        assert await host.names() == ["encryptData", "validateData"]
        host.handle = None
        assert await host.names() == without == ALL  # a list does not vary by what another request did
        async with service.host(HANDSHAKE) as session:
            foreign = session.wire.session
            session.wire.session = first
            assert (await session.wire.call("tools/list")).status == 404
        for handle in (first + "x", "", 7, None, foreign):
            for method in ("tools/list", "concerns/update"):
                params = {"concerns": {}} if method == "concerns/update" else {}
                reply = await host.wire.call(method, meta={HANDLE: handle}, **params)
                assert reply.error["code"] == -32602
                assert reply.error["data"]["pointer"] == "/_meta/dev.sluice~1session"
        stolen = await other.wire.call("tools/list", meta={HANDLE: first})
        assert stolen.error["data"]["pointer"] == "/_meta/dev.sluice~1session"


@covers("CB-CACHE")
async def test_a_filtered_list_is_private_and_not_to_be_kept(service):
    async with service.host(MODERN) as host:
        await host.update({"security": "high"})
        result = (await host.call("tools/list")).result
    assert (result["cacheScope"], result["ttlMs"]) == ("private", 0)


@covers("CB-CURSOR")
async def test_a_cursor_holds_only_under_the_configuration_that_it_was_given_for(tmp_path, revision):
    async with concerned(tmp_path, more=300) as service, service.host(revision) as host:
        cursor = (await host.call("tools/list")).result["nextCursor"]
        assert len(names_of(await host.call("tools/list", cursor=cursor))) == 53

        # Both lists hold the same tools in the same order: it is the configuration that differs.
        await host.update({"performance": "fast"})

        stale = await host.call("tools/list", cursor=cursor)
        assert (stale.error["code"], stale.error["data"]["pointer"]) == (-32602, "/cursor")
        cursor = (await host.call("tools/list")).result["nextCursor"]
        assert len(names_of(await host.call("tools/list", cursor=cursor))) == 53


# Who is told

LAST = StreamNotification("notifications/tools/list_changed", {"last": True})


@covers("CB-TOLD")
async def test_the_session_whose_configuration_changed_is_told_and_no_other(service):
    lists = {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}
    await service.settled()
    async with (
        service.host(HANDSHAKE) as host,
        service.host(HANDSHAKE) as other,
        getting(host.wire) as mine,
        getting(other.wire) as theirs,
    ):
        assert [await mine.line(), await theirs.line()] == [": open", ": open"]
        await host.update({"security": "high"})
        assert {(await mine.message())["method"] for _ in lists} == lists
        surface_of(service.app).publish(LAST)
        assert (await theirs.message())["params"] == {"last": True}


@covers("CB-TOLD", "CB-HANDLE")
async def test_a_stream_that_names_the_handle_is_told_too(service):
    async with service.host(MODERN) as host:
        await host.update({"security": "high"})
        await service.settled()
        async with (
            listening(host.wire, {HANDLE: host.handle}, toolsListChanged=True) as mine,
            listening(host.wire, toolsListChanged=True) as theirs,
        ):
            for stream in (mine, theirs):
                assert (await stream.message())["method"] == "notifications/subscriptions/acknowledged"
            await host.update({"security": "low"})
            assert "last" not in (await mine.message())["params"]
            surface_of(service.app).publish(LAST)
            assert (await theirs.message())["params"]["last"] is True


# Replicas


@covers("CB-REPLICAS")
async def test_every_replica_knows_what_a_session_configured_and_tells_its_streams(
    postgres_database_url, revision
):
    async with replica(postgres_database_url) as one, replica(postgres_database_url) as two:
        tenant = f"t-{uuid4().hex[:12]}"
        services = one.app.state.services
        await services.tenants.create(HOST, tenant)
        operator = Caller(tenant, "00000000", frozenset({Role.OPERATOR}))
        await services.concerns.put(operator, ConcernDefinition.model_validate(SECURITY))
        key = str((await services.access.create_key(HOST, [Role.INVOKER], tenant=tenant)).key)
        async with client(one.url, revision, key) as wire:
            host = Host(wire)
            if not wire.modern:
                await host.initialize(initialize={"security": "low"})
                wire.url = two.url
                assert (await host.update({})).result["concerns"] == {"security": "low"}
                async with getting(wire) as stream:
                    assert await stream.line() == ": open"
                    wire.url = one.url
                    await host.update({"security": "high"})
                    assert (await stream.message())["method"].endswith("list_changed")
            await host.update({"security": "high"})
            wire.url = two.url
            assert (await host.update({})).result["concerns"] == {"security": "high"}
