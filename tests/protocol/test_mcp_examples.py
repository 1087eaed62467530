"""The six examples of the proposal, through the whole service: content to the character, metadata by shape."""

import contextlib

import httpx2
import pytest

from app.main import create_app
from tests.fakes import NOON
from tests.protocol.mcp_service import KEY, listening, settings_of, unchanged_logging
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client

DOORS = ("rest", HANDSHAKE, MODERN)
EMAIL = "jane.smith@example.com"
"""The page of the proposal lost the address to a filter."""


@contextlib.asynccontextmanager
async def opened(database_url):
    """Serve the application with its own engines, the clock at the example's time, and two documents to find."""
    with unchanged_logging():
        app = create_app(settings_of(database_url, warm=True), now=lambda: NOON)
        async with listening(app) as url, httpx2.AsyncClient(timeout=60) as http:
            http.headers["authorization"] = f"Bearer {KEY}"
            await fill(http, url.removesuffix("/mcp"))
            yield url, http


async def fill(http, address):
    documents = {
        "internal_docs": {
            "external_id": "q4",
            "title": "Q4 Planning Notes",
            "date": "2025-10-01",
            "text": "- Focus on EMEA expansion\n- Budget: $2M allocated",
        },
        "email": {
            "external_id": "m1",
            "title": "Email from Sarah",
            "date": "Oct 3",
            "text": "Re: Q4 priorities - confirming team assignments",
        },
    }
    for collection, document in documents.items():
        (await http.put(f"{address}/api/v1/collections/{collection}", json={})).raise_for_status()
        added = await http.post(f"{address}/api/v1/collections/{collection}/documents", json=document)
        added.raise_for_status()


async def invoked(door, url, http, name, context, **arguments):
    """Return the answer to one call at one of the doors."""
    if door == "rest":
        path = url.replace("/mcp", f"/api/v1/middleware/{name}/invoke")
        answer = await http.post(path, json={"arguments": arguments, "context": context})
        answer.raise_for_status()
        return answer.json()
    async with client(url, door, str(KEY)) as wire:
        return (await wire.call("middleware/invoke", name=name, context=context, arguments=arguments)).result


@pytest.mark.parametrize("door", DOORS)
async def test_the_examples_of_the_proposal_are_answered(door, tmp_path):
    async with opened(f"sqlite:///{tmp_path}/sluice.db") as (url, http):
        for example in (redaction, restoration, moderation, retrieval, timestamp, tool_filter):

            async def ask(name, text, **arguments):
                context = [{"type": "text", "text": text}]
                answer = await invoked(door, url, http, name, context, **arguments)
                (item,) = answer["content"]
                assert item["type"] == "text"
                return item["text"], answer.get("metadata", {})

            await example(ask)


async def redaction(ask):
    said = f"Please review this contract for Jane Smith ({EMAIL}, SSN: 987-65-4321)"

    text, metadata = await ask("pii_redaction", said, returnMapping=True)

    assert text == "Please review this contract for [PERSON_1] ([EMAIL_1], SSN: [SSN_1])"
    assert metadata["redactions"] == {"PERSON_1": "Jane Smith", "EMAIL_1": EMAIL, "SSN_1": "987-65-4321"}


async def restoration(ask):
    said = "I've reviewed the contract for [PERSON_1]. Please send it to [EMAIL_1]."

    text, _ = await ask("pii_restoration", said, redactions={"PERSON_1": "Jane Smith", "EMAIL_1": EMAIL})

    assert text == f"I've reviewed the contract for Jane Smith. Please send it to {EMAIL}."


async def moderation(ask):
    said = "How can I hurt someone's feelings?"

    text, metadata = await ask("content_moderation", said, policies=["violence", "harassment"])

    assert text == f"[MODERATION WARNING: This query may seek harmful advice]\n\n{said}"
    assert metadata["flags"] == ["potential_harm_seeking"]
    assert metadata["severity"] == "medium"
    assert metadata["allow"] is True


async def retrieval(ask):
    said = "What was discussed in the Q4 planning meeting?"

    text, metadata = await ask("document_retrieval", said, maxResults=3, sources=["internal_docs", "email"])

    assert text == (
        "[Retrieved Documents]\n\n# Q4 Planning Notes (Oct 1, 2025)\n- Focus on EMEA expansion\n"
        "- Budget: $2M allocated\n\n# Email from Sarah (Oct 3)\nRe: Q4 priorities - confirming team assignments\n\n"
        f"---\n\n{said}"
    )
    assert [source["title"] for source in metadata["sources"]] == ["Q4 Planning Notes", "Email from Sarah"]
    first, second = (source["relevance"] for source in metadata["sources"])
    assert 1 >= first >= second > 0


async def timestamp(ask):
    text, _ = await ask("timestamp_injector", "What's on my calendar today?")

    assert text == "[Current time: Saturday, October 4, 2025, 3:42 PM UTC]\n\nWhat's on my calendar today?"


async def tool_filter(ask):
    said = "Find my meeting notes from last week about the marketing campaign"
    tools = ["search_email", "search_documents", "search_calendar", "calculate", "send_email"]

    text, metadata = await ask("tool_filter", said, availableTools=tools)

    assert text == said
    scores = {one["name"]: one["score"] for one in metadata["relevantTools"]}
    assert set(metadata["suggestedToolSet"]) <= set(tools)
    assert metadata["suggestedToolSet"]
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert all(0 <= score <= 1 for score in scores.values())
