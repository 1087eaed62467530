"""Fixtures of the protocol tests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.store.migrate import upgrade
from tests.conftest import ENGINES, fresh_postgres
from tests.protocol.aggregated_service import aggregated
from tests.protocol.mcp_harness import build
from tests.protocol.mcp_wire import REVISIONS, connected
from tests.protocol.replicas import Replicas
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer


@pytest.fixture(params=REVISIONS)
def revision(request):
    return request.param


@pytest.fixture
async def wire(revision):
    """Yield a client of the surface over stand-in services, on each revision."""
    async with connected(build(), revision) as found:
        yield found


@pytest.fixture(params=ENGINES)
def own_database(request: Any, tmp_path: Path) -> Iterator[str]:
    """Return the address of a migrated database of this test alone, on each engine in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/own.db"
        return
    with fresh_postgres(request.getfixturevalue("postgres_url")) as url:
        upgrade(url)
        yield url


@pytest.fixture
async def replicas(own_database: str, tmp_path: Path) -> AsyncIterator[Replicas]:
    script = ScriptedServer()
    with serving_http(script) as upstream:
        one = aggregated(tmp_path, {"alpha": {"url": upstream}}, database_url=own_database)
        two = aggregated(tmp_path, {"alpha": {"url": upstream}}, database_url=own_database)
        async with one as (url, app):
            if own_database.startswith("sqlite"):
                yield Replicas(url, url, [app], script)
                return
            async with two as (other, second):
                yield Replicas(url, other, [app, second], script)
