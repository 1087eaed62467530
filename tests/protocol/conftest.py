"""Fixtures of the protocol tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

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


@pytest.fixture
async def replicas(own_database_url: str, tmp_path: Path) -> AsyncIterator[Replicas]:
    script = ScriptedServer()
    with serving_http(script) as upstream:
        one = aggregated(tmp_path, {"alpha": {"url": upstream}}, database_url=own_database_url)
        two = aggregated(tmp_path, {"alpha": {"url": upstream}}, database_url=own_database_url)
        async with one as (url, app):
            if own_database_url.startswith("sqlite"):
                yield Replicas(url, url, [app], script)
                return
            async with two as (other, second):
                yield Replicas(url, other, [app, second], script)
