"""Anthropic's client: messages with thinking and tools, citations, and the counting of tokens."""

from typing import Any

import anthropic
from asked import PLAN, STREAM, answered, begin, find_customer, tell
from pydantic import BaseModel

client = anthropic.Anthropic(base_url=PLAN["anthropic"], api_key=PLAN["key"], max_retries=0)
spec = PLAN["tool"]
tool = {"name": spec["name"], "description": spec["description"], "input_schema": spec["parameters"]}
system = [{"type": "text", "text": PLAN["system"], "cache_control": {"type": "ephemeral"}}]
options: Any = {"model": "claude-x", "max_tokens": 2048}
thinking: Any = {"type": "enabled", "budget_tokens": 1024}
messages: list[Any] = []


class Customer(BaseModel):
    name: str
    email: str


def asked(**members: Any) -> Any:
    if not STREAM:
        return client.messages.create(**options, **members)
    text = ""
    with client.messages.stream(**options, **members) as events:
        for event in events:
            text += event.text if event.type == "text" else ""
        whole = events.get_final_message()
    assert text == "".join(block.text for block in whole.content if block.type == "text")
    return whole


for turn in PLAN["turns"]:
    begin()
    messages.append({"role": "user", "content": turn})
    seen: list[Any] = []
    while True:
        answer = asked(messages=messages, tools=[tool], thinking=thinking, system=system)
        seen.append([answer.id, answer.stop_reason, answer.usage.model_dump(), answer.model])
        seen += [block.thinking for block in answer.content if block.type == "thinking"]
        messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            break
        results = []
        for number, use in enumerate(uses):
            text = find_customer(**use.input)
            content = text if number else [{"type": "text", "text": text}]
            results.append({"type": "tool_result", "tool_use_id": use.id, "content": content})
        messages.append({"role": "user", "content": results})
    answered(answer.content[-1].text, seen=seen)

texts = PLAN["turns"][:2]
documents = [
    {
        "type": "document",
        "source": {
            "type": "text",
            "media_type": "text/plain",
            "data": f"{text} In short. {PLAN['turns'][0]}",
        },
        "title": "A letter",
        "citations": {"enabled": True},
    }
    for text in texts
]
cited = asked(
    messages=[{"role": "user", "content": [*documents, {"type": "text", "text": "What do they say?"}]}]
)
for number, block in enumerate(cited.content):
    (citation,) = block.citations
    data = documents[citation.document_index]["source"]["data"]
    assert citation.document_index == number
    assert data[citation.start_char_index : citation.end_char_index] == citation.cited_text
counted = client.messages.count_tokens(
    model="claude-x", messages=messages, tools=[tool], system=system, thinking=thinking
)
first: Any = [{"role": "user", "content": PLAN["turns"][0]}]
parsed = client.messages.parse(**options, messages=first, output_format=Customer)
tell(
    cited=[block.model_dump() for block in cited.content],
    counted=counted.input_tokens,
    parsed=parsed.parsed_output.model_dump(),
)
