"""Middlewares of the policy that judge answers: whole ones, and streams, which are held back until they are whole."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from app.core.contracts.gateway_policy import RESTORATION, GatewayPipeline
from app.core.contracts.policy_steps import Step
from app.core.errors import BlockedByPolicyError, InternalError, OverloadedError
from app.core.gateway.answers import GatewayAnswer
from app.core.gateway.channels import (
    ChannelKind,
    CollectedText,
    CollectedTexts,
    Path,
    RewrittenTexts,
    TextPlace,
)
from app.core.gateway.kinds import ApiFamily, Operation
from app.core.gateway.member_table import LeafRole
from app.core.gateway.requests import GatewayRequest, value_at
from app.core.offload import off_loop
from app.services.gateway.pipeline_use import PipelineUse, end_of

MOST_HELD_BYTES: Final = 8 * 2**20
"""How many bytes of one stream are held; ``docs/gateway.md`` and the policy's description name the figure."""
_ROOM_BYTES: Final = 128 * 2**20
_MOST_EVIDENCE: Final = 4_096
_SPOKEN: Final = frozenset({LeafRole.SYSTEM, LeafRole.USER, LeafRole.ASSISTANT, LeafRole.TOOL_RESULT})
_SAID: Final = frozenset({ChannelKind.TEXT, ChannelKind.REFUSAL})
_REFUSED: Final = (
    "The policy of this tenant checks whole answers of this model and refuses to stream them (gateway.pipelines, "
    "streams): ask with stream false."
)


@dataclass(slots=True)
class HeldStreams:
    """Bounds how many bytes of streams this process holds until their checks are done."""

    room: int = _ROOM_BYTES
    size: int = 0

    @contextmanager
    def holding(self) -> Iterator["HeldStream"]:
        """Hold a stream for the time of a block."""
        stream = HeldStream(self)
        try:
            yield stream
        finally:
            self.size -= stream.size


@dataclass(slots=True)
class HeldStream:
    """The parts of one stream that arrived so far."""

    streams: HeldStreams
    size: int = 0
    parts: list[bytes] = field(default_factory=list, repr=False)

    def add(self, part: bytes) -> None:
        """Keep a part; raise BlockedByPolicyError or OverloadedError if there is no room for it."""
        self.parts.append(part)
        self.size += len(part)
        self.streams.size += len(part)
        if self.size > MOST_HELD_BYTES:
            raise BlockedByPolicyError(
                "The streamed answer is larger than what is held for the checks of this tenant's policy, so nothing "
                "of it was passed on: ask with stream false.",
                details={"limit": MOST_HELD_BYTES},
            )
        if self.streams.size > self.streams.room:
            raise OverloadedError("Too many streamed answers wait for their checks.", retry_after_s=1)


@dataclass(frozen=True, slots=True)
class AnswerChecks:
    """The steps of the policy for answers beside the restoration, and what runs them.

    ``evidence`` are the texts of the conversation before the answer, for steps that compare it with them.
    """

    use: PipelineUse
    steps: Sequence[Step]
    streams: HeldStreams
    evidence: Sequence[str] = field(default=(), repr=False)
    refuses_streams: bool = False

    def refuse_stream(self) -> None:
        """Raise BlockedByPolicyError if the policy lets no stream wait for its checks."""
        if self.steps and self.refuses_streams:
            raise BlockedByPolicyError(_REFUSED, details={"pointer": "/stream"})

    async def passed(self, answer: GatewayAnswer, scope: str) -> GatewayAnswer:
        """Return the answer as the steps leave it, or raise what refuses it."""
        if not self.steps or not answer.items:
            return answer
        return answer.changed(await self._judged(answer.items, scope))

    async def passed_stream(
        self, events: AsyncIterator[bytes], family: ApiFamily, operation: Operation, scope: str
    ) -> bytes:
        """Return the events of a whole stream as the steps leave their texts, or raise what refuses it."""
        self.refuse_stream()
        with self.streams.holding() as stream:
            async for event in events:
                stream.add(event)
            body = b"".join(stream.parts)
            texts = await off_loop(len(body), partial(_texts_of, family, operation, body))
            messages = _messages(texts)
            if not messages:
                return body
            items = await self._judged([message.item for message in messages], scope)
            changes: dict[TextPlace, str] = {}
            for message, item in zip(messages, items, strict=True):
                changes.update(message.changes(item))
            if not changes:
                return body
            return await off_loop(len(body), partial(_rewritten, family, operation, body, changes))

    async def _judged(self, items: Sequence[Any], scope: str) -> list[Any]:
        """Return ``items`` as the steps leave them; what a step puts in front is for a model, and left out."""
        use = replace(self.use, until=end_of(self.use.policy), evidence=self.evidence)
        changed = await use.run(self.steps, items, scope)
        return changed[len(changed) - len(items) :]


def checks_of(pipeline: GatewayPipeline) -> list[Step]:
    """Return the inbound steps beside the restoration, which need an answer as a whole."""
    return [step for step in pipeline.inbound if step.name != RESTORATION]


def evidence_of(request: GatewayRequest) -> list[str]:
    """Return the texts before the answer as the caller wrote them, the last ones of a long conversation."""
    return [leaf.leaf.text for leaf in request.leaves() if leaf.role in _SPOKEN][-_MOST_EVIDENCE:]


@dataclass(slots=True)
class _Message:
    """A message of texts of an answer, in the form that middlewares read, and where each of them stands in it."""

    item: dict[str, Any]
    places: list[tuple[Path, CollectedText]]

    def changes(self, item: Any) -> Iterator[tuple[TextPlace, str]]:
        """Yield the new texts in ``item`` by their places in the answer."""
        for path, text in self.places:
            changed = value_at(item, path)
            if not isinstance(changed, str):
                raise InternalError("A middleware changed the form of an answer.")
            if changed != text.text:
                yield (text.channel.path, text.channel.inner, text.text), changed


def _messages(texts: Sequence[CollectedText]) -> list[_Message]:
    """Return the messages of an answer, what the model says and calls last: one for each of its choices."""
    beside: list[_Message] = []
    spoken: dict[Path, _Message] = {}
    for text in texts:
        channel = text.channel
        if not text.text or channel.kind is ChannelKind.ECHO:
            continue
        if channel.kind not in _SAID and channel.kind is not ChannelKind.ARGUMENTS:
            item = {"role": "assistant", "content": text.text}
            beside.append(_Message(item, [(("content",), text)]))
            continue
        choice = channel.path[:2] if channel.path[0] == "choices" else ()
        message = spoken.setdefault(choice, _Message({"role": "assistant", "content": []}, []))
        place: Path = ("content", len(message.item["content"]))
        if channel.kind in _SAID:
            message.item["content"].append({"type": "text", "text": text.text})
            message.places.append(((*place, "text"), text))
        else:
            block, inner = _called(text)
            message.item["content"].append(block)
            message.places.append(((*place, *inner), text))
    return [*beside, *spoken.values()]


def _called(text: CollectedText) -> tuple[dict[str, Any], Path]:
    """Return a call of a tool with one text among its arguments, and where it stands."""
    pointer = text.channel.inner or "/value"
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    value: Any = text.text
    for step in reversed(steps):
        value = {step: value}
    return {"type": "tool_use", "id": "call", "name": text.channel.tool or "tool", "input": value}, (
        "input",
        *steps,
    )


def _texts_of(family: ApiFamily, operation: Operation, body: bytes) -> list[CollectedText]:
    texts = CollectedTexts()
    stream = family.stream(operation, texts)
    stream.feed(body)
    stream.end(died=False)
    return texts.texts


def _rewritten(
    family: ApiFamily, operation: Operation, body: bytes, changes: Mapping[TextPlace, str]
) -> bytes:
    stream = family.stream(operation, RewrittenTexts(changes))
    return stream.feed(body) + stream.end(died=False)
