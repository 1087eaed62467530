"""Text in a language that the name tagger was not trained for keeps its words, at every door; strict hides more."""

from typing import Any

import httpx2

from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client

NAMELESS = "Tilaamani kirjat eivät ole vielä tulleet, mutta kuljetusliike sanoi niiden saapuvan huomenna."
NAMED = "Tilaamani kirjat eivät ole vielä tulleet, mutta Daniel Schneider sanoi niiden saapuvan."
DOUBTED = "Kirjeen sai eilen Varsten, mutta vastausta ei ole vielä tullut."


async def redacted(door: str, url: str, text: str, **arguments: str) -> tuple[str, str]:
    """Return the text that comes back, and the warnings."""
    name, context = "pii_redaction", [{"role": "user", "content": text}]
    arguments |= {"scope": f"doubts-{door[:4]}"}
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
    return result["content"][0]["content"], " ".join(result["metadata"]["warnings"])


async def test_words_of_other_languages_are_no_people_at_every_door(tmp_path):
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        for door in (HANDSHAKE, MODERN, "rest"):
            kept, warnings = await redacted(door, url, NAMELESS)
            assert "[PERSON_" not in kept and "kuljetusliike sanoi niiden saapuvan huomenna." in kept
            assert "'fi'" in warnings
            hidden, _ = await redacted(door, url, NAMED)
            assert "[PERSON_1] sanoi niiden saapuvan." in hidden and "[PERSON_2]" not in hidden
            doubted, _ = await redacted(door, url, DOUBTED)
            strict, _ = await redacted(door, url, DOUBTED, aggressiveness="strict")
            assert "Varsten" in doubted and "[PERSON_" in strict
