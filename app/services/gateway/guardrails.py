"""Check and change texts for a gateway that users already have, which calls the model itself."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, Decision
from app.core.content.handles import Handle, Original, StreamScanner
from app.core.content.shapes.definitions import REQUEST_TYPE
from app.core.contracts.policy import Policy
from app.core.request import RequestInfo
from app.core.strictjson import dumps, loads
from app.services.gateway.pipeline_use import BOTH_REDACTIONS, PipelineUse, end_of
from app.services.gateway.seen_texts import SeenTexts
from app.services.invoke.invoke import InvokeService

_ACTION: Final = "guardrail.check"
_RESTORE: Final = "guardrail.restore"
_SCOPE: Final = b"guardrail scope\0"
_SEEN: Final = b"guardrail text\0"


@dataclass(frozen=True, slots=True)
class GuardrailCheck:
    """What one call of a gateway holds: texts, and beside them messages and definitions of tools, None where not sent.

    ``conversation`` are the gateway's own words for whose conversation it is; the same words meet the same handles.
    """

    conversation: Sequence[str]
    texts: Sequence[str] = ()
    messages: Sequence[Any] | None = None
    tools: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True)
class GuardrailTexts:
    """The resulting texts; ``held_back``: how many characters at the end of each text may still change."""

    texts: list[str]
    messages: list[Any] | None = None
    tools: list[Any] | None = None
    held_back: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GuardrailService:
    """Hides what goes to a model, and restores what comes from it, for gateways that ask for texts only."""

    invoke: InvokeService
    seen: SeenTexts

    async def hidden(self, caller: Caller, check: GuardrailCheck, info: RequestInfo) -> GuardrailTexts:
        """Return the texts with handles; those that this conversation has shown before are not scanned again.

        Raises what a middleware of the policy refuses, such as BlockedByPolicyError.
        """
        async with self.invoke.audit.refusals(caller, _ACTION, info):
            caller.require(Role.INVOKER)
        version, policy = await self.invoke.policies.get(caller.tenant)
        scope, until = self._scope(caller, check), end_of(policy)
        items: list[Any] = [{"role": "user", "content": text} for text in check.texts]
        items += check.messages or ()
        if check.tools is not None:
            items.append({"type": REQUEST_TYPE, "members": {"tools": list(check.tools)}})
        raw = list(map(dumps, items))
        digests = [self._digest(caller, scope, version, item) for item in raw]
        seen = await self.seen.open(caller.tenant, scope)
        new = {digest: item for digest, item in zip(digests, items, strict=True) if digest not in seen.items}
        async with self.invoke.traffic.turn(caller.tenant, policy.limits, until):
            changed = await self._redacted(caller, list(new.values()), scope, policy, version, info, until)
        became = dict(zip(new, changed, strict=True))
        if not new:
            await self._record(caller, info, version, scope, _ACTION, {"unchanged": len(items)}, "allow")
        else:
            before = dict(zip(digests, raw, strict=True))
            after = {digest: dumps(item) for digest, item in became.items()}
            await self.seen.keep(
                seen, {digest: None if item == before[digest] else item for digest, item in after.items()}
            )
        done = [
            became[digest] if digest in became else _as_before(seen.items[digest], item)
            for digest, item in zip(digests, items, strict=True)
        ]
        texts, rest = done[: len(check.texts)], done[len(check.texts) :]
        tools = rest.pop()["members"]["tools"] if check.tools is not None else None
        return GuardrailTexts(
            texts=[item["content"] for item in texts],
            messages=rest if check.messages is not None else None,
            tools=tools,
        )

    async def _redacted(
        self,
        caller: Caller,
        items: list[Any],
        scope: str,
        policy: Policy,
        version: int,
        info: RequestInfo,
        until: float,
    ) -> list[Any]:
        if not items:
            return []
        use = PipelineUse(
            invoke=self.invoke,
            outcomes=self.invoke.outcomes,
            caller=caller,
            policy=policy,
            policy_version=version,
            info=info,
            until=until,
            action=_ACTION,
        )
        return await use.run(BOTH_REDACTIONS, items, scope)

    async def restored(self, caller: Caller, check: GuardrailCheck, info: RequestInfo) -> GuardrailTexts:
        """Return the texts with originals, for a caller with the role restorer; for others they stay.

        A text may be the beginning of one that still grows: its restored form begins with all that was certain of any
        shorter beginning. The reading is on record before this returns.
        """
        async with self.invoke.audit.refusals(caller, _RESTORE, info):
            caller.require(Role.INVOKER)
        version, policy = await self.invoke.policies.get(caller.tenant)
        async with self.invoke.traffic.turn(caller.tenant, policy.limits, math.inf):
            scope = self._scope(caller, check)
            scans = [_scanned(text) for text in check.texts]
            handles = {
                handle
                for scan in scans
                for _, handle, active in (*scan[0], *scan[1])
                if handle and not active
            }
            originals: Mapping[Handle, Original] = {}
            if Role.RESTORER in caller.roles and handles:
                allowed = policy.secrets.restorable(handles, caller)
                originals = await self.invoke.vault.read(caller, scope, allowed)
        certain = [_written(scan[0], originals) for scan in scans]
        rest = [_written(scan[1], originals) for scan in scans]
        if originals:
            await self._record(caller, info, version, scope, _RESTORE, {"restored": len(originals)}, "change")
        return GuardrailTexts(
            texts=[begin + end for begin, end in zip(certain, rest, strict=True)],
            held_back=[len(end) for end in rest],
        )

    async def _record(
        self,
        caller: Caller,
        info: RequestInfo,
        version: int,
        scope: str,
        action: str,
        counts: Mapping[str, int],
        decision: Decision,
    ) -> None:
        audit = self.invoke.audit
        event = audit.new_event(
            caller,
            action,
            OUTCOME_OK,
            info,
            policy_version=version,
            scope_ref=audit.scope_ref(caller.tenant, scope),
            counts=dict(counts),
            decision=decision,
        )
        await audit.record(event)

    def _scope(self, caller: Caller, check: GuardrailCheck) -> str:
        """Return the scope of a conversation: of this key alone, and of a name that nobody can guess."""
        words = dumps([caller.key_id, caller.end_user, *check.conversation])
        return f"guardrail-{self.invoke.audit.digest(caller.tenant, _SCOPE + words)[:40]}"

    def _digest(self, caller: Caller, scope: str, version: int, item: bytes) -> str:
        words = dumps([scope, version])
        return self.invoke.audit.digest(caller.tenant, _SEEN + words + item)


def _as_before(became: bytes | None, item: Any) -> Any:
    return item if became is None else loads(became)


_Pieces = Sequence[tuple[str, Handle | None, bool]]


def _scanned(text: str) -> tuple[_Pieces, _Pieces]:
    """Return the pieces of a text that are certain, and those that more text may still change."""
    scanner = StreamScanner(positions=True)
    return scanner.feed(text), scanner.finish()


def _written(pieces: _Pieces, originals: Mapping[Handle, Original]) -> str:
    return "".join(
        text if handle is None or active or handle not in originals else originals[handle].at(0)
        for text, handle, active in pieces
    )
