"""Requests that take long end with their credential: it is looked at again while they are served."""

import asyncio
import math
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from starlette.types import Scope

from app.core.access import Caller
from app.core.errors import ForbiddenError, ServiceError, UnauthenticatedError
from app.edge.facts import RequestFacts, facts_of
from app.edge.lifespan_state import CallerGate
from app.edge.limits import Headers
from app.edge.observability import log_bug
from app.edge.surfaces import ForeignSurface

RECHECK_S: Final = 30.0
"""How long what has begun may go on after its credential has ended."""


@dataclass(slots=True)
class WatchedRequest:
    """A request while ``task`` serves it; ``gate`` and ``surface`` say whose it is.

    ``ended``: its credential counts no more, and so the task is cancelled.
    """

    task: asyncio.Task[Any] | None
    scope: Scope
    gate: CallerGate
    surface: ForeignSurface | None
    ended: bool = field(default=False, init=False)
    watcher: asyncio.Task[None] | None = field(default=None, init=False)

    def check_ended(self) -> None:
        """Turn a cancellation into UnauthenticatedError where it is the end of the credential, and no other's too."""
        if self.ended and self.task is not None and self.task.uncancel() == 0:
            raise UnauthenticatedError("The key or token of this request counts no more.") from None


def watch(request: WatchedRequest, every_s: float) -> None:
    """Begin to look at the credential of a request, now and every ``every_s`` seconds; ``watcher`` is the task."""
    request.watcher = asyncio.get_running_loop().create_task(_end_with_credential(request, every_s))


async def _end_with_credential(request: WatchedRequest, every_s: float) -> None:
    facts, surface, raw = facts_of(request.scope), request.surface, request.scope["headers"]
    caller = facts.caller
    if caller is None or facts.ends_itself:
        return
    key = Headers(raw).bearer if surface is None else surface.credential(raw)
    if await still_counts(request.gate, key, facts, caller):
        await until_ended(request.gate, key, facts, caller, every_s)
    if request.task is not None:
        request.ended = facts.is_cut = True
        request.task.cancel()


async def until_ended(
    gate: CallerGate, key: str | None, facts: RequestFacts, caller: Caller, every_s: float
) -> None:
    """Return once ``key`` is found to count no more, or to give less than ``caller`` has; it is tried at intervals."""
    while True:
        await asyncio.sleep(every_s)
        if not await still_counts(gate, key, facts, caller):
            return


async def still_counts(gate: CallerGate, key: str | None, facts: RequestFacts, caller: Caller) -> bool:
    """Return whether ``key`` still gives all that ``caller`` has; while nobody can say, it does."""
    try:
        now = await gate.authenticate(key, facts.address)
        if facts.end_users:
            now = await gate.acting(now, facts.end_users, facts.info(math.inf))
    except (UnauthenticatedError, ForbiddenError):
        return False
    except ServiceError:
        return True  # the database or the issuer is away: it will say when it is back
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody goes on unseen
        log_bug(structlog.get_logger("sluice"), error, facts.request_id)
        return False
    return now.covers(caller)
