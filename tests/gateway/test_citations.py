"""Citations of a document that the model saw with handles point into the document that the caller sent."""

from typing import Any

import pytest
from aiohttp import web

from tests.gateway.provider import events, named
from tests.gateway.test_chat import PLANTED, assert_nothing_arrived

FIRST = f"The patient {PLANTED[0]} moved. Write to {PLANTED[1]} before noon. Nothing else happened."
SECOND = f"An account, {PLANTED[2]}, belongs to {PLANTED[0]}. It is closed."
QUOTED = ((0, "Write to ", " before noon."), (0, "Nothing else", "happened."), (1, "It is", "closed."))
"""Document, beginning and end of each sentence that the model quotes."""


def document(text: str) -> dict[str, Any]:
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, "title": "Notes", "citations": {"enabled": True}}


def quotes(documents: list[str]) -> list[dict[str, Any]]:
    """Return citations as a model makes them: places in the documents that it sees."""
    found = []
    for number, begin, end in QUOTED:
        text = documents[number]
        start = text.index(begin)
        stop = text.index(end, start) + len(end)
        place = {"start_char_index": start, "end_char_index": stop, "document_index": number}
        title = {"document_title": "Notes", "cited_text": text[start:stop]}
        found.append({"type": "char_location", **place, **title, "file_id": None})
    return found


@pytest.fixture
def cites(gateway: Any) -> Any:
    async def answered(request: Any, value: Any) -> web.StreamResponse:
        content = value["messages"][0]["content"]
        seen = [block["source"]["data"] for block in content if block["type"] == "document"]
        text = "It says so."
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x"}
        head |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        if not value.get("stream"):
            block = {"type": "text", "text": text, "citations": quotes(seen)}
            return web.json_response({**head, "content": [block], "stop_reason": "end_turn"})
        lines = [
            named("message_start", message={**head, "content": [], "stop_reason": None}),
            named(
                "content_block_start", index=0, content_block={"type": "text", "text": "", "citations": []}
            ),
            named("content_block_delta", index=0, delta={"type": "text_delta", "text": text}),
            *(
                named("content_block_delta", index=0, delta={"type": "citations_delta", "citation": quote})
                for quote in quotes(seen)
            ),
            named("content_block_stop", index=0),
            named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 1}),
            named("message_stop"),
        ]
        return await events(gateway.provider, request, lines)

    gateway.provider.answer = answered
    return gateway


def asked(client: Any, *, stream: bool) -> list[Any]:
    content = [document(FIRST), {"type": "text", "text": "What do they say?"}, document(SECOND)]
    body: Any = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    if not stream:
        return list(client.messages.create(**body).content[0].citations)
    with client.messages.stream(**body) as arriving:
        return list(arriving.get_final_message().content[0].citations)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("restores", [True, False])
def test_citations_point_into_the_callers_documents(cites, conversation, stream, restores):
    key = None if restores else cites.new_key("invoker")
    citations = asked(cites.anthropic(key, default_headers=conversation), stream=stream)
    assert_nothing_arrived(cites)
    assert len(citations) == len(QUOTED)
    for citation, (number, begin, end) in zip(citations, QUOTED, strict=True):
        came = (FIRST, SECOND)[number]
        quoted = came[citation.start_char_index : citation.end_char_index]
        assert quoted.startswith(begin) and quoted.endswith(end)
        if restores:
            assert citation.cited_text == quoted
    seen = cites.provider.last.json["messages"][0]["content"][0]["source"]["data"]
    # Places of the model's text would be wrong.
    assert FIRST.index("Write to ") != seen.index("Write to ")
