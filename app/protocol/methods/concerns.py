"""Methods of the concerns proposal, where a configuration comes from, and what of it filters a list."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_types import PaginatedRequestParams, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import StrictBool

from app.core.access import Caller, Role
from app.core.catalog.concern_configuration import Effective, requested_layer, updated, with_handshake
from app.core.catalog.concerns import MAX_CONCERNS
from app.protocol.methods.pagination import page
from app.protocol.wire.capabilities import VENDOR, Feature
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.primitives import Method
from app.protocol.wire.state import SESSION_META, SessionState, state_of
from app.services.access.sessions import SessionService
from app.services.catalog.concerns import ConcernService
from app.services.catalog.listing import Filter

CONCERNS: Final = "concerns"
"""The member of params, of capabilities and of what a session remembers."""

CONCERNS_KEY: Final = f"{VENDOR}concerns"
_POINTER: Final = "/_meta/dev.sluice~1concerns"
_USERS: Final = (Role.INVOKER, Role.RESTORER, Role.OPERATOR)


class UpdateParams(RequestParams):
    """Params of ``concerns/update``."""

    concerns: dict[str, Any]
    replace: StrictBool = False


@dataclass(frozen=True, slots=True)
class ConcernMethods:
    """Answers ``concerns/list`` and ``concerns/update``, also by the names that the proposal has for them."""

    concerns: ConcernService

    def methods(self) -> Mapping[str, Method]:
        """Return the methods by name."""
        listing = Method(PaginatedRequestParams, self._list)
        update = Method(UpdateParams, self._update)
        return {
            "concerns/list": listing,
            "listConcerns": listing,
            "concerns/update": update,
            "updateConcerns": update,
        }

    async def feature(self, caller: Caller) -> Feature | None:
        """Return the capability: what the caller's tenant declares; None where that is nothing."""
        declared = (await self.concerns.table(caller.tenant)).wire()
        return Feature(CONCERNS, declared, {CONCERNS: declared}) if declared else None

    async def _list(self, context: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        caller = exchange_of(context).caller
        caller.require(*_USERS)
        declared = (await self.concerns.table(caller.tenant)).wire()
        # All fit on one page, so the only thing to be told of a cursor is that it is not ours.
        shown, _ = page(declared, [concern["name"] for concern in declared], params.cursor, MAX_CONCERNS)
        result: dict[str, Any] = {CONCERNS: shown}
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            result |= {"ttlMs": 0, "cacheScope": "private"}
        return result

    async def _update(self, context: Context, params: UpdateParams) -> dict[str, Any]:
        caller = exchange_of(context).caller
        caller.require(*_USERS)
        update = requested_layer(params.concerns, f"/{CONCERNS}")
        definitions = (await self.concerns.table(caller.tenant)).definitions
        warnings: list[Mapping[str, str]] = []

        def change(preferences: Mapping[str, Any]) -> Mapping[str, Any]:
            before = preferences.get(CONCERNS, {})
            after, warnings[:] = updated(before, update, definitions, replace=params.replace)
            return {**preferences, CONCERNS: after}

        state = await state_of(context)
        await state.revise(change, publish=True)
        effective = await self.concerns.effective(caller, _remembered(state))
        result = {
            CONCERNS: dict(effective.configuration),
            "warnings": [dict(warning) for warning in warnings],
        }
        return result if state.handle is None else {**result, "_meta": {SESSION_META: state.handle}}


async def effective_concerns(context: Context, concerns: ConcernService) -> Effective:
    """Return what filters the lists of this request: its own ``_meta``, its session, the caller's preferences.

    A value that the request itself brings and its concern refuses is an InvalidArgumentsError, as is a handle
    that is not the caller's.
    """
    state = await state_of(context)
    meta = (context.params or {}).get("_meta")
    asked = (
        requested_layer(meta[CONCERNS_KEY], _POINTER)
        if isinstance(meta, Mapping) and CONCERNS_KEY in meta
        else None
    )
    return await concerns.effective(exchange_of(context).caller, _remembered(state), asked)


def concern_filter(effective: Effective) -> Filter | None:
    """Return what leaves primitives out of a list, None where nothing does."""
    if not effective.configuration:
        return None
    return Filter(f"concerns {effective.fingerprint}", lambda primitive: effective.lists(primitive.concerns))


def initial(raw: Any) -> dict[str, Any]:
    """Return what a new session remembers of the ``concerns`` in the params of its ``initialize``."""
    remembered = with_handshake({}, "initialize", raw)
    return {CONCERNS: remembered} if remembered else {}


async def note_initialized(
    sessions: SessionService, caller: Caller, session_id: str, params: Mapping[str, Any]
) -> None:
    """Let a session remember the ``concerns`` in the params of its ``notifications/initialized``."""
    raw = params.get(CONCERNS)
    if isinstance(raw, Mapping):
        await sessions.revise(
            caller,
            session_id,
            lambda preferences: {
                **preferences,
                CONCERNS: with_handshake(preferences.get(CONCERNS, {}), "initialized", raw),
            },
        )


def _remembered(state: SessionState) -> Mapping[str, Any]:
    configuration: Mapping[str, Any] = state.preferences.get(CONCERNS, {})
    return configuration
