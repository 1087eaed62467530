"""The client in a chain of LangChain and in front of an ASGI application, against a running service."""

import json
from collections.abc import AsyncIterator, Iterator
from threading import Event
from typing import Any

import httpx2
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import ChatPromptTemplate

from sluice_client import AsyncSluice, Sluice
from sluice_client.asgi import SluiceMiddleware
from sluice_client.langchain import RedactedModel
from tests.e2e.running import Service

CALL = {"name": "mail", "args": {"to": "[PERSON_1]"}, "id": "t1"}


class Model(GenericFakeChatModel):
    """A fake of LangChain that remembers what it was asked."""

    asked: list[Any]

    def _generate(self, messages: Any, *rest: Any, **kwargs: Any) -> Any:
        self.asked.append([message.text for message in messages])
        return super()._generate(messages, *rest, **kwargs)


@pytest.fixture
def clients(service: Service) -> Iterator[dict[str, Any]]:
    with Sluice(service.url, service.key) as sluice:
        yield {"sluice": sluice}


def model(*answers: Any) -> Model:
    return Model(messages=iter(answers), asked=[])


def test_a_chain_gets_originals_and_its_model_handles(clients: dict[str, Any], scope: str) -> None:
    fake = model(AIMessage("Hello [PERSON_1]!", tool_calls=[CALL]), AIMessage("", tool_calls=[CALL]))
    prompt = ChatPromptTemplate.from_messages([("system", "Be kind."), ("human", "{question}")])
    chain = prompt | RedactedModel(fake, scope=scope, tools=["mail"], **clients)
    answer = chain.invoke({"question": "I am John Doe."})
    assert answer.content == "Hello John Doe!"
    assert answer.tool_calls[0]["args"] == {"to": "John Doe"}
    assert fake.asked == [["Be kind.", "I am [PERSON_1]."]]
    other = RedactedModel(fake, scope=scope, **clients)
    assert other.invoke("I am John Doe.").tool_calls[0]["args"] == {"to": "[PERSON_1]"}


def test_a_chain_streams_originals_and_one_call_may_name_its_scope(
    clients: dict[str, Any], scope: str
) -> None:
    fake = model(AIMessage("Hello [PERSON_1] and [PERSON_2] !"), AIMessage("Hello [PERSON_1] !"))
    runnable = RedactedModel(fake, **clients)
    config = {"configurable": {"sluice_scope": scope}}
    pieces = [chunk.content for chunk in runnable.stream("John Doe met Jane Smith.", config)]
    assert "".join(pieces) == "Hello John Doe and Jane Smith !"
    assert len(pieces) > 2
    assert clients["sluice"].restore("[PERSON_2]", scope=scope).text == "Jane Smith"
    assert fake.asked == [["[PERSON_1] met [PERSON_2]."]]


class SlowModel(Model):
    """Says its last words only after a reader got some of the first."""

    heard: Event

    def _stream(self, messages: Any, *rest: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk("Hello [PERSON_1] ! "))
        assert self.heard.wait(30)
        yield ChatGenerationChunk(message=AIMessageChunk("Goodbye."))


def test_a_chain_streams_before_its_model_ends(clients: dict[str, Any], scope: str) -> None:
    fake = SlowModel(messages=iter(()), asked=[], heard=Event())
    pieces = []
    for chunk in RedactedModel(fake, scope=scope, **clients).stream("I am John Doe."):
        pieces.append(chunk.content)
        if "John Doe" in "".join(pieces):
            fake.heard.set()
    assert "".join(pieces) == "Hello John Doe ! Goodbye."


async def test_a_chain_waits_without_blocking(service: Service, scope: str) -> None:
    fake = model(*[AIMessage("Hello [PERSON_1] !")] * 2)
    async with AsyncSluice(service.url, service.key) as sluice:
        runnable = RedactedModel(fake, scope=scope, async_sluice=sluice)
        assert (await runnable.ainvoke([HumanMessage("I am John Doe.")])).content == "Hello John Doe !"
        pieces = [chunk.content async for chunk in runnable.astream("I am John Doe.")]
    assert "".join(pieces) == "Hello John Doe !"
    assert fake.asked == [["I am [PERSON_1]."]] * 2


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Echo a JSON body, as JSON or in pieces of plain text; other paths answer with what they were sent."""
    body = (await receive())["body"]
    kind = dict(scope["headers"]).get(b"x-kind", b"application/json")
    headers = [(b"content-type", kind), (b"x-length", dict(scope["headers"])[b"content-length"])]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    text = json.dumps({"seen": body.decode(), "answer": "Hello [PERSON_1]!"}).encode()
    if kind == b"text/plain":
        text = b"Seen " + body + b" Hello [PERSON_1] !"
    for start in range(0, len(text), 7):
        await send({"type": "http.response.body", "body": text[start : start + 7], "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
async def site(service: Service, scope: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with AsyncSluice(service.url, service.key) as sluice:
        app = SluiceMiddleware(application, sluice=sluice, paths={"/chat"}, scope_of=lambda _: scope)
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://site") as client:
            yield client


async def test_an_application_sees_handles_and_its_callers_originals(site: httpx2.AsyncClient) -> None:
    body = {"text": "I am John Doe.", "n": 7}
    answer = await site.post("/chat", json=body)
    assert answer.json()["answer"] == "Hello John Doe!"
    plain = await site.post("/chat", json=body, headers={"x-kind": "text/plain"})
    assert plain.text.endswith("Hello John Doe !")
    untouched = await site.post("/other", json=body)
    assert untouched.json()["answer"] == "Hello [PERSON_1]!"
    kept = await site.post("/chat", json=body, headers={"x-kind": "application/octet-stream"})
    assert json.loads(json.loads(kept.content)["seen"]) == {"text": "I am [PERSON_1].", "n": 7}


async def test_what_cannot_be_redacted_never_reaches_the_application(
    site: httpx2.AsyncClient, scope: str
) -> None:
    refused = await site.post("/chat", content=b"I am John Doe.", headers={"content-type": "text/plain"})
    assert refused.status_code == 415
    assert (
        await site.post("/chat", content=b"{", headers={"content-type": "application/json"})
    ).status_code == 400
    async with AsyncSluice("http://127.0.0.1:1", "slc_x", retries=0) as nobody:
        app = SluiceMiddleware(application, sluice=nobody, paths={"/chat"}, scope_of=lambda _: scope)
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://site") as client:
            assert (await client.post("/chat", json={"text": "I am John Doe."})).status_code == 502
