"""Wrap a client of OpenAI or Anthropic, where its ``base_url`` cannot be changed: redact before, restore after."""

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Self
from uuid import uuid4

from sluice_client.asynchronous import AsyncSluice
from sluice_client.blocking import Sluice
from sluice_client.errors import NotCoveredError
from sluice_client.families import CALLS, PASSED, Covered, Family, outbound, plain


def wrap(
    client: Any,
    sluice: Sluice | AsyncSluice | None = None,
    *,
    scope: str | None = None,
    tools: Sequence[str] = (),
) -> Any:
    """Return ``client`` with every covered call redacted and its answer restored, whole or streamed.

    ``client`` is one of the libraries ``openai`` and ``anthropic``. ``sluice`` must block exactly if ``client``
    does; without it, one is made from the environment. ``scope`` is the conversation, else a new one for this
    wrapped client. Of tool calls only the arguments of ``tools`` get originals. Any call that is not covered raises
    ``NotCoveredError``: it would pass unredacted.
    """
    library = type(client).__module__.partition(".")[0]
    if library not in CALLS:
        raise TypeError("Give a client of the library openai or anthropic.")
    waits = hasattr(client, "__aenter__")
    if sluice is None:
        sluice = AsyncSluice() if waits else Sluice()
    if isinstance(sluice, AsyncSluice) is not waits:
        raise TypeError("A blocking client needs Sluice, an asynchronous one AsyncSluice.")
    scope = scope or f"wrapped-{uuid4().hex}"
    conversation: _Conversation | _AsyncConversation
    if isinstance(sluice, AsyncSluice):
        conversation = _AsyncConversation(sluice, scope, tools)
    else:
        conversation = _Conversation(sluice, scope, tools)
    return _Node(client, "", CALLS[library], conversation.bound)


class _Node:
    """A part of a client: covered calls are replaced, everything else is refused."""

    def __init__(
        self,
        target: Any,
        path: str,
        calls: Mapping[str, Covered],
        bound: Callable[[Callable[..., Any], Covered], Callable[..., Any]],
    ) -> None:
        self._target = target
        self._path = path
        self._calls = calls
        self._bound = bound

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}".removeprefix(".")
        if path in self._calls:
            return self._bound(getattr(self._target, name), self._calls[path])
        if any(call.startswith(f"{path}.") for call in self._calls):
            return _Node(getattr(self._target, name), path, self._calls, self._bound)
        if path in PASSED:
            return getattr(self._target, name)
        raise NotCoveredError(f"{path} is not covered: what it sends would pass unredacted.")


class _Conversation:
    """Calls of a blocking client in one scope."""

    def __init__(self, sluice: Sluice, scope: str, tools: Sequence[str]) -> None:
        self._sluice = sluice
        self._scope = scope
        self._tools = tools

    def bound(self, create: Callable[..., Any], call: Covered) -> Callable[..., Any]:
        def redacted(**parameters: Any) -> Any:
            items, joined = outbound(call, parameters)
            safe = self._sluice.redact(items, scope=self._scope)
            answer = create(**joined(safe.content))
            if call.family is None:
                return answer
            if parameters.get("stream"):
                return RestoredStream(answer, self._events(call.family))
            parts = call.parts(plain(answer))
            texts = self._sluice.restore(parts, scope=self._scope, tools=[*self._tools])
            return type(answer).construct(**call.joined(plain(answer), texts.content))

        return redacted

    def _events(self, family: Family) -> Callable[[Iterable[Any]], Generator[Any, None, None]]:
        return lambda events: self._sluice.restore_events(
            events, family=family, scope=self._scope, tools=self._tools
        )


class _AsyncConversation:
    """Calls of an asynchronous client in one scope."""

    def __init__(self, sluice: AsyncSluice, scope: str, tools: Sequence[str]) -> None:
        self._sluice = sluice
        self._scope = scope
        self._tools = tools

    def bound(self, create: Callable[..., Any], call: Covered) -> Callable[..., Any]:
        async def redacted(**parameters: Any) -> Any:
            items, joined = outbound(call, parameters)
            safe = await self._sluice.redact(items, scope=self._scope)
            answer = await create(**joined(safe.content))
            if call.family is None:
                return answer
            if parameters.get("stream"):
                return AsyncRestoredStream(answer, self._events(call.family))
            parts = call.parts(plain(answer))
            texts = await self._sluice.restore(parts, scope=self._scope, tools=[*self._tools])
            return type(answer).construct(**call.joined(plain(answer), texts.content))

        return redacted

    def _events(self, family: Family) -> Callable[[AsyncIterable[Any]], AsyncGenerator[Any, None]]:
        return lambda events: self._sluice.restore_events(
            events, family=family, scope=self._scope, tools=self._tools
        )


class _Classes:
    """The classes of a provider's events, by their type, to give restored events the same."""

    def __init__(self) -> None:
        self._of: dict[Any, Any] = {}

    def event(self, value: Any) -> dict[str, Any]:
        event: dict[str, Any] = plain(value)
        self._of[event.get("type")] = type(value)
        return event

    def value(self, event: dict[str, Any]) -> Any:
        return self._of[event.get("type")].construct(**event)


class RestoredStream:
    """A stream of a blocking client with its texts restored; a context manager, as the original is."""

    def __init__(self, source: Any, restore: Callable[[Iterable[Any]], Generator[Any, None, None]]) -> None:
        self._source = source
        self._classes = _Classes()
        self._events = restore(self._classes.event(event) for event in source)

    def __iter__(self) -> Iterator[Any]:
        for event in self._events:
            yield self._classes.value(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the provider's answer."""
        self._events.close()
        self._source.close()


class AsyncRestoredStream:
    """A stream of an asynchronous client with its texts restored; a context manager, as the original is."""

    def __init__(
        self, source: Any, restore: Callable[[AsyncIterable[Any]], AsyncGenerator[Any, None]]
    ) -> None:
        self._source = source
        self._classes = _Classes()
        self._events = restore(self._described())

    async def _described(self) -> AsyncGenerator[Any, None]:
        async for event in self._source:
            yield self._classes.event(event)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._events:
            yield self._classes.value(event)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the provider's answer."""
        await self._events.aclose()
        await self._source.close()
