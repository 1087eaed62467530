"""The conformance suite in front of every example server, once at the server itself and once through the service."""

import pytest

from tests.protocol.aggregated_service import aggregated
from tests.protocol.conformance_expected import CONFORMANCE, PYTHON, TYPESCRIPT, expected
from tests.protocol.conformance_suite import findings
from tests.protocol.foreign_servers import SERVERS, foreign
from tests.protocol.mcp_wire import HANDSHAKE, MODERN
from tests.protocol.test_conformance_aggregated import LEAST

pytestmark = pytest.mark.outside
NEEDS_FOLDER = pytest.mark.needs(SERVERS)


@pytest.mark.parametrize(
    "server",
    [PYTHON, pytest.param(TYPESCRIPT, marks=NEEDS_FOLDER), pytest.param(CONFORMANCE, marks=NEEDS_FOLDER)],
)
@pytest.mark.parametrize("requirements", [HANDSHAKE, MODERN])
async def test_what_holds_for_the_server_holds_through_the_service(server, requirements, tmp_path):
    with foreign(server, tmp_path) as upstream:
        direct = await findings(upstream, requirements, tmp_path / "direct")
        entry = {"url": upstream, "namespace": False, "roots": True}
        async with aggregated(tmp_path, {"example": entry}, required=False) as (url, _):
            through = await findings(url, requirements, tmp_path / "through")

    assert through.faults.keys() == expected(server, requirements).keys(), through.faults
    assert direct.faults.keys() >= expected(server, requirements, direct=True).keys()
    ours = expected(server, requirements, direct=False).keys()
    assert not ours & direct.faults.keys(), "the server itself fails these: say so in the table"
    if server != CONFORMANCE:
        assert through.counts["SUCCESS"] >= LEAST[requirements]
