"""LiteLLM as a library: its one function for all providers."""

import json
from typing import Any

import litellm
from asked import PLAN, STREAM, answered, begin, find_customer, tell

places = {
    "chat": {"model": "openai/gpt-5-mini", "api_base": PLAN["openai"]},
    "anthropic": {"model": "anthropic/claude-x", "api_base": PLAN["anthropic"], "max_tokens": 2048},
}
place: dict[str, Any] = {**places[PLAN["family"]], "api_key": PLAN["key"], "num_retries": 0}
tools = [{"type": "function", "function": PLAN["tool"]}]
messages: list[Any] = [{"role": "system", "content": PLAN["system"]}]


def asked() -> Any:
    if not STREAM:
        return litellm.completion(messages=messages, tools=tools, **place)
    wanted = {"include_usage": True}
    chunks = list(
        litellm.completion(messages=messages, tools=tools, stream=True, stream_options=wanted, **place)
    )
    return litellm.stream_chunk_builder(chunks, messages=messages)


for turn in PLAN["turns"]:
    begin()
    messages.append({"role": "user", "content": turn})
    seen: list[Any] = []
    while True:
        answer = asked()
        choice = answer.choices[0]
        usage = [answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens]
        seen.append([usage, choice.finish_reason])
        messages.append(choice.message.model_dump(exclude_none=True))
        if not choice.message.tool_calls:
            break
        for call in choice.message.tool_calls:
            seen.append(call.id)
            result = find_customer(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    answered(choice.message.content, seen=seen)
embedded: Any = None
if PLAN["family"] == "chat":
    embedding = litellm.embedding(
        model="openai/text-embedding-3", input=PLAN["turns"], api_base=PLAN["openai"], api_key=PLAN["key"]
    )
    embedded = [entry["embedding"] for entry in embedding.data]
tell(embedded=embedded)
