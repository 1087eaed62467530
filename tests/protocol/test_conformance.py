"""The official conformance suite, both requirement sets, against a profile without authentication."""

import pytest

from tests.protocol.conformance_primitives import ConformancePrimitives
from tests.protocol.conformance_suite import findings
from tests.protocol.mcp_service import service, surface_of
from tests.protocol.mcp_wire import HANDSHAKE, MODERN

LEAST = {HANDSHAKE: 80, MODERN: 150}
"""Checks that must have passed, so that an empty run is no success."""


@pytest.mark.parametrize("requirements", [HANDSHAKE, MODERN])
async def test_the_official_suite_finds_no_fault(requirements, tmp_path, capsys):
    primitives = ConformancePrimitives()
    database = f"sqlite:///{tmp_path}/sluice.db"
    async with service(database, required=False, primitives=primitives) as (url, app):
        primitives.publish = surface_of(app).publish
        found = await findings(url, requirements, tmp_path / "results")

    with capsys.disabled():
        print(f"\nconformance {requirements}: {dict(sorted(found.counts.items()))}")
    assert not {name for name, message in found.faults.items() if message.startswith("FAILURE")}, found.faults
    assert found.counts["SUCCESS"] >= LEAST[requirements]
