"""An answer of a provider on its way to the caller: handles become originals, whole or while it streams."""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from json import JSONDecoder
from typing import Any, Final, Protocol

from app.core.content.handles import Handle
from app.core.contracts.gateway_policy import GatewayPolicy
from app.core.errors import (
    InvalidArgumentsError,
    InvalidRequestError,
    ServiceError,
    TooLargeError,
    UpstreamUnavailableError,
)
from app.core.gateway.answers import GatewayAnswer
from app.core.gateway.channels import ChannelKind, TextChannel, ToolRunner
from app.core.gateway.kinds import Operation, ProviderKind
from app.core.gateway.offsets import OffsetMap
from app.core.gateway.providers import ProviderEntry
from app.core.gateway.restoring import HandleRestoration
from app.core.gateway.signed_blocks import SignedBlock
from app.core.offload import LIGHT, off_loop
from app.services.gateway.answer_checks import AnswerChecks
from app.services.gateway.model_lists import named_as
from app.services.gateway.records import GatewayRecord
from app.services.gateway.request_vaults import RequestVault
from app.services.gateway.scopes import GatewayScopes
from app.services.gateway.signed_reasoning import SignedBlocks
from app.upstream.providers.requests import ProviderAnswer

SCOPE: Final = "X-Sluice-Scope"
UNSCANNED: Final = "X-Sluice-Unscanned"
_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
_USAGE: Final = b'"usage"'
_LONGEST_USAGE: Final = 2_000
_MODEL: Final = "models.get"
_DELETES: Final = ".delete"


class AnswerReport(Protocol):
    """What an answer or a stream reports beside its texts."""

    @property
    def usage(self) -> Mapping[str, Any]:
        """Return the provider's numbers of tokens."""
        ...

    @property
    def ids(self) -> Mapping[str, str]:
        """Return the ids of the answer and its conversation."""
        ...

    @property
    def notes(self) -> Mapping[str, int]:
        """Return how often something was left out, by what it was."""
        ...


@dataclass(frozen=True, slots=True)
class DoorAnswer:
    """Status, headers and body for the caller; ``streams``: the chunks come one by one, without a length."""

    status: int
    headers: Sequence[tuple[str, str]]
    chunks: AsyncIterator[bytes]
    streams: bool = False


@dataclass(slots=True)
class AnswerRun:
    """One answer; nothing of it goes out before what must be on record, sealed or bound is."""

    kind: ProviderKind
    operation: Operation
    record: GatewayRecord
    scopes: GatewayScopes
    signed: SignedBlocks
    vault: RequestVault
    entry: ProviderEntry
    restoration: HandleRestoration | None
    checks: AnswerChecks | None = None
    documents: Sequence[OffsetMap] = ()
    model: str | None = None
    answer: ProviderAnswer = field(init=False)
    complete: bool = field(default=False, init=False)
    _announced: bool = field(default=False, init=False)
    _held: bool = field(default=False, init=False)
    _bound: dict[str, str] = field(default_factory=dict, init=False)

    async def begun(self, answer: ProviderAnswer) -> DoorAnswer:
        """Return the head of the answer, with its body or with the stream that will be its body."""
        self.answer, family = answer, self.operation.family
        if answer.status < HTTPStatus.BAD_REQUEST and self._media_type == _EVENTS:
            return await self._stream()
        if family is None or answer.status >= HTTPStatus.BAD_REQUEST:
            return await self._passed_on()
        body = await answer.whole()
        if self.operation.answers and body and self._media_type == _JSON:
            body = await self._restored(body)
        elif self._media_type == _JSON:
            self.record.usage = _usage_in(body)
        return self._whole(body)

    async def _passed_on(self) -> DoorAnswer:
        """Return an answer without texts, or an error, as it came."""
        body = await self.answer.whole()
        if self.operation.name == _MODEL and self.model is not None:
            body = named_as(body, self.model, self.operation.ids["model"])
        if self.operation.name.endswith(_DELETES) and self.answer.status < HTTPStatus.BAD_REQUEST:
            # The last id of a path is what was deleted.
            await self.scopes.unbind(self.record.caller, list(self.operation.ids.values())[-1:])
        return self._whole(body)

    @property
    def _media_type(self) -> str:
        values = [value for name, value in self.answer.headers if name.lower() == "content-type"]
        return values[0].partition(";")[0].strip().lower() if values else ""

    def _headers(self) -> list[tuple[str, str]]:
        return _answer_headers(self.kind, self.answer.headers, self.record)

    async def _stream(self) -> DoorAnswer:
        """Return a stream: event by event, or held back until the policy's checks have seen it whole."""
        family, checks = self.operation.family, self.checks
        chunks = self._raw_events()
        if family is not None and family.streams is not None:
            if checks is None:
                chunks = self._events(counted=True)
            else:
                name = self.vault.scope.name
                self._held = True
                body = await checks.passed_stream(self._events(), family, self.operation, name)
                await self._announce()
                self.complete = False  # it is whole, and has yet to be sent
                chunks = self._one(body)
        return DoorAnswer(self.answer.status, self._headers(), chunks, streams=True)

    async def _raw_events(self) -> AsyncIterator[bytes]:
        """Yield a stream as it comes."""
        try:
            async with aclosing(self.answer.chunks()) as chunks:
                async for chunk in chunks:
                    self._left(chunk)
                    yield chunk
        except ServiceError as error:
            self.record.error_code = error.code
            raise
        self.complete = True

    def _whole(self, body: bytes) -> DoorAnswer:
        headers = [(name, value) for name, value in self._headers() if name.lower() != "content-length"]
        return DoorAnswer(self.answer.status, [*headers, ("Content-Length", str(len(body)))], self._one(body))

    async def _one(self, body: bytes) -> AsyncIterator[bytes]:
        self._left(body)
        self.complete = True
        if body:
            yield body

    async def _restored(self, body: bytes) -> bytes:
        """Return a whole answer with originals in place of handles."""
        family, operation = self.operation.family, self.operation
        restoration = self.restoration
        if family is None:
            return body
        try:
            came = await off_loop(len(body) // LIGHT, family.answer, operation, body, self.documents)
        except (InvalidRequestError, TooLargeError, UpstreamUnavailableError):
            if self.record.observed:
                return body
            # Not the parser's own error, which blames the caller's request: the provider's answer is faulty.
            raise self._faulty("is not valid JSON") from None
        changed = came
        if restoration is not None:
            changed = await off_loop(len(body) // LIGHT, changed.rewritten, restoration)
        if self.checks is not None:  # they read what the caller would
            changed = await self._checked(self.checks, changed)
        await self._secure(came.signed, replace(came, notes=changed.notes))
        return changed.to_bytes()

    async def _checked(self, checks: AnswerChecks, answer: GatewayAnswer) -> GatewayAnswer:
        try:
            return await checks.passed(answer, self.vault.scope.name)
        except InvalidArgumentsError:
            if await off_loop(len(answer.edited.body.text) // LIGHT, _has_form, answer):
                raise
            raise self._faulty("has another form than its API says") from None

    def _faulty(self, what: str) -> UpstreamUnavailableError:
        return UpstreamUnavailableError(
            f"The provider's answer {what}, so nothing of it was passed on.",
            details={"provider": self.entry.name},
        )

    async def _events(self, *, counted: bool = False) -> AsyncIterator[bytes]:
        """Yield a stream with originals in place of handles, each event as soon as it may go.

        ``counted``: they go to the caller as they are.
        """
        family, died = self.operation.family, False
        if family is None:
            return
        # Without restoration the texts stay, but what the answer tells is bound, sealed and counted all the same.
        stream = family.stream(self.operation, self.restoration or _unchanged, self.documents)
        try:
            async with aclosing(self.answer.chunks()) as chunks:
                async for chunk in chunks:
                    out = stream.feed(chunk)
                    await self._secure(stream.take_signed(), stream)
                    if out:
                        if counted:
                            self._left(out)
                        yield out
        except ServiceError as error:
            self.record.error_code, died = error.code, True
        out = stream.end(died=died or not (stream.ended or self.record.observed))
        await self._secure(stream.take_signed(), stream)
        self.complete = True
        if out:
            if counted:
                self._left(out)
            yield out

    async def _secure(self, signed: Collection[SignedBlock], report: AnswerReport) -> None:
        """Do what must be done before the next bytes go out: seal, bind, record."""
        if signed and not self.record.observed:
            await self.signed.keep(self.vault, {block.digest: block.raw.encode() for block in signed})
        if report.ids != self._bound:
            ids = {name: value for name, value in report.ids.items() if self._bound.get(name) != value}
            vault = self.vault
            await self.scopes.bind(
                self.record.caller, vault.scope, self.entry.name, list(ids.values()), vault.handles
            )
            self._bound.update(ids)
        if not self._held and not self._announced:
            await self._announce()
        self.record.usage, self.record.notes = report.usage, report.notes

    async def _announce(self) -> None:
        """Record, once, that originals go out, or what the checks have passed."""
        restores = self.restoration is not None and bool(self.restoration.restored)
        if not self._announced and (restores or self.record.steps):
            self._announced = True
            await self.record.releasing(restores=restores)

    def _left(self, chunk: bytes) -> None:
        self.record.begun()
        self.record.bytes_out += len(chunk)
        if self.restoration is not None and self.restoration.restorations != self.record.restored.total():
            self.record.restored = Counter(self.restoration.restored)


def _usage_in(body: bytes) -> Mapping[str, Any]:
    """Return the numbers of tokens in an answer without texts, of which only that part is read."""
    place = body.rfind(_USAGE)
    if place < 0:
        return {}
    text = body[place + len(_USAGE) :][:_LONGEST_USAGE].decode(errors="replace").lstrip(": \t\r\n")
    try:
        usage, _ = JSONDecoder().raw_decode(text)
    except ValueError:
        return {}
    return usage if isinstance(usage, dict) else {}


def _has_form(answer: GatewayAnswer) -> bool:
    """Return whether middlewares can read an answer."""
    try:
        return all(True for _ in answer.leaves())
    except InvalidArgumentsError:
        return False


def _unchanged(_channel: TextChannel) -> None:
    """Let the text of a channel pass as it is."""


def whole_answer(
    kind: ProviderKind, status: int, headers: Sequence[tuple[str, str]], body: bytes, record: GatewayRecord
) -> DoorAnswer:
    """Return an answer without texts, whose body is there."""
    passed = [each for each in _answer_headers(kind, headers, record) if each[0].lower() != "content-length"]

    async def chunks() -> AsyncIterator[bytes]:
        record.begun()
        record.bytes_out += len(body)
        yield body

    return DoorAnswer(status, [*passed, ("Content-Length", str(len(body)))], chunks())


def _answer_headers(
    kind: ProviderKind, headers: Sequence[tuple[str, str]], record: GatewayRecord
) -> list[tuple[str, str]]:
    own = [(UNSCANNED, str(record.unscanned))]
    if record.scope is not None:
        own.append((SCOPE, record.scope))
    return [*kind.headers.answer(headers), *own]


def restoration_of(policy: GatewayPolicy, arguments: Any, vault: RequestVault) -> HandleRestoration | None:
    """Return what puts originals into an answer; None without ``arguments``: the policy does not restore.

    ``arguments`` are those of ``pii_restoration``. Without a rule, tools of the client get originals that stand in the
    same request, those of the provider none; the ``tools`` of the arguments get all.
    """
    if arguments is None:
        return None
    met = frozenset(vault.handles)

    def allows(channel: TextChannel, handle: Handle) -> bool:
        if channel.kind is not ChannelKind.ARGUMENTS:
            return True
        rule = policy.restores(channel.tool or "", handle.label)
        if rule is not None:
            return rule
        if channel.tool in arguments.tools:
            return True
        return channel.runner is ToolRunner.CLIENT and Handle(handle.label, handle.ordinal) in met

    return HandleRestoration(vault.resolve, allows, exact=arguments.exact, safe=arguments.positions == "safe")
