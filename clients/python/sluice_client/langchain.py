"""A runnable of LangChain around a chat model: it sees handles, the chain behind it originals."""

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any
from uuid import uuid4

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.runnables import Runnable, RunnableConfig

from sluice_client.asynchronous import AsyncSluice
from sluice_client.blocking import Sluice


class RedactedModel(Runnable[LanguageModelInput, BaseMessage]):
    """Runs ``model`` (a chat model, also with tools bound) on redacted messages and restores its answer.

    ``sluice`` and ``async_sluice`` are made from the environment where they are needed and absent. ``scope`` is the
    conversation; one call can name another in its configuration: ``{"configurable": {"sluice_scope": …}}``. Only
    the arguments of ``tools`` get originals. A stream gives text as it arrives; answers with tool calls come whole.
    """

    def __init__(
        self,
        model: Runnable[LanguageModelInput, BaseMessage],
        *,
        sluice: Sluice | None = None,
        async_sluice: AsyncSluice | None = None,
        scope: str | None = None,
        tools: Sequence[str] = (),
    ) -> None:
        self._model = model
        self._given = sluice
        self._async_given = async_sluice
        self._scope = scope or f"langchain-{uuid4().hex}"
        self._tools = [*tools]

    def invoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> BaseMessage:
        """Redact, run the model, restore."""
        scope = self._scope_of(config)
        safe = self._sluice.redact(_items(input), scope=scope)
        answer = self._model.invoke(convert_to_messages(safe.content), config, **kwargs)
        restored = self._sluice.restore(_items([answer]), scope=scope, tools=self._tools)
        return _answer(answer, restored.content[0])

    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> BaseMessage:
        """Redact, run the model, restore."""
        scope = self._scope_of(config)
        safe = await self._async_sluice.redact(_items(input), scope=scope)
        answer = await self._model.ainvoke(convert_to_messages(safe.content), config, **kwargs)
        restored = await self._async_sluice.restore(_items([answer]), scope=scope, tools=self._tools)
        return _answer(answer, restored.content[0])

    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[BaseMessage]:
        """Redact, then restore the answer while it arrives."""
        scope = self._scope_of(config)
        safe = self._sluice.redact(_items(input), scope=scope)
        chunks = self._model.stream(convert_to_messages(safe.content), config, **kwargs)
        events = (event for chunk in chain(chunks, [None]) for event in _events(chunk))
        for event in self._sluice.restore_events(events, family="chat", scope=scope, tools=self._tools):
            yield _chunk(event)

    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[BaseMessage]:
        """Redact, then restore the answer while it arrives."""
        scope = self._scope_of(config)
        safe = await self._async_sluice.redact(_items(input), scope=scope)

        async def events() -> AsyncIterator[dict[str, Any]]:
            async for chunk in self._model.astream(convert_to_messages(safe.content), config, **kwargs):
                for event in _events(chunk):
                    yield event
            for event in _events(None):
                yield event

        restored = self._async_sluice.restore_events(events(), family="chat", scope=scope, tools=self._tools)
        async for event in restored:
            yield _chunk(event)

    @cached_property
    def _sluice(self) -> Sluice:
        return self._given or Sluice()

    @cached_property
    def _async_sluice(self) -> AsyncSluice:
        return self._async_given or AsyncSluice()

    def _scope_of(self, config: RunnableConfig | None) -> str:
        named = ((config or {}).get("configurable") or {}).get("sluice_scope")
        return str(named or self._scope)


def _items(given: LanguageModelInput) -> list[Any]:
    """Return the messages of an input in the shape of OpenAI, which the service and LangChain both read."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages = given.to_messages() if hasattr(given, "to_messages") else convert_to_messages(given)
    return list(convert_to_openai_messages(messages))


def _answer(answer: BaseMessage, item: Any) -> BaseMessage:
    """Return ``answer`` with content and tool calls of the restored item, and everything else as it was."""
    (restored,) = convert_to_messages([item])
    changed: dict[str, Any] = {"content": restored.content}
    if isinstance(answer, AIMessage) and isinstance(restored, AIMessage):
        changed["tool_calls"] = restored.tool_calls
    return answer.model_copy(update=changed)


def _events(chunk: BaseMessage | None) -> Iterator[dict[str, Any]]:
    """Yield a chunk as chunks of a chat completion; None ends the answer."""
    if chunk is None:
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        return
    delta: dict[str, Any] = {}
    if chunk.text:
        delta["content"] = chunk.text
    calls = chunk.tool_call_chunks if isinstance(chunk, AIMessageChunk) else []
    if calls:
        delta["tool_calls"] = [
            {
                "index": call.get("index") or 0,
                **({"id": call["id"]} if call.get("id") else {}),
                "function": {"name": call.get("name"), "arguments": call.get("args") or ""},
            }
            for call in calls
        ]
    yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    rest = {"usage_metadata": getattr(chunk, "usage_metadata", None), "metadata": chunk.response_metadata}
    if any(rest.values()):
        yield {"choices": [], **rest}


def _chunk(event: dict[str, Any]) -> AIMessageChunk:
    """Return a restored event as a chunk."""
    delta = event["choices"][0]["delta"] if event["choices"] else {}
    calls = [
        {
            "name": call["function"].get("name"),
            "args": call["function"].get("arguments") or "",
            "id": call.get("id"),
            "index": call.get("index", 0),
            "type": "tool_call_chunk",
        }
        for call in delta.get("tool_calls") or []
    ]
    return AIMessageChunk(
        content=delta.get("content") or "",
        tool_call_chunks=calls,
        usage_metadata=event.get("usage_metadata"),
        response_metadata=event.get("metadata") or {},
    )
