"""The official conformance suite through the aggregator, in front of the Python SDK's example server.

The example servers of the TypeScript SDK and of the suite itself follow in `make outside`.
"""

import pytest

from tests.protocol.aggregated_service import aggregated
from tests.protocol.conformance_expected import PYTHON, expected
from tests.protocol.conformance_suite import findings
from tests.protocol.foreign_servers import foreign
from tests.protocol.mcp_wire import HANDSHAKE, MODERN

LEAST = {HANDSHAKE: 80, MODERN: 150}
"""Checks that must have succeeded, so that an empty run is no success."""


@pytest.mark.parametrize("requirements", [HANDSHAKE, MODERN])
async def test_the_suite_finds_nothing_unexpected_through_the_aggregator(requirements, tmp_path, capsys):
    with foreign(PYTHON, tmp_path) as upstream:
        servers = {"example": {"url": upstream, "namespace": False, "roots": True}}
        async with aggregated(tmp_path, servers, required=False) as (url, _):
            found = await findings(url, requirements, tmp_path / "results", seconds=50)

    with capsys.disabled():
        print(f"\nconformance through the aggregator {requirements}: {dict(sorted(found.counts.items()))}")
    assert found.faults.keys() == expected(PYTHON, requirements).keys(), found.faults
    assert found.counts["SUCCESS"] >= LEAST[requirements]
