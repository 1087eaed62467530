"""Calls that wait for their client: a server asked in the middle of a call, and the client is asked by a result.

A client of revision 2026-07-28 takes no requests. What a server of the handshake revision asks it becomes an
``input_required`` result; the call waits in this process until the client sends the answers.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.access import Caller
from app.core.background import ended
from app.core.errors import InvalidArgumentsError, OverloadedError
from app.core.strictjson import dumps
from app.core.upstream import UpstreamError
from app.protocol.wire.asking import ANSWER_S
from app.protocol.wire.exchange import Context, exchange_of

STATE_PREFIX: Final = "dev.sluice/waiting."
_ANSWERS: Final = frozenset({"inputResponses", "requestState", "_meta"})
_MOST = 1024
_MOST_OF_ONE = 32
_MOST_QUESTIONS = 64
_CANCELLED: Final = -32800
_TOO_MANY: Final = -32603


def continues(params: Mapping[str, Any]) -> bool:
    """Return whether a request brings the answers to a call that waits."""
    state = params.get("requestState")
    return isinstance(state, str) and state.startswith(STATE_PREFIX)


@dataclass(eq=False, slots=True)
class Parked:
    """One call under way; ``context`` is the request of the client's that waits for it now."""

    owner: tuple[str, str]
    what: str
    context: Context
    task: "asyncio.Task[dict[str, Any]] | None" = None
    waiting: dict[str, tuple[dict[str, Any], "asyncio.Future[Mapping[str, Any]]"]] = field(
        default_factory=dict
    )
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    questions: int = 0
    expiry: asyncio.TimerHandle | None = None

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the client's answer, which comes with another request of it."""
        self.questions += 1
        if self.questions > _MOST_QUESTIONS:
            raise UpstreamError(_TOO_MANY, "This call asked its client too often.")
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        key = f"question-{self.questions}"
        self.waiting[key] = {"method": method, "params": dict(params)}, answer
        self.asked.set()
        try:
            return await answer
        finally:
            # Also where the server gave the question up.
            self.waiting.pop(key, None)
            if not self.waiting:
                self.asked.clear()

    def answered(self, responses: Any) -> None:
        """Hand over the answers that came; a question without one is asked again."""
        answers = responses if isinstance(responses, Mapping) else {}
        for key, (_, answer) in list(self.waiting.items()):
            if isinstance(answers.get(key), Mapping) and not answer.done():
                answer.set_result(answers[key])
                self.waiting.pop(key)
        if not self.waiting:
            self.asked.clear()


Work = Callable[[Parked], Awaitable[dict[str, Any]]]


@dataclass(eq=False, slots=True)
class Parking:
    """The waiting calls of this process, each under a state that only its caller can use, and only once."""

    wait_s: float = ANSWER_S
    _parked: dict[str, Parked] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return how many calls wait."""
        return len(self._parked)

    async def run(self, context: Context, params: Mapping[str, Any], work: Work) -> dict[str, Any]:
        """Begin ``work``, or go on with the call that ``requestState`` names; return its result or its questions."""
        if continues(params):
            parked = self._resumed(context, params, params["requestState"])
        else:
            parked = Parked(_owner(exchange_of(context).caller), _digest(context.method, params), context)
            parked.task = asyncio.ensure_future(work(parked))
            parked.task.add_done_callback(_noted)
        return await self._outcome(parked)

    def _resumed(self, context: Context, params: Mapping[str, Any], state: str) -> Parked:
        parked = self._parked.get(state)
        caller = exchange_of(context).caller
        # Unknown, expired and another caller's look the same.
        if parked is None or parked.owner != _owner(caller):
            raise InvalidArgumentsError(
                "No call waits under this requestState here: its time is over, or another process has it. "
                "Send the request again from the start.",
                details={"pointer": "/requestState"},
            )
        if parked.what != _digest(context.method, params):
            raise InvalidArgumentsError(
                "The request is another one than the call that waits under this requestState.",
                details={"pointer": "/requestState"},
            )
        self._release(state)
        parked.context = context
        parked.answered(params.get("inputResponses"))
        return parked

    async def _outcome(self, parked: Parked) -> dict[str, Any]:
        task = parked.task
        assert task is not None  # noqa: S101 - a call that waits has begun
        try:
            while not task.done():
                question = asyncio.ensure_future(parked.asked.wait())
                try:
                    await asyncio.wait({task, question}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    question.cancel()
                if parked.waiting and not task.done():
                    return self._park(parked)
            return task.result()
        except BaseException:
            await ended(task)
            raise

    def _park(self, parked: Parked) -> dict[str, Any]:
        mine = sum(waiting.owner == parked.owner for waiting in self._parked.values())
        if len(self._parked) >= _MOST or mine >= _MOST_OF_ONE:
            raise OverloadedError("Too many calls wait for answers of their clients now.", retry_after_s=30.0)
        state = f"{STATE_PREFIX}{secrets.token_urlsafe(32)}"
        self._parked[state] = parked
        parked.expiry = asyncio.get_running_loop().call_later(self.wait_s, self._expire, state)
        requests = {key: request for key, (request, _) in parked.waiting.items()}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": state}

    def _release(self, state: str) -> Parked:
        parked = self._parked.pop(state)
        if parked.expiry is not None:
            parked.expiry.cancel()
        return parked

    def _expire(self, state: str) -> None:
        parked = self._release(state)
        if parked.task is not None:
            parked.task.cancel()

    async def close(self) -> None:
        """Give up all calls that wait: the process is about to stop."""
        tasks = [parked.task for parked in self._parked.values() if parked.task is not None]
        for state in list(self._parked):
            self._expire(state)
        await asyncio.gather(*tasks, return_exceptions=True)


def _noted(task: "asyncio.Task[dict[str, Any]]") -> None:
    """Take note of how a call ended that nobody may wait for any more."""
    if not task.cancelled():
        task.exception()


def _owner(caller: Caller) -> tuple[str, str]:
    return caller.tenant, caller.key_id


def _digest(method: str, params: Mapping[str, Any]) -> str:
    """Return a digest of what is asked for, without what differs between the tries of one request."""
    asked = {name: params[name] for name in sorted(params) if name not in _ANSWERS}
    return hashlib.sha256(dumps([method, asked])).hexdigest()
