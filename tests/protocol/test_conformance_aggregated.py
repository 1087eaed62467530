"""The official conformance suite through the aggregator: its fixtures stand behind the service, and nothing differs."""

import json
from collections import Counter

import pytest

from tests.protocol.aggregated_service import aggregated
from tests.protocol.conformance_primitives import ConformancePrimitives
from tests.protocol.mcp_node import node
from tests.protocol.mcp_service import service, surface_of
from tests.protocol.mcp_wire import HANDSHAKE, MODERN
from tests.protocol.test_conformance import LEAST, SUITE


@pytest.mark.parametrize("requirements", [HANDSHAKE, MODERN])
async def test_the_official_suite_finds_no_fault_through_the_aggregator(requirements, tmp_path, capsys):
    primitives = ConformancePrimitives()
    (tmp_path / "front").mkdir()
    async with service(f"sqlite:///{tmp_path}/fixtures.db", required=False, primitives=primitives) as behind:
        primitives.publish = surface_of(behind[1]).publish
        servers = {"fixtures": {"url": behind[0], "namespace": False, "roots": True}}
        async with aggregated(tmp_path / "front", servers, required=False) as (url, _):
            options = ["--url", url, "--requirements", requirements, "-o", tmp_path / "results"]
            status, printed = await node(SUITE, "server", *options, seconds=300)

    tally: Counter[str] = Counter()
    faults = []
    for checks in sorted(tmp_path.glob("results/server-*/checks.json")):
        tasks = checks.parent.name.startswith("server-tasks-")
        for check in json.loads(checks.read_text()):
            tally[f"tasks {check['status']}" if tasks else check["status"]] += 1
            if check["status"] == "FAILURE" and not tasks:
                faults.append((checks.parent.name, check["id"], check.get("errorMessage")))
    with capsys.disabled():
        print(f"\nconformance through the aggregator {requirements}: {dict(sorted(tally.items()))}")
    assert not faults
    assert status == 0, printed[-6000:]
    assert tally["SUCCESS"] >= LEAST[requirements]
