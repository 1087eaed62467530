"""An answer that turns what the context says is found at every door; one that restates it is not."""

from typing import Any

import httpx2

from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client

KNOWN = "Falkner bought Orwin in 2011. The ferry to the island does not run in winter."
TURNED = "Orwin bought Falkner in 2011. The ferry to the island runs in winter."
RESTATED = "In 2011, Orwin was bought by Falkner. In winter the ferry does not run to the island."


async def found(door: str, url: str, answer: str) -> list[tuple[int, int]]:
    context = [{"role": "user", "content": KNOWN}, {"role": "assistant", "content": answer}]
    arguments = {"checks": ["contradictions"], "action": "report"}
    name = "hallucination_detection"
    result: dict[str, Any]
    if door != "rest":
        async with client(url, door, str(KEY)) as wire:
            result = (await wire.invoke(*context, name=name, arguments=arguments)).result
    else:
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60) as http:
            path = f"{url.removesuffix('/mcp')}/api/v1/middleware/{name}/invoke"
            response = await http.post(path, json={"arguments": arguments, "context": context})
            response.raise_for_status()
            result = response.json()
    findings = result["metadata"]["findings"]
    assert {finding["kind"] for finding in findings} <= {"contradiction"}
    assert result["metadata"]["supported"] == (not findings)
    return [(finding["start"], finding["end"]) for finding in findings]


async def test_a_contradiction_is_found_at_every_door(tmp_path):
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        for door in (HANDSHAKE, MODERN, "rest"):
            assert await found(door, url, TURNED) == [(0, 29), (30, len(TURNED))]
            assert await found(door, url, RESTATED) == []
