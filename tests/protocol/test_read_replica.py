"""What a service with SLUICE_DATABASE__READ_URL reads where: the record and documents, and nothing that decides.

The replica is a database that poses as one and holds nothing, so an answer shows where it was read.
"""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from app.main import create_app
from tests.conftest import Copies, connect
from tests.integration.posing import Posing
from tests.protocol.mcp_service import KEY, listening, settings_of, unchanged_logging
from tests.protocol.mcp_wire import REVISIONS, client

QUESTION = "What is the budget of the harbour office?"
STORED = ("collection", "collection_part", "collection_document", "document_chunk", "document_search")
EVENTS = "/api/v1/audit/events"


@dataclass
class Reading:
    """A service with its two databases."""

    url: str
    http: httpx2.AsyncClient
    primary: str
    replica: Posing

    async def invoke(self, name: str, *context: str, **arguments: Any) -> list[Any]:
        body = {"context": list(context), "arguments": arguments}
        answer = await self.http.post(f"/api/v1/middleware/{name}/invoke", json=body)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["content"])

    async def events(self) -> list[Any]:
        return list((await self.http.get(EVENTS)).json()["items"])

    async def replicate(self, *tables: str) -> None:
        """Bring rows of the primary to the replica, as the stream of the log would."""
        source, target = await connect(self.primary), await connect(self.replica.url)
        try:
            await target.execute("SET session_replication_role = replica; SET search_path = public")
            for table in tables:
                held = io.BytesIO()
                await source.copy_from_table(table, output=held, format="binary")
                held.seek(0)
                await target.copy_to_table(table, source=held, format="binary")
        finally:
            await source.close()
            await target.close()


@pytest.fixture
def addresses(migrated_postgres: Copies) -> Iterator[tuple[str, str]]:
    with migrated_postgres() as primary, migrated_postgres() as copy:
        yield primary, copy


@pytest.fixture
async def reading(addresses: tuple[str, str]) -> AsyncIterator[Reading]:
    primary, copy = addresses
    replica = await Posing.on(copy)
    settings = settings_of(primary)
    database = settings.database.model_copy(update={"read_url": SecretStr(copy)})
    with unchanged_logging():
        app = create_app(settings.model_copy(update={"database": database}))
        async with listening(app) as url:
            headers = {"authorization": f"Bearer {KEY}"}
            base = url.removesuffix("/mcp")
            async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=60) as http:
                yield Reading(base, http, primary, replica)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask until it holds: a busy machine may keep the replica from being looked at for a while."""
    async with asyncio.timeout(30):
        while not await holds():
            await asyncio.sleep(0.02)


async def test_the_record_is_read_from_the_replica_and_what_decides_from_the_primary(
    reading: Reading,
) -> None:
    async def shows_nothing() -> bool:
        return not await reading.events()

    await until(shows_nothing)

    async def exports_nothing() -> bool:
        return not (await reading.http.get("/api/v1/audit/export", params={"format": "jsonl"})).text

    await until(exports_nothing)
    assert await reading.invoke("pii_redaction", "jane@example.com", scope="talk") == ["[EMAIL_1]"]
    assert await reading.invoke("pii_restoration", "[EMAIL_1]", scope="talk") == ["jane@example.com"]
    assert (await reading.http.put("/api/v1/collections/office", json={})).is_success
    policy = {"allowed_middlewares": ["pii_restoration"]}
    assert (await reading.http.put("/api/v1/policies?expected_version=0", json=policy)).is_success
    for path, decided in {
        "/api/v1/keys": str(KEY)[4:12],
        "/api/v1/tenants": "default",
        "/api/v1/collections": "office",
        "/api/v1/policies": "pii_restoration",
    }.items():
        assert decided in (await reading.http.get(path)).text, path
    refused = await reading.http.post("/api/v1/middleware/timestamp_injector/invoke", json={"context": ["x"]})
    assert refused.status_code == 403
    erased = await reading.http.post("/api/v1/vault/erasures", json={"value": "jane@example.com"})
    assert erased.status_code == 201
    assert await reading.invoke("pii_restoration", "[EMAIL_1]", scope="talk") == ["[EMAIL_1]"]

    # Where it is a replica no more, the primary answers, which has it all.
    await reading.replica.be("recovers = false")
    assert {"vault.erase", "policy.put"} & {event["action"] for event in await reading.events()}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_document_is_searched_in_the_replica_and_its_access_list_is_the_primarys(
    reading: Reading, revision: str
) -> None:
    assert (await reading.http.put("/api/v1/collections/office", json={})).is_success
    text = "The budget of the harbour office is 4,711 crowns."
    document = {"external_id": "a", "title": "Harbour office", "text": text}
    made = await reading.http.post("/api/v1/collections/office/documents", json=document)
    assert made.status_code == 201, made.text

    async with client(f"{reading.url}/mcp", revision, str(KEY)) as wire:

        async def answer() -> str:
            return json.dumps((await wire.invoke(QUESTION, name="document_retrieval")).result)

        async def is_the_replicas() -> bool:
            return "8,642" in await answer()

        await reading.replicate(*STORED)
        await reading.replica.run("UPDATE document_chunk SET text = replace(text, '4,711', '8,642')")
        await until(is_the_replicas)
        closed = {"access": ["key:00000000"]}
        assert (await reading.http.put("/api/v1/collections/office", json=closed)).is_success
        for _ in range(3):
            assert "harbour office is" not in await answer(), "the replica still has it"
