"""Fixtures of the protocol tests."""

import pytest

from tests.protocol.mcp_harness import build
from tests.protocol.mcp_wire import REVISIONS, connected


@pytest.fixture(params=REVISIONS)
def revision(request):
    return request.param


@pytest.fixture
async def wire(revision):
    """Yield a client of the surface over stand-in services, on each revision."""
    async with connected(build(), revision) as found:
        yield found
