"""The official conformance suite, both requirement sets, against a profile without authentication."""

import json
from collections import Counter

import pytest

from tests.protocol.conformance_primitives import ConformancePrimitives
from tests.protocol.mcp_node import node
from tests.protocol.mcp_service import service, surface_of
from tests.protocol.mcp_wire import HANDSHAKE, MODERN

SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
LEAST = {HANDSHAKE: 80, MODERN: 150}
"""Checks that must have passed, so that an empty run is no success."""


@pytest.mark.parametrize("requirements", [HANDSHAKE, MODERN])
async def test_the_official_suite_finds_no_fault(requirements, tmp_path, capsys):
    primitives = ConformancePrimitives()
    database = f"sqlite:///{tmp_path}/sluice.db"
    async with service(database, required=False, primitives=primitives) as (url, app):
        primitives.publish = surface_of(app).publish
        options = ["--url", url, "--requirements", requirements, "-o", tmp_path / "results"]
        status, printed = await node(SUITE, "server", *options, seconds=240)

    assert status == 0, printed[-6000:]
    tally: Counter[str] = Counter()
    faults = []
    for checks in sorted(tmp_path.glob("results/server-*/checks.json")):
        for check in json.loads(checks.read_text()):
            if checks.parent.name.startswith("server-tasks-"):
                tally[f"tasks {check['status']}"] += 1  # an extension that this service does not offer
                continue
            tally[check["status"]] += 1
            if check["status"] == "FAILURE":
                faults.append((checks.parent.name, check["id"], check.get("errorMessage")))
    with capsys.disabled():
        print(f"\nconformance {requirements}: {dict(sorted(tally.items()))}")
    assert not faults
    assert tally["SUCCESS"] >= LEAST[requirements]
