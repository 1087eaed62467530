"""Payloads of events become context items and come back whole, in the form in which they came."""

from typing import Any

import pytest

from app.core.content.context import Context
from app.core.content.intercepted import InterceptedPayload, tool_name
from app.core.content.leaves import LeafPlace
from app.core.content.text_edits import Edit
from app.core.errors import InvalidArgumentsError

BLOCK = {"type": "text", "text": "Jane", "_meta": {"x": 1}}
PAYLOADS: list[tuple[str, str, dict[str, Any], int]] = [
    (
        "tools/call",
        "request",
        {"name": "t", "arguments": {"a": {"b": ["Jane"]}, "n": 1}, "_meta": {"p": 1}},
        1,
    ),
    (
        "tools/call",
        "response",
        {"content": [BLOCK], "structuredContent": {"who": "Jane"}, "isError": False},
        2,
    ),
    ("prompts/get", "request", {"name": "p", "arguments": {"who": "Jane"}}, 1),
    ("prompts/get", "response", {"description": "Jane", "messages": [{"role": "user", "content": BLOCK}]}, 2),
    (
        "resources/read",
        "response",
        {"contents": [{"uri": "memo://1", "text": "Jane", "mimeType": "text/plain"}]},
        1,
    ),
    (
        "sampling/createMessage",
        "request",
        {"messages": [{"role": "user", "content": BLOCK}], "systemPrompt": "Jane", "maxTokens": 5},
        2,
    ),
    ("sampling/createMessage", "response", {"role": "assistant", "content": BLOCK, "model": "m"}, 1),
    (
        "elicitation/create",
        "request",
        {"message": "Jane", "requestedSchema": {"type": "object", "properties": {"n": {"title": "Jane"}}}},
        2,
    ),
    ("elicitation/create", "response", {"action": "accept", "content": {"n": "Jane"}}, 1),
    (
        "llm/completion",
        "request",
        {"model": "m", "messages": [{"role": "user", "content": "Jane"}], "user": "Jane", "temperature": 0.5},
        2,
    ),
    (
        "llm/completion",
        "response",
        {
            "id": "1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Jane"}}],
            "model": "m",
        },
        1,
    ),
    ("llm/completion", "response", {"role": "assistant", "content": [BLOCK], "stop_reason": "end"}, 1),
    ("llm/completion", "response", {"message": {"content": "Jane"}}, 1),
    ("llm/completion", "response", {"content": "Jane"}, 1),
    ("llm/completion", "request", {"prompt": "Jane", "system": "Jane"}, 2),
    ("llm/completion", "request", {"prompt": ["Jane", "and Jane"], "n": 1}, 2),
    ("llm/completion", "request", {"messages": "Jane", "model": "m"}, 1),
    (
        "llm/completion",
        "request",
        {
            "instructions": "Jane",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Jane"}]},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"who":"Jane"}'},
                {"type": "function_call_output", "call_id": "c", "output": "Jane"},
            ],
        },
        4,
    ),
    ("llm/completion", "request", {"input": "Jane", "text": {"format": "x"}}, 2),
    (
        "llm/completion",
        "request",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        BLOCK,
                        {"type": "document", "title": "Jane", "source": {"type": "text", "data": "Jane"}},
                        {"type": "document", "source": {"type": "base64", "data": "aGVsbG8="}},
                    ],
                }
            ]
        },
        3,
    ),
    ("llm/completion", "response", {"choices": [{"index": 0, "text": "Jane", "finish_reason": "stop"}]}, 1),
    ("llm/completion", "response", {"choices": [{"delta": {"content": "Jane"}}, {"delta": {}}]}, 1),
    (
        "llm/completion",
        "response",
        {
            "object": "response",
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Jane"}]}
            ],
        },
        1,
    ),
    (
        "llm/completion",
        "request",
        {
            "contents": [{"role": "user", "parts": [{"text": "Jane"}]}],
            "systemInstruction": {"parts": [{"text": "Jane"}]},
            "tools": [{"functionDeclarations": [{"name": "f", "description": "Jane"}]}],
            "generationConfig": {"stopSequences": ["Jane:"], "temperature": 0.5},
        },
        3,
    ),
    (
        "llm/completion",
        "response",
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Jane"}]}, "index": 0}, {}]},
        1,
    ),
    (
        "llm/completion",
        "response",
        {"output": {"message": {"role": "assistant", "content": [{"text": "Jane"}]}}, "stopReason": "x"},
        1,
    ),
    (
        "llm/completion",
        "request",
        {"messages": [], "stop": ["Jane:"], "user": "Jane", "metadata": {"user_id": "Jane", "x": "Jane"}},
        1,
    ),
    ("llm/completion", "request", {"text": {"format": {"type": "x", "description": "Jane"}}}, 1),
    ("tools/call", "request", {"name": "t", "arguments": ["Jane"]}, 1),
    (
        "tools/call",
        "request",
        {"name": "t", "arguments": {}, "inputResponses": {"q": {"content": {"a": "Jane"}}}},
        1,
    ),
    ("context/transform", "request", {"context": ["Jane", BLOCK]}, 2),
    ("context/transform", "response", {"context": [{"role": "assistant", "content": "Jane"}]}, 1),
]
CHANGED = (
    LeafPlace.TEXT,
    LeafPlace.STRUCTURED,
    LeafPlace.TOOL_INPUT,
    LeafPlace.TOOL_RESULT,
    LeafPlace.RESOURCE,
    LeafPlace.DEFINITION,
    LeafPlace.USER,
)


def replaced(items: list[Any]) -> list[Any]:
    """Return ``items`` with John in place of Jane, as a middleware would."""
    context = Context.parse(items)
    return context.edited(
        Edit(leaf, leaf.text.index("Jane"), leaf.text.index("Jane") + 4, "John")
        for leaf in context.leaves
        if leaf.place in CHANGED and "Jane" in leaf.text
    ).to_json()


def swapped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: swapped(one) for key, one in value.items()}
    if isinstance(value, list):
        return [swapped(one) for one in value]
    return value.replace("Jane", "John") if isinstance(value, str) else value


@pytest.mark.parametrize(("event", "phase", "payload", "_count"), PAYLOADS)
def test_a_payload_comes_back_as_it_came(
    event: str, phase: str, payload: dict[str, Any], _count: int
) -> None:
    frames = [
        payload,
        {"method": event, "params": payload},
        {"jsonrpc": "2.0", "method": event, "params": payload},
    ]
    for framed in [*frames, *([{"result": payload}] if phase == "response" else [])]:
        governed = InterceptedPayload(event, phase, framed)
        assert governed.payload(governed.items) == framed


@pytest.mark.parametrize(("event", "phase", "payload", "_count"), PAYLOADS)
def test_every_text_of_a_payload_can_be_changed(
    event: str, phase: str, payload: dict[str, Any], _count: int
) -> None:
    governed = InterceptedPayload(event, phase, payload)
    assert governed.payload(replaced(governed.items)) == swapped(payload)
    framed = {"method": event, "params": payload}
    governed = InterceptedPayload(event, phase, framed)
    assert governed.payload(replaced(governed.items)) == {**framed, "params": swapped(payload)}


@pytest.mark.parametrize(
    ("event", "phase", "payload", "pointer", "path"),
    [
        ("tools/call", "request", {"name": "t", "arguments": {"a": ["x"]}}, "/0/input/a/0", "arguments.a[0]"),
        ("tools/call", "response", {"content": [BLOCK]}, "/0/content/0/text", "content[0].text"),
        ("tools/call", "response", {"content": [BLOCK]}, "/1/structuredContent", None),
        (
            *("prompts/get", "response", {"messages": [{"role": "user", "content": BLOCK}]}),
            *("/0/content/text", "messages[0].content.text"),
        ),
        (
            "resources/read",
            "response",
            {"contents": [{"uri": "u", "text": "x"}]},
            "/0/resource/text",
            "contents[0].text",
        ),
        (
            *("llm/completion", "request", {"system": "s", "messages": [{"role": "user", "content": "x"}]}),
            *("/1/content", "messages[0].content"),
        ),
        ("llm/completion", "request", {"system": "s", "messages": []}, "/0/content", "system"),
        (
            "llm/completion",
            "response",
            {"choices": [{"message": {"content": "x"}}]},
            "/0",
            "choices[0].message",
        ),
        (
            "context/transform",
            "request",
            {"method": "context/transform", "params": {"context": ["x"]}},
            "/0",
            "params.context[0]",
        ),
        (
            *("llm/completion", "response", {"choices": [{"index": 0, "text": "x"}]}),
            *("/0/content", "choices[0].text"),
        ),
        (
            *("llm/completion", "request", {"input": [{"type": "function_call", "arguments": "x"}]}),
            *("/0/arguments", "input[0].arguments"),
        ),
        (
            "llm/completion",
            "request",
            {"messages": [{"role": "user", "content": [{"type": "document", "title": "x"}]}]},
            "/0/content/0/title",
            "messages[0].content[0].title",
        ),
        ("context/transform", "request", {"context": []}, "nowhere", None),
        ("context/transform", "request", {"context": []}, "/7", None),
    ],
)
def test_findings_have_a_path_in_the_payload(
    event: str, phase: str, payload: dict[str, Any], pointer: str, path: str | None
) -> None:
    assert InterceptedPayload(event, phase, payload).path(pointer) == path


def test_what_a_middleware_puts_in_front_has_its_place() -> None:
    body = {
        "messages": [{"role": "assistant", "content": {"type": "text", "text": "a"}}],
        "systemPrompt": "s",
    }
    governed = InterceptedPayload("sampling/createMessage", "request", body)
    added = {"role": "user", "content": "new"}
    made = governed.payload([added, *governed.items])
    assert made["messages"][0] == {"role": "user", "content": {"type": "text", "text": "new"}}
    assert made["messages"][1:] == body["messages"]
    completion = InterceptedPayload("llm/completion", "request", {"messages": []})
    assert completion.payload([added])["messages"] == [added]


def test_what_is_added_has_the_form_of_the_payload() -> None:
    message, text = {"role": "user", "content": "new"}, {"type": "text", "text": "new"}
    for body in ({"messages": []}, {"input": []}):
        governed = InterceptedPayload("llm/completion", "request", body)
        (name,) = body
        assert governed.payload([text]) == governed.payload([message]) == {name: [message]}
    prompts = InterceptedPayload("llm/completion", "request", {"prompt": ["x"]})
    assert prompts.payload([text, *prompts.items]) == {"prompt": ["new", "x"]}
    nowhere = InterceptedPayload("llm/completion", "request", {"model": "m"})
    with pytest.raises(InvalidArgumentsError) as caught:
        nowhere.payload([text])
    assert caught.value.details["pointer"] == "/payload"


def test_a_frame_with_members_of_its_own_is_a_frame() -> None:
    framed = {"method": "tools/call", "params": {"name": "t", "arguments": {"a": "Jane"}}, "extra": {"k": 1}}
    governed = InterceptedPayload("tools/call", "request", framed)
    made = governed.payload(replaced(governed.items))
    assert made == {**framed, "params": {"name": "t", "arguments": {"a": "John"}}}


@pytest.mark.parametrize(
    ("event", "payload", "pointer"),
    [
        ("tools/call", [], "/payload"),
        ("tools/call", {"method": "tools/list", "params": {}}, "/payload/method"),
        ("tools/call", {"method": "tools/call", "params": 1}, "/payload/params"),
        ("context/transform", {"messages": []}, "/payload/context"),
    ],
)
def test_a_payload_of_another_form_is_refused(event: str, payload: Any, pointer: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        InterceptedPayload(event, "request", payload)
    assert caught.value.details["pointer"] == pointer


def test_a_frame_without_params_stays_without() -> None:
    for framed in ({"method": "tools/list"}, {}):
        governed = InterceptedPayload("tools/list", "request", framed)
        assert governed.items == [] and governed.payload([]) == framed


def test_the_members_of_a_frame_without_params_are_no_content() -> None:
    framed = {"jsonrpc": "2.0", "id": "Jane", "method": "prompts/get"}
    assert InterceptedPayload("prompts/get", "request", framed).items == []


@pytest.mark.parametrize(
    ("event", "payload", "name", "number"),
    [
        ("resources/read", {"uri": "memo://Jane"}, "uri", 0),
        ("elicitation/create", {"mode": "url", "message": "Say who.", "url": "https://x/Jane"}, "url", 1),
    ],
)
def test_an_address_is_read_as_one_and_can_be_changed(
    event: str, payload: dict[str, Any], name: str, number: int
) -> None:
    governed = InterceptedPayload(event, "request", payload)
    assert governed.items[number] == {"type": "resource_link", "uri": payload[name]}
    items = [*governed.items]
    items[number] = {"type": "resource_link", "uri": "memo://other"}
    assert governed.payload(items) == {**payload, name: "memo://other"}


def test_tools_are_known_by_name_in_both_forms() -> None:
    assert [tool_name(one) for one in ({"name": "a"}, {"function": {"name": "b"}}, {"function": {}}, 1)] == [
        *("a", "b", None, None)
    ]
    assert InterceptedPayload("tools/list", "response", {"tools": [{"name": "a"}]}).payload([], []) == {
        "tools": []
    }
