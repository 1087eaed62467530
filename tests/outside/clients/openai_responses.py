"""OpenAI's client: Responses, with the provider's memory and, where the plan says so, with the client's own."""

import json
from typing import Any

import openai
from asked import PLAN, STREAM, answered, begin, find_customer, tell
from pydantic import BaseModel

client = openai.OpenAI(base_url=PLAN["openai"], api_key=PLAN["key"], max_retries=0)
tools: Any = [{"type": "function", "strict": True, **PLAN["tool"]}]
remembers = PLAN["remembers"]
"""Whether the provider keeps the conversation."""
history: list[Any] = []
before: str | None = None


class Customer(BaseModel):
    name: str
    email: str
    account: str


def asked(given: list[Any]) -> Any:
    options: dict[str, Any] = {"model": "gpt-5-mini", "tools": tools, "instructions": PLAN["system"]}
    if remembers:
        options |= {"input": given, "previous_response_id": before}
    else:
        history.extend(given)
        options |= {"input": history, "store": False, "include": ["reasoning.encrypted_content"]}
    if not STREAM:
        return client.responses.create(**options)
    texts: dict[str, str] = {}
    with client.responses.stream(**options) as events:
        for event in events:
            if event.type.endswith(".delta"):
                texts[event.type, event.item_id] = texts.get((event.type, event.item_id), "") + event.delta
            elif event.type == "response.output_text.done":
                assert event.text == texts["response.output_text.delta", event.item_id]
            elif event.type == "response.function_call_arguments.done":
                assert event.arguments == texts["response.function_call_arguments.delta", event.item_id]
            elif event.type == "response.reasoning_summary_text.done":
                assert event.text == texts["response.reasoning_summary_text.delta", event.item_id]
        return events.get_final_response()


for turn in PLAN["turns"]:
    begin()
    given: list[Any] = [{"role": "user", "content": turn}]
    seen: list[Any] = []
    while True:
        answer = asked(given)
        before = answer.id
        seen.append([answer.id, answer.status, answer.usage.model_dump(), answer.instructions])
        history += [
            item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output
        ]
        seen += [item.summary[0].text for item in answer.output if item.type == "reasoning"]
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            break
        given = []
        for call in calls:
            result = find_customer(**json.loads(call.arguments))
            given.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    answered(answer.output_text, seen=seen)

parsed = client.responses.parse(model="gpt-5-mini", input=PLAN["turns"][0], text_format=Customer)
searches: Any = [{"type": "web_search"}]
searched = client.responses.create(model="gpt-5-mini", input=PLAN["turns"][0], tools=searches)
(said,) = (item for item in searched.output if item.type == "message")
(note,) = said.content[0].annotations
assert said.content[0].text[note.start_index : note.end_index] == note.title
tell(parsed=parsed.output_parsed.model_dump(), searched=searched.output_text, note=note.model_dump())
