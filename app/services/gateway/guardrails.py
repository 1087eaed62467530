"""Check and change texts for a gateway that users already have, which calls the model itself."""

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.content.handles import Handle, Original, StreamScanner
from app.core.content.shapes.definitions import REQUEST_TYPE
from app.core.contracts.policy import Policy
from app.core.request import RequestInfo
from app.core.strictjson import dumps
from app.services.gateway.pipeline_use import BOTH_REDACTIONS, PipelineUse, end_of
from app.services.invoke.invoke import InvokeService

_ACTION: Final = "guardrail.check"
_RESTORE: Final = "guardrail.restore"
_SCOPE: Final = b"guardrail scope\0"
_SEEN: Final = b"guardrail text\0"
_MOST_SEEN: Final = 50_000
_LONGEST_SEEN: Final = 16_384


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
    """What became of them; ``held_back``: how many characters at the end of each text may still change."""

    texts: list[str]
    messages: list[Any] | None = None
    tools: list[Any] | None = None
    held_back: list[int] = field(default_factory=list)


class SeenTexts:
    """What became of texts that were scanned before, by keyed digests: transcripts come whole with each turn."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()

    def get(self, digest: str) -> str | None:
        """Return what became of a text, or None."""
        text = self._texts.get(digest)
        if text is not None:
            self._texts.move_to_end(digest)
        return text

    def put(self, digest: str, text: str) -> None:
        """Keep what became of a text; the one used longest ago goes."""
        if len(text) > _LONGEST_SEEN:
            return
        self._texts[digest] = text
        while len(self._texts) > _MOST_SEEN:
            self._texts.popitem(last=False)


@dataclass(frozen=True, slots=True)
class GuardrailService:
    """Hides what goes to a model, and restores what comes from it, for gateways that ask for texts only."""

    invoke: InvokeService
    seen: SeenTexts = field(default_factory=SeenTexts)

    async def hidden(self, caller: Caller, check: GuardrailCheck, info: RequestInfo) -> GuardrailTexts:
        """Return the texts with handles; those that this conversation has shown before are not scanned again.

        Raises what a middleware of the policy refuses, such as BlockedByPolicyError.
        """
        async with self.invoke.audit.refusals(caller, _ACTION, info):
            caller.require(Role.INVOKER)
        version, policy = await self.invoke.policies.get(caller.tenant)
        scope, until = self._scope(caller, check), end_of(policy)
        digests = [self._digest(caller, scope, version, text) for text in check.texts]
        became = {digest: text for digest in digests if (text := self.seen.get(digest)) is not None}
        new = {
            digest: text for digest, text in zip(digests, check.texts, strict=True) if digest not in became
        }
        items: list[Any] = [{"role": "user", "content": text} for text in new.values()]
        items += check.messages or ()
        if check.tools is not None:
            items.append({"type": REQUEST_TYPE, "members": {"tools": list(check.tools)}})
        async with self.invoke.traffic.turn(caller.tenant, policy.limits, until):
            changed = await self._redacted(caller, items, scope, policy, version, info, until)
        texts = [item["content"] for item in changed[: len(new)]]
        for digest, text in zip(new, texts, strict=True):
            self.seen.put(digest, text)
        became.update(zip(new, texts, strict=True))
        rest = changed[len(new) :]
        tools = rest.pop()["members"]["tools"] if check.tools is not None else None
        return GuardrailTexts(
            texts=[became[digest] for digest in digests],
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
            await self._record(caller, info, version, scope, originals)
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
        originals: Mapping[Handle, Original],
    ) -> None:
        audit = self.invoke.audit
        event = audit.new_event(
            caller,
            _RESTORE,
            OUTCOME_OK,
            info,
            policy_version=version,
            scope_ref=audit.scope_ref(caller.tenant, scope),
            counts={"restored": len(originals)},
        )
        await audit.record(event)

    def _scope(self, caller: Caller, check: GuardrailCheck) -> str:
        """Return the scope of a conversation: of this key alone, and of a name that nobody can guess."""
        words = dumps([caller.key_id, caller.end_user, *check.conversation])
        return f"guardrail-{self.invoke.audit.digest(caller.tenant, _SCOPE + words)[:40]}"

    def _digest(self, caller: Caller, scope: str, version: int, text: str) -> str:
        words = dumps([scope, version, text])
        return self.invoke.audit.digest(caller.tenant, _SEEN + words)


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
