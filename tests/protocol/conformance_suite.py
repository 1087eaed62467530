"""Run the official conformance suite against an address, and return what it found."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.protocol.mcp_node import node

SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
TASKS = "tasks-"
"""Scenarios of an extension that neither this service nor any of the servers behind it offers."""

_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT.*")
_FAULTS = frozenset({"FAILURE", "WARNING"})


@dataclass(frozen=True)
class Findings:
    """How many checks ended how, and (scenario, check) with the message of what did not succeed."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[tuple[str, str], str] = field(default_factory=dict)


async def findings(url: str, requirements: str, folder: Path, *, seconds: float = 240) -> Findings:
    """Check a server against the requirements of a revision; tasks are left out."""
    options = ["--url", url, "--requirements", requirements, "-o", folder]
    _, printed = await node(SUITE, "server", *options, seconds=seconds)
    found = Findings()
    for file in sorted(folder.glob("server-*/checks.json")):
        name = _FOLDER.fullmatch(file.parent.name)
        assert name is not None, file.parent.name
        if name[1].startswith(TASKS):
            continue
        for check in json.loads(file.read_text()):
            found.counts[check["status"]] += 1
            if check["status"] in _FAULTS:
                found.faults[name[1], check["id"]] = f"{check['status']}: {check.get('errorMessage')}"
    assert found.counts, printed[-6000:]
    return found
