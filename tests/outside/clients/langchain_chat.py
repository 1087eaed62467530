"""LangChain: chat models of OpenAI (chat completions and Responses) and of Anthropic, with tools bound."""

from typing import Any

from asked import PLAN, STREAM, answered, begin, find_customer, tell
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

options: dict[str, Any] = {"api_key": PLAN["key"], "max_retries": 0}
models = {
    "chat": lambda: ChatOpenAI(model="gpt-5-mini", base_url=PLAN["openai"], stream_usage=True, **options),
    "responses": lambda: ChatOpenAI(
        model="gpt-5-mini", base_url=PLAN["openai"], use_responses_api=True, **options
    ),
    "anthropic": lambda: ChatAnthropic(
        model="claude-x", base_url=PLAN["anthropic"], max_tokens=2048, **options
    ),
}


class Customer(BaseModel):
    """A customer of the bank."""

    name: str
    email: str


model = models[PLAN["family"]]()
bound = model.bind_tools([tool(find_customer)])
messages: list[Any] = [SystemMessage(PLAN["system"])]


def asked() -> Any:
    if not STREAM:
        return bound.invoke(messages)
    whole: Any = None
    for chunk in bound.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


for turn in PLAN["turns"]:
    begin()
    messages.append(HumanMessage(turn))
    seen: list[Any] = []
    while True:
        answer = asked()
        messages.append(answer)
        metadata = {
            name: answer.response_metadata.get(name) for name in ("finish_reason", "stop_reason", "id")
        }
        seen.append([answer.usage_metadata, metadata])
        if not answer.tool_calls:
            break
        for call in answer.tool_calls:
            seen.append(call["id"])
            messages.append(tool(find_customer).invoke({**call, "type": "tool_call"}))
    answered(str(answer.text), seen=seen)

shaped = model.with_structured_output(Customer).invoke(PLAN["turns"][0])
tell(shaped=shaped.model_dump())
