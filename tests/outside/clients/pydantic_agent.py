"""Pydantic AI: an agent with a tool, on chat completions, Responses and messages."""

import asyncio
from collections.abc import AsyncIterable
from typing import Any

from anthropic import AsyncAnthropic
from asked import PLAN, STREAM, answered, begin, find_customer, tell
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

openai = OpenAIProvider(
    openai_client=AsyncOpenAI(base_url=PLAN["openai"], api_key=PLAN["key"], max_retries=0)
)
claude = AsyncAnthropic(base_url=PLAN["anthropic"], api_key=PLAN["key"], max_retries=0)
thinks = AnthropicModelSettings(
    max_tokens=2048, anthropic_thinking={"type": "enabled", "budget_tokens": 1024}
)
models: dict[str, Any] = {
    "chat": lambda: (OpenAIChatModel("gpt-5-mini", provider=openai), None),
    "responses": lambda: (OpenAIResponsesModel("gpt-5-mini", provider=openai), None),
    "anthropic": lambda: (
        AnthropicModel("claude-x", provider=AnthropicProvider(anthropic_client=claude)),
        thinks,
    ),
}


class Customer(BaseModel):
    """A customer of the bank."""

    name: str
    email: str


HEARD: list[str] = []


async def heard(_context: Any, events: AsyncIterable[Any]) -> None:
    """Collect the texts of a stream; an agent that is given this asks for streams."""
    async for event in events:
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            HEARD.append(event.part.content)
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            HEARD.append(event.delta.content_delta)


async def main() -> None:
    model, settings = models[PLAN["family"]]()
    agent = Agent(model, system_prompt=PLAN["system"], tools=[find_customer], model_settings=settings)
    history: list[Any] = []
    for turn in PLAN["turns"]:
        begin()
        handler = heard if STREAM else None
        whole = await agent.run(turn, message_history=history, event_stream_handler=handler)
        text, history, usage = whole.output, whole.all_messages(), whole.usage
        assert not STREAM or "".join(HEARD).endswith(text)
        counted = usage() if callable(usage) else usage
        last = history[-1]
        seen = [counted.input_tokens, counted.output_tokens, last.finish_reason, last.provider_response_id]
        answered(text, seen=seen)
    shaped: Any = None
    if PLAN["family"] != "anthropic":
        shaped = (await Agent(model, output_type=Customer).run(PLAN["turns"][0][8:])).output.model_dump()
    tell(shaped=shaped)


asyncio.run(main())
