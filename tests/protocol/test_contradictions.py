"""An answer that turns what the context says, or lacks its support, is told at every door; what restates it is not."""

from typing import Any

import httpx2

from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client

KNOWN = "Falkner bought Orwin in 2011. The ferry to the island does not run in winter."
TURNED = "Orwin bought Falkner in 2011. The ferry to the island runs in winter."
RESTATED = "In 2011, Orwin was bought by Falkner. In winter the ferry does not run to the island."


OTHER_UNIT = "The tank behind the school holds 40 litres. Most members of Tarn Foods voted for it in May."
CHANGED = "The tank behind the school holds 40 gallons. Most members of Orrin Foods voted for it in May."
ARTICLE = (
    "The council of Halden met on Tuesday because the harbour was too small for the new ferries. "
    "Its members agreed to widen the northern quay and to move the fish market to the old mill. "
    "Work begins in spring and will take two years, the engineer Ruth Adler told them. "
    "Fishermen had asked for a second crane, which the council will discuss in autumn. "
    "The mayor said that no taxes would be raised for it. "
    "Last year 300 ships called at the port, twice as many as ten years before. "
    "The quay was built by monks in the twelfth century and has been repaired many times since then."
)
LONG = (
    "The harbour was too small for the new ferries. The council of Halden agreed to widen the northern quay. "
    "Work begins in spring and will take two years. Last year 300 ships called at the port."
)
INVENTED = "Halden's parliament rejected a plan by Danish investors to drain the lagoon."


async def invoked(door: str, url: str, known: str, answer: str, checks: list[str]) -> dict[str, Any]:
    context = [{"role": "user", "content": known}, {"role": "assistant", "content": answer}]
    arguments = {"checks": checks, "action": "report"}
    name = "hallucination_detection"
    metadata: dict[str, Any]
    if door != "rest":
        async with client(url, door, str(KEY)) as wire:
            metadata = (await wire.invoke(*context, name=name, arguments=arguments)).result["metadata"]
        return metadata
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60) as http:
        path = f"{url.removesuffix('/mcp')}/api/v1/middleware/{name}/invoke"
        response = await http.post(path, json={"arguments": arguments, "context": context})
        response.raise_for_status()
        metadata = response.json()["metadata"]
    return metadata


async def found(door: str, url: str, answer: str, known: str = KNOWN) -> list[tuple[int, int]]:
    metadata = await invoked(door, url, known, answer, ["contradictions"])
    findings = metadata["findings"]
    assert {finding["kind"] for finding in findings} <= {"contradiction"}
    assert metadata["supported"] == (not findings)
    return [(finding["start"], finding["end"]) for finding in findings]


async def test_a_contradiction_is_found_at_every_door(tmp_path):
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        for door in (HANDSHAKE, MODERN, "rest"):
            assert await found(door, url, TURNED) == [(0, 29), (30, len(TURNED))]
            assert await found(door, url, RESTATED) == []
            assert len(await found(door, url, CHANGED, OTHER_UNIT)) == 2
            assert await found(door, url, OTHER_UNIT, OTHER_UNIT) == []


async def test_a_long_true_summary_scores_below_a_short_invented_one_at_every_door(tmp_path):
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        for door in (HANDSHAKE, MODERN, "rest"):
            true = await invoked(door, url, ARTICLE, LONG, ["sentences"])
            false = await invoked(door, url, ARTICLE, INVENTED, ["sentences"])
            assert true["supported"] and true["score"] < 0.2
            assert not false["supported"] and false["score"] > 0.8
