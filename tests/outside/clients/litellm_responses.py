"""LiteLLM as a library: its Responses, with the memory of the provider or, where the plan says so, its own."""

import json
from typing import Any

import litellm
from asked import PLAN, STREAM, answered, begin, find_customer, tell

place: dict[str, Any] = {"model": "openai/gpt-5-mini", "api_base": PLAN["openai"], "api_key": PLAN["key"]}
tools: list[Any] = [{"type": "function", "strict": True, **PLAN["tool"]}]
remembers = PLAN["remembers"]
"""Whether the provider keeps the conversation."""
history: list[Any] = []
before: str | None = None


def asked(given: list[Any]) -> Any:
    options: dict[str, Any] = {**place, "tools": tools, "instructions": PLAN["system"], "num_retries": 0}
    if remembers:
        options |= {"input": given, "previous_response_id": before}
    else:
        history.extend(given)
        options |= {"input": history, "store": False, "include": ["reasoning.encrypted_content"]}
    if not STREAM:
        return litellm.responses(**options)
    texts: dict[tuple[str, str], str] = {}
    whole: Any = None
    for event in litellm.responses(stream=True, **options):
        kind = str(getattr(event.type, "value", event.type))
        name, _, ending = kind.rpartition(".")
        if ending == "delta":
            texts[name, event.item_id] = texts.get((name, event.item_id), "") + event.delta
        elif kind == "response.output_text.done":
            assert event.text == texts[name, event.item_id]
        elif kind == "response.function_call_arguments.done":
            assert event.arguments == texts[name, event.item_id]
        elif kind == "response.completed":
            whole = event.response
    return whole


def members(item: Any) -> dict[str, Any]:
    return dict(item) if isinstance(item, dict) else item.model_dump(exclude_none=True)


for turn in PLAN["turns"]:
    begin()
    given: list[Any] = [{"role": "user", "content": turn}]
    seen: list[Any] = []
    while True:
        answer = asked(given)
        before = answer.id
        output = [members(item) for item in answer.output]
        history += output
        usage = [answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens]
        seen.append([answer.status, usage, answer.instructions])
        seen += [item["summary"][0]["text"] for item in output if item["type"] == "reasoning"]
        calls = [item for item in output if item["type"] == "function_call"]
        if not calls:
            break
        given = []
        for call in calls:
            result = find_customer(**json.loads(call["arguments"]))
            given.append({"type": "function_call_output", "call_id": call["call_id"], "output": result})
    texts = [part["text"] for item in output if item["type"] == "message" for part in item["content"]]
    answered("".join(texts), seen=seen)
tell()
