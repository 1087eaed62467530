"""The model of the tests in the shapes of OpenAI's chat completions and Responses."""

import json
from typing import Any

from aiohttp import web

from tests.gateway.model import Model, demand, demand_answered, demand_json, facts_of, filled, reply
from tests.gateway.model_events import response_events
from tests.gateway.provider import data, events

_DETAILS = {
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, **_DETAILS}
CREATED = 1790000000


async def chat(model: Model, request: web.Request, value: Any) -> web.StreamResponse:
    """Answer one request for a chat completion, whole or streamed."""
    _check_chat(value["messages"])
    content, calls = _chat_reply(model, value)
    finish = "tool_calls" if calls else "stop"
    head = {
        "id": model.id("chatcmpl"),
        "created": CREATED,
        "model": value["model"],
        "service_tier": "default",
    }
    head["system_fingerprint"] = "fp_1"
    headers = {"x-request-id": model.id("req")}
    if not value.get("stream"):
        message = {"role": "assistant", "content": content, "refusal": None, "annotations": []}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        body = {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE}
        return web.json_response(body, headers=headers)

    def chunk(delta: dict[str, Any], ended: str | None = None) -> str:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": ended}]
        return data({**head, "object": "chat.completion.chunk", "choices": choices, "usage": None})

    lines = [chunk({"role": "assistant", "content": None if calls else "", "refusal": None})]
    lines += [chunk({"content": part}) for part in model.provider.parts(content or "")]
    for number, call in enumerate(calls):
        opened = {**call, "function": {**call["function"], "arguments": ""}}
        lines.append(chunk({"tool_calls": [{"index": number, **opened}]}))
        for part in model.provider.parts(call["function"]["arguments"]):
            lines.append(chunk({"tool_calls": [{"index": number, "function": {"arguments": part}}]}))
    lines.append(chunk({}, finish))
    if (value.get("stream_options") or {}).get("include_usage"):
        lines.append(data({**head, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}))
    return await events(model.provider, request, [*lines, "data: [DONE]\n\n"], **headers)


def _check_chat(messages: list[Any]) -> None:
    waiting: list[str] = []
    results: list[str] = []
    for message in messages:
        demand(message["role"] in {"system", "developer", "user", "assistant", "tool"}, "unknown role")
        if message["role"] == "tool":
            results.append(message["tool_call_id"])
            continue
        demand_answered(waiting, results)
        results = []
        waiting = [call["id"] for call in message.get("tool_calls") or []]
        for call in message.get("tool_calls") or []:
            demand_json(call["function"]["arguments"])
    demand_answered(waiting, results)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text") or "" for part in content)
    return content or ""


def _chat_reply(model: Model, value: Any) -> tuple[str | None, list[dict[str, Any]]]:
    messages = value["messages"]
    last = max(number for number, message in enumerate(messages) if message["role"] == "user")
    text = _text(messages[last]["content"])
    results = [_text(message["content"]) for message in messages[last:] if message["role"] == "tool"]
    tools = {tool["function"]["name"]: tool["function"] for tool in value.get("tools") or []}
    choice, form = value.get("tool_choice"), value.get("response_format") or {}
    if choice == "required":
        choice = {"function": {"name": next(iter(tools))}}
    if isinstance(choice, dict):
        name = choice["function"]["name"]
        return None, [_call(model, 0, name, filled(tools[name]["parameters"], facts_of(text)))]
    if form.get("type") == "json_schema":
        shaped = filled(form["json_schema"]["schema"], facts_of(text))
        return json.dumps(shaped, ensure_ascii=False), []
    step = reply(text, results, tools=bool(tools))
    name = next(iter(tools), "")
    return step.text or None, [_call(model, number, name, each) for number, each in enumerate(step.calls)]


def _call(model: Model, number: int, name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"{model.id('call')}_{number}", "type": "function", "function": function}


async def response(model: Model, request: web.Request, value: Any) -> web.StreamResponse:
    """Answer one request for a response; what came before it is kept here, as the real API does."""
    before = value.get("previous_response_id")
    demand(before is None or before in model.kept, f"Previous response with id '{before}' not found.")
    asked = value["input"]
    items = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    history = [*model.kept.get(before, []), *items]
    _check_items(model, history)
    output = _output(model, value, history)
    name = model.id("resp")
    model.kept[name] = [*history, *output]
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    usage |= {"input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 2}}
    head: dict[str, Any] = {"id": name, "object": "response", "created_at": CREATED, "model": value["model"]}
    head |= {
        "error": None,
        "incomplete_details": None,
        "instructions": value.get("instructions"),
        "metadata": {},
    }
    head |= {"parallel_tool_calls": True, "tools": value.get("tools") or [], "temperature": 1.0, "top_p": 1.0}
    head |= {"tool_choice": "auto", "previous_response_id": before, "text": value.get("text") or {}}
    whole = {**head, "status": "completed", "output": output, "usage": usage}
    headers = {"x-request-id": model.id("req")}
    if not value.get("stream"):
        return web.json_response(whole, headers=headers)
    lines = response_events(model.provider, head, whole)
    return await events(model.provider, request, lines, **headers)


def _check_items(model: Model, items: list[Any]) -> None:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    demand_answered(calls, results)
    for item in items:
        if item.get("type") == "function_call":
            demand_json(item["arguments"])
        if item.get("type") == "reasoning" and item.get("encrypted_content"):
            issued = model.signed.get(item["encrypted_content"])
            summary = [part["text"] for part in item["summary"]]
            demand(issued == summary, "The encrypted content could not be verified.")


def _output(model: Model, value: Any, items: list[Any]) -> list[dict[str, Any]]:
    """Return the items of a response: what it thought, and calls or a message."""
    last = max(number for number, item in enumerate(items) if item.get("role") == "user")
    text = _text(items[last]["content"])
    since = [item for item in items[last:] if item.get("type") == "function_call_output"]
    results = [_text(item["output"]) for item in since]
    tools = {tool["name"]: tool for tool in value.get("tools") or [] if tool["type"] == "function"}
    form, choice = (value.get("text") or {}).get("format") or {}, value.get("tool_choice")
    if choice == "required":
        choice = {"type": "function", "name": next(iter(tools))}
    if isinstance(choice, dict) and choice.get("type") == "function":
        shaped = filled(tools[choice["name"]]["parameters"], facts_of(text))
        return [_function_call(model, 0, choice["name"], shaped)]
    if form.get("type") == "json_schema":
        shaped = filled(form["schema"], facts_of(text))
        return [_said(model, json.dumps(shaped, ensure_ascii=False))]
    step = reply(text, results, tools=bool(tools))
    thought: dict[str, Any] = {"id": model.id("rs"), "type": "reasoning"}
    thought["summary"] = [{"type": "summary_text", "text": step.thought}]
    if "reasoning.encrypted_content" in (value.get("include") or []):
        thought["encrypted_content"] = f"gAAAA{model.number:040d}=="
        model.signed[thought["encrypted_content"]] = [step.thought]
    name = next(iter(tools), "")
    calls = [_function_call(model, number, name, each) for number, each in enumerate(step.calls)]
    searched = any(tool["type"].startswith("web_search") for tool in value.get("tools") or [])
    return [thought, *(calls or [_said(model, step.text, cites=searched)])]


def _function_call(model: Model, number: int, name: str, arguments: Any) -> dict[str, Any]:
    call = {"id": f"{model.id('fc')}_{number}", "type": "function_call", "status": "completed"}
    return {
        **call,
        "call_id": f"{model.id('call')}_{number}",
        "name": name,
        "arguments": json.dumps(arguments),
    }


def _said(model: Model, text: str, *, cites: bool = False) -> dict[str, Any]:
    annotations = []
    if cites:
        start = text.index("write to")
        end = text.index(";")
        annotation = {"type": "url_citation", "start_index": start, "end_index": end}
        annotations.append({**annotation, "url": "https://example.com/a", "title": text[start:end]})
    part = {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}
    item = {"id": model.id("msg"), "type": "message", "role": "assistant", "status": "completed"}
    return {**item, "content": [part]}
