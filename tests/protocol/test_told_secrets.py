"""Secrets that people tell in words, and give to commands, leave no door in clear, and come back whole."""

import random
from typing import Any

import httpx2

from app.engines.secrets.seeds import seed_words
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client

DRAW = random.Random(23)
SIGNS = "".join(DRAW.choices("ABCDEFGHJKabcdefghjk23456789", k=30))
PASSWORD = "Amsel" + "!Weg-318"
SEED = " ".join(DRAW.sample(seed_words(), 12))
SECRETS = {
    f"Das Passwort der Heizung lautet {PASSWORD}.": PASSWORD,
    f"Ma clé: sk_live_{SIGNS[:22]}": f"sk_live_{SIGNS[:22]}",
    f"token ghp_{SIGNS[:25]} fails": f"ghp_{SIGNS[:25]}",
    f"mysql -uroot -p{PASSWORD} crm": PASSWORD,
    f"sshpass -p {PASSWORD} ssh ops@10.0.0.7": PASSWORD,
    f"my recovery phrase is {SEED}": SEED,
}
HARMLESS = ["The password is required.", "mysql -uroot -p crm", "ssh ops@10.0.0.7"]


async def invoked(door: str, url: str, name: str, arguments: dict[str, Any], context: list[Any]) -> list[Any]:
    if door != "rest":
        async with client(url, door, str(KEY)) as wire:
            answered = await wire.invoke(*context, name=name, arguments=arguments)
            content: list[Any] = answered.result["content"]
            return content
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60) as http:
        path = f"{url.removesuffix('/mcp')}/api/v1/middleware/{name}/invoke"
        response = await http.post(path, json={"arguments": arguments, "context": context})
        response.raise_for_status()
        returned: list[Any] = response.json()["content"]
        return returned


async def test_a_secret_that_is_told_becomes_a_handle_at_every_door_and_comes_back(tmp_path):
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        context = [*SECRETS, *HARMLESS]
        for door in (HANDSHAKE, MODERN, "rest"):
            scope = {"scope": f"told-{door}"}
            hidden = await invoked(door, url, "secret_redaction", scope, context)
            assert [
                text for text, secret in zip(hidden, SECRETS.values(), strict=False) if secret in text
            ] == []
            assert hidden[len(SECRETS) :] == HARMLESS
            restored = await invoked(door, url, "pii_restoration", scope | {"positions": "all"}, hidden)
            assert restored == context
