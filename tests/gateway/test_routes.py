"""The paths beside the usual ones: legacy completions, conversations, stored responses, moderations, models."""

import json
import socket
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from aiohttp import web

from tests.gateway.provider import data, events
from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived


def text_of(item: Any) -> str:
    content = item["content"]
    return content if isinstance(content, str) else content[0]["text"]


class Stores:
    """A provider that keeps conversations and responses, as OpenAI's does."""

    def __init__(self) -> None:
        self.conversations: dict[str, Any] = {}
        self.items: dict[str, list[Any]] = {}
        self.responses: dict[str, Any] = {}

    async def answer(self, request: Any, value: Any) -> web.StreamResponse | None:
        room, *rest = request.path.removeprefix("/v1/").split("/")
        if room == "conversations":
            return web.json_response(self.conversation(request.method, rest, value))
        if room == "responses" and rest:
            return web.json_response(self.response(request.method, rest))
        if room == "responses":
            return web.json_response(self.created(value))
        return None

    def conversation(self, method: str, rest: list[str], value: Any) -> Any:
        if not rest:
            name = f"conv_{len(self.conversations)}"
            self.items[name] = [self.item(each) for each in value.get("items", [])]
            self.conversations[name] = {"id": name, "object": "conversation", "created_at": 1}
            self.conversations[name]["metadata"] = value.get("metadata", {})
            return self.conversations[name]
        name, *inner = rest
        if not inner and method == "POST":
            self.conversations[name]["metadata"] = value["metadata"]
        if not inner and method == "DELETE":
            del self.conversations[name]
            return {"id": name, "object": "conversation.deleted", "deleted": True}
        return self.stored(name, method, inner, value) if inner else self.conversations[name]

    def stored(self, name: str, method: str, inner: list[str], value: Any) -> Any:
        if inner == ["items"] and method == "POST":
            added = [self.item(each) for each in value["items"]]
            self.items[name] += added
            return self.listed(added)
        if inner == ["items"]:
            return self.listed(self.items[name])
        wanted = next(each for each in self.items[name] if each["id"] == inner[1])
        if method == "DELETE":
            self.items[name].remove(wanted)
            return self.conversations[name]
        return wanted

    def item(self, given: Any) -> Any:
        number = sum(map(len, self.items.values()))
        part = {"type": "input_text", "text": text_of(given)}
        head = {"id": f"msg_{number}", "type": "message", "status": "completed"}
        return {**head, "role": given["role"], "content": [part]}

    def listed(self, items: list[Any]) -> Any:
        ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {}
        return {"object": "list", "data": items, "has_more": False, **ends}

    def created(self, value: Any) -> Any:
        name = f"resp_of_store_{len(self.responses)}"
        asked = value["input"]
        if isinstance(asked, str):
            asked = [{"role": "user", "content": asked}]
        text = f"You said: {text_of(asked[-1])}"
        part = {"type": "output_text", "text": text, "annotations": []}
        message = {"id": "msg_a", "type": "message", "role": "assistant", "status": "completed"}
        whole = {"id": name, "object": "response", "created_at": 1, "model": value["model"], "error": None}
        whole |= {"status": "completed", "output": [{**message, "content": [part]}], "tools": []}
        whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "metadata": {}}
        if value.get("conversation"):
            whole["conversation"] = {"id": value["conversation"]}
        self.responses[name] = (whole, [self.item(each) for each in asked])
        return whole

    def response(self, method: str, rest: list[str]) -> Any:
        name, *inner = rest
        whole, items = self.responses[name]
        if method == "DELETE":
            return {"id": name, "object": "response", "deleted": True}
        if inner == ["input_items"]:
            return self.listed(items)
        return {**whole, "status": "cancelled"} if inner == ["cancel"] else whole


@pytest.fixture
def stores(gateway: Any) -> Stores:
    made = Stores()
    gateway.provider.answer = made.answer
    return made


@pytest.fixture
def stranger(gateway: Any) -> openai.OpenAI:
    """Return a client that may restore, as its owner, and has none of the first caller's conversations."""
    return gateway.openai(gateway.host_key("invoker", "restorer"))


def test_a_conversation_is_made_read_changed_and_deleted_with_originals(gateway, stores, stranger):
    client = gateway.openai()
    made = client.conversations.create(
        items=[{"type": "message", "role": "user", "content": TEXT}], metadata={"topic": PLANTED[0]}
    )
    assert made.metadata == {"topic": PLANTED[0]}
    added = client.conversations.items.create(
        made.id, items=[{"type": "message", "role": "user", "content": f"Ask {PLANTED[1]}."}]
    )
    assert added.data[0].content[0].text == f"Ask {PLANTED[1]}."
    texts = [item.content[0].text for item in client.conversations.items.list(made.id)]
    assert texts == [TEXT, f"Ask {PLANTED[1]}."]
    first = client.conversations.items.retrieve("msg_0", conversation_id=made.id)
    assert first.content[0].text == TEXT
    assert (
        client.conversations.update(made.id, metadata={"topic": PLANTED[2]}).metadata["topic"] == PLANTED[2]
    )
    assert client.conversations.retrieve(made.id).metadata["topic"] == PLANTED[2]
    answer = client.responses.create(
        model="gpt-5-mini", input=f"And {PLANTED[2]}?", conversation=made.id, metadata={}
    )
    assert answer.output_text == f"You said: And {PLANTED[2]}?"
    client.conversations.items.delete("msg_0", conversation_id=made.id)

    arrived = len(gateway.provider.arrived)
    theirs = stranger.conversations
    for refused in (
        lambda: theirs.retrieve(made.id),
        lambda: theirs.items.list(made.id),
        lambda: theirs.items.retrieve("msg_1", conversation_id=made.id),
        lambda: theirs.update(made.id, metadata={"a": "b"}),
        lambda: theirs.items.create(made.id, items=[{"role": "user", "content": "x"}]),
        lambda: theirs.delete(made.id),
        lambda: stranger.responses.create(model="gpt-5-mini", input="x", conversation=made.id),
    ):
        with pytest.raises(openai.NotFoundError):
            refused()
    assert len(gateway.provider.arrived) == arrived

    assert client.conversations.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(made.id)
    assert_nothing_arrived(gateway)
    assert "[PERSON_" in json.dumps([*stores.items.values(), gateway.provider.arrived[0].json])


def test_a_stored_response_is_read_cancelled_and_deleted(gateway, stores, stranger):
    client = gateway.openai()
    made = client.responses.create(model="gpt-5-mini", input=TEXT, store=True)
    assert client.responses.retrieve(made.id).output_text == f"You said: {TEXT}"
    [item] = client.responses.input_items.list(made.id).data
    assert item.content[0].text == TEXT
    assert client.responses.cancel(made.id).output_text == f"You said: {TEXT}"
    arrived = len(gateway.provider.arrived)
    for refused in (stranger.responses.retrieve, stranger.responses.cancel, stranger.responses.delete):
        with pytest.raises(openai.NotFoundError):
            refused(made.id)
    assert len(gateway.provider.arrived) == arrived
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("stream", [False, True])
def test_legacy_completions_come_back_with_originals(gateway, conversation, stream):
    async def completes(request, value):
        text = f" Indeed: {value['prompt']}"
        head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": value["model"]}

        def choice(part, finish):
            return {
                **head,
                "choices": [{"index": 0, "text": part, "logprobs": None, "finish_reason": finish}],
            }

        if not value.get("stream"):
            return web.json_response(choice(text, "stop"))
        lines = [data(choice(part, None)) for part in gateway.provider.parts(text)]
        return await events(gateway.provider, request, [*lines, data(choice("", "stop")), "data: [DONE]\n\n"])

    gateway.provider.answer = completes
    client = gateway.openai(default_headers=conversation)
    answer = client.completions.create(
        model="gpt-5-mini", prompt=TEXT, suffix=f" Yours, {PLANTED[0]}", stop=[PLANTED[0]], stream=stream
    )
    parts = [chunk.choices[0].text for chunk in answer] if stream else [answer.choices[0].text]
    assert "".join(parts) == f" Indeed: {TEXT}"
    assert_nothing_arrived(gateway)
    sent = gateway.provider.last
    assert sent.path == "/v1/completions" and sent.json["stop"][0].startswith("[PERSON_")
    assert "messages" not in sent.json


def test_moderations_read_handles(gateway, conversation):
    async def judges(_request, value):
        count = len(value["input"]) if isinstance(value["input"], list) else 1
        result = {
            "flagged": False,
            "categories": {},
            "category_scores": {},
            "category_applied_input_types": {},
        }
        return web.json_response({"id": "modr-1", "model": "omni-1", "results": [result] * count})

    gateway.provider.answer = judges
    client = gateway.openai(default_headers=conversation)
    assert len(client.moderations.create(input=[TEXT, "Hello."]).results) == 2
    assert gateway.provider.last.path == "/v1/moderations"
    assert gateway.provider.last.json["input"][1] == "Hello."
    assert_nothing_arrived(gateway)


@pytest.fixture
def several(gateway: Any) -> Any:
    """Return the service with two more providers, which have other models at addresses of their own."""
    own = {"big": ["big-1", "big-2", "gpt-5-mini", "small-1"], "local": ["small-1", "big-1"]}

    async def lists(request, _value):
        name = request.path.split("/")[1]
        if name not in own:
            return None
        if request.path.endswith("/models"):
            entries = [{"id": each, "object": "model", "created": 2, "owned_by": name} for each in own[name]]
            return web.json_response({"object": "list", "data": entries})
        model = request.path.rpartition("/models/")[2]
        return web.json_response({"id": model, "object": "model", "created": 2, "owned_by": name})

    gateway.provider.answer = lists
    base = gateway.provider.url
    gateway.put_provider(
        "big", baseUrl=f"{base}/big/v1", models=["big-*"], aliases={"best": "big-2"}, order=600
    )
    gateway.put_provider("local", baseUrl=f"{base}/local/v1", models=["small-*", "big-1"], order=601)
    yield gateway
    for name in ("big", "local", "silent"):
        gateway.http.delete(f"/api/v1/providers/{name}")


def test_models_of_all_providers_are_one_list_of_what_would_be_served(several):
    listed = {model.id: model.owned_by for model in several.openai().models.list()}
    wanted = {"gpt-5-mini": "them", "fast": "them", "big-1": "big", "big-2": "big", "best": "big"}
    assert {name: owner for name, owner in listed.items() if name != "small-1"} == wanted
    assert listed["small-1"] == "local"
    # Each name of the list leads where the list says.
    several.openai().models.retrieve("big-1")
    assert several.provider.last.path == "/big/v1/models/big-1"


def test_an_alias_is_asked_for_by_the_models_own_name_and_shown_by_its_own(several):
    best = several.openai().models.retrieve("best")
    assert (best.id, best.owned_by) == ("best", "big")
    assert several.provider.last.path == "/big/v1/models/big-2"
    assert several.openai().models.retrieve("small-1").id == "small-1"
    arrived = len(several.provider.arrived)
    with pytest.raises(openai.NotFoundError) as refused:
        several.openai().models.retrieve("o9-internal")
    assert refused.value.code == "sluice_not_found"
    assert len(several.provider.arrived) == arrived


def test_a_model_with_a_slash_in_its_name_is_found_as_clients_write_it(several):
    several.put_provider("local", baseUrl=f"{several.provider.url}/local/v1", models=["org/*"], order=601)
    # The package writes the slash as %2F.
    assert several.openai().models.retrieve("org/model-1").id == "org/model-1"
    assert several.provider.last.path == "/local/v1/models/org/model-1"
    arrived = len(several.provider.arrived)
    for path in (
        "/openai/v1/models/org%5Cmodel-1",
        "/openai/v1/models/org%2F..%2F..%2Ffiles",
        "/openai/v1/models/org%2F%2Fmodel-1",
        "/openai%2Fv1/models/org%2Fmodel-1",
        "/openai/v1/models%2Forg/model-1",
        "/openai/v1/responses/org%2Fmodel-1",
        "/openai/v1/responses/resp_1%2Finput_items",
    ):
        assert raw_status(several, path) == 400, path
    assert len(several.provider.arrived) == arrived


def raw_status(gateway: Any, path: str) -> int:
    """Return the status of a path that no library mends."""
    with socket.create_connection(("127.0.0.1", gateway.service.port), timeout=10) as connection:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {gateway.key}\r\n"
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        return int(connection.recv(65536).split(b" ")[1])


@pytest.mark.parametrize("base", ["http://127.0.0.1:9", "{url}/without/lists"])
def test_a_provider_that_gives_no_list_is_listed_with_what_its_entry_names(several, base):
    address = base.format(url=several.provider.url)
    several.put_provider(
        "silent", baseUrl=f"{address}/v1", models=["quiet-1", "q*"], aliases={"calm": "q7"}, order=602
    )
    listed = [model.id for model in several.openai().models.list()]
    assert {"gpt-5-mini", "best", "quiet-1", "calm"} <= set(listed) and "q*" not in listed


def test_a_list_of_models_needs_a_key_and_the_keys_of_providers_stay_apart(several):
    several.put_provider(
        "big", baseUrl=f"{several.provider.url}/big/v1", models=["big-*"], apiKey="sk-of-big", order=600
    )
    several.provider.arrived.clear()
    several.openai().models.list()
    keys = {each.path: each.headers["Authorization"] for each in several.provider.arrived}
    assert keys["/big/v1/models"] == "Bearer sk-of-big"
    assert keys["/v1/models"] == keys["/local/v1/models"] == "Bearer sk-of-the-provider-0123456789"
    refused = httpx2.get(f"{several.service.url}/openai/v1/models", trust_env=False)
    assert refused.status_code == 401 and refused.json()["error"]["code"] == "sluice_unauthenticated"


def test_anthropics_list_ends_where_it_ends(gateway):
    gateway.put_provider(
        "claude2", kind="anthropic", models=["none-1"], aliases={"spare": "none-1"}, order=700
    )
    try:
        names = [model.id for model in gateway.anthropic().models.list(limit=1)]
        assert names == ["claude-x", "spare"]
        with pytest.raises(anthropic.NotFoundError):
            gateway.anthropic().models.retrieve("other-1")
    finally:
        gateway.http.delete("/api/v1/providers/claude2")
