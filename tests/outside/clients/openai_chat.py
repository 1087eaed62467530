"""OpenAI's client: chat completions."""

import json
from typing import Any

import openai
from asked import PLAN, STREAM, answered, begin, find_customer, tell
from pydantic import BaseModel

client = openai.OpenAI(base_url=PLAN["openai"], api_key=PLAN["key"], max_retries=0)
tools: Any = [{"type": "function", "function": PLAN["tool"]}]
messages: list[Any] = [{"role": "system", "content": PLAN["system"]}]


class Customer(BaseModel):
    name: str
    email: str
    tags: list[str]


def asked() -> Any:
    if not STREAM:
        return client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=tools)
    wanted: Any = {"include_usage": True}
    options: Any = {"messages": messages, "tools": tools, "stream_options": wanted}
    text = ""
    with client.chat.completions.stream(model="gpt-5-mini", **options) as events:
        for event in events:
            text += event.delta if event.type == "content.delta" else ""
        whole = events.get_final_completion()
    assert text == (whole.choices[0].message.content or "")
    return whole


for turn in PLAN["turns"]:
    begin()
    messages.append({"role": "user", "content": turn})
    seen = []
    while True:
        answer = asked()
        choice = answer.choices[0]
        seen.append(
            [answer.id, answer.usage.model_dump(), choice.finish_reason, answer.model, answer.service_tier]
        )
        messages.append(choice.message.model_dump(exclude_none=True, exclude={"parsed"}))
        if not choice.message.tool_calls:
            break
        for call in choice.message.tool_calls:
            seen.append(call.id)
            result = find_customer(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    answered(choice.message.content, seen=seen)

parsed = client.chat.completions.parse(
    model="gpt-5-mini", messages=[{"role": "user", "content": PLAN["turns"][0]}], response_format=Customer
)
embedded = client.embeddings.create(model="text-embedding-3", input=PLAN["turns"], encoding_format="float")
tell(
    parsed=parsed.choices[0].message.parsed.model_dump(),
    embedded=[entry.embedding for entry in embedded.data],
    usage=embedded.usage.model_dump(),
)
