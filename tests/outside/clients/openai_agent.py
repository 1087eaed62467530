"""OpenAI's Agents SDK: an agent with a tool, on Responses and on chat completions."""

import asyncio
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from asked import PLAN, STREAM, answered, begin, find_customer, tell
from openai import AsyncOpenAI
from openai.types.responses import ResponseTextDeltaEvent

set_tracing_disabled(True)
client = AsyncOpenAI(base_url=PLAN["openai"], api_key=PLAN["key"], max_retries=0)
kind = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}[PLAN["family"]]
agent = Agent(
    name="clerk",
    instructions=PLAN["system"],
    model=kind(model="gpt-5-mini", openai_client=client),
    tools=[function_tool(find_customer)],
)


async def main() -> None:
    history: list[Any] = []
    for turn in PLAN["turns"]:
        begin()
        history.append({"role": "user", "content": turn})
        if STREAM:
            run: Any = Runner.run_streamed(agent, history)
            text = ""
            async for event in run.stream_events():
                if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
                    text += event.data.delta
            assert text == run.final_output
        else:
            run = await Runner.run(agent, history)
        history = run.to_input_list()
        counted = run.context_wrapper.usage
        answered(run.final_output, seen=[counted.input_tokens, counted.output_tokens, counted.requests])
    tell()


asyncio.run(main())
