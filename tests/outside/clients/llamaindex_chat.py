"""LlamaIndex: models of OpenAI and of Anthropic that call a tool."""

from typing import Any

from asked import PLAN, STREAM, answered, begin, find_customer, tell
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai import OpenAI, OpenAIResponses

options: dict[str, Any] = {"api_key": PLAN["key"], "max_retries": 0}
models = {
    "chat": lambda: OpenAI(model="gpt-5-mini", api_base=PLAN["openai"], **options),
    "responses": lambda: OpenAIResponses(model="gpt-5-mini", api_base=PLAN["openai"], **options),
    "anthropic": lambda: Anthropic(model="claude-sonnet-4-20250514", base_url=PLAN["anthropic"], **options),
}
model = models[PLAN["family"]]()
tool = FunctionTool.from_defaults(find_customer)
messages = [ChatMessage(role="system", content=PLAN["system"])]


def asked() -> Any:
    if not STREAM:
        return model.chat_with_tools([tool], chat_history=messages, allow_parallel_tool_calls=True)
    whole: Any = None
    streamed = model.stream_chat_with_tools([tool], chat_history=messages, allow_parallel_tool_calls=True)
    text = ""
    for part in streamed:
        text += part.delta or ""
        whole = part
    assert text == (whole.message.content or "")
    return whole


for turn in PLAN["turns"]:
    begin()
    messages.append(ChatMessage(role="user", content=turn))
    seen: list[Any] = []
    while True:
        answer = asked()
        messages.append(answer.message)
        calls = model.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
        if not calls:
            break
        for call in calls:
            seen.append(call.tool_id)
            result = tool(**call.tool_kwargs)
            kept = {"tool_call_id": call.tool_id, "name": call.tool_name}
            messages.append(ChatMessage(role="tool", content=str(result.content), additional_kwargs=kept))
    answered(answer.message.content, seen=seen)
tell()
