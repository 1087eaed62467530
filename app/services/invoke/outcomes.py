"""Turn a middleware's outcome into an answer: apply masks, store or resolve handles, and record the call."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.content.context import Context
from app.core.content.handles import HANDLES_LEFT, Handle, Original, count_handles
from app.core.content.text_edits import PendingConceal, PendingMask
from app.core.contracts.engines import EngineReport, Masker
from app.core.contracts.middleware import Outcome, VaultOptions
from app.core.contracts.policy import Policy, SecretPolicy
from app.core.offload import LIGHT, off_loop
from app.services.audit.audit import AuditService
from app.services.invoke.calls import MiddlewareCall
from app.services.vault.vault import VaultReceipt, VaultWrite

_HASH_KEY = b"key of the mode hash"
_USER_DIGITS = 32


@dataclass(frozen=True, slots=True)
class InvokeAnswer:
    """The transformed context in the shape of the input, and metadata about what was done.

    ``encoded`` is ``content`` as JSON, empty where the record did not need it.
    """

    content: list[Any]
    metadata: dict[str, Any]
    encoded: bytes = field(default=b"", compare=False, repr=False)


class HandleVault(Protocol):
    """The part of ``VaultService`` that gives handles and originals; a door may narrow it for one request."""

    async def commit(self, caller: Caller, write: VaultWrite) -> VaultReceipt:
        """Assign every original its handle and store all of them with the events, durably, or nothing."""
        ...

    async def read(self, caller: Caller, scope: str, handles: Iterable[Handle]) -> dict[Handle, Original]:
        """Return the originals of ``handles``; unknown ones are absent."""
        ...

    async def known(self, caller: Caller, scope: str, handles: Iterable[Handle]) -> set[Handle]:
        """Return those of ``handles`` that stay in a text as they are."""
        ...


@dataclass(frozen=True, slots=True)
class OutcomeRecorder:
    """Turns the outcome of a middleware into a recorded answer."""

    vault: HandleVault
    audit: AuditService
    masker: Masker

    async def stored(self, outcome: Outcome, policy: Policy, call: MiddlewareCall) -> InvokeAnswer:
        """Return the answer of one middleware; handles and the audit event are stored together or not at all."""
        options = outcome.vault
        require_role(call.acting, options)
        call.counts, call.details = dict(outcome.counts), outcome.audit_details
        metadata = dict(outcome.metadata)
        if outcome.engine is not None:
            add_engine(metadata, outcome.engine)
            call.engines[call.middleware or ""] = str(outcome.engine)
            if outcome.engine.degraded:
                call.details = {**call.details, "degraded": True, "engine": outcome.engine.name}
        if outcome.keep_content and policy.audit_content:
            call.sealed = await self.audit.seal(call.caller.tenant, call.input_json)
        context = await self.masked(outcome.context, call.acting)
        if context.skipped:
            metadata["skipped"] = sum(context.skipped.values())
        if options.conceals:
            outcome = replace(outcome, context=context, metadata=metadata)
            answer = await self._store_concealed(outcome, policy, call)
        else:
            answer = await self._record_revealed(context, options.scope, metadata, policy.secrets, call)
        call.recorded()
        return answer

    async def masked(self, context: Context, caller: Caller) -> Context:
        """Return ``context`` with its irreversible replacements applied; hashes use the tenant's own key."""
        pending = context.masks
        if not pending:
            return context
        texts: dict[PendingMask, str] = {}
        for mode in sorted({mask.mode for mask in pending}):
            masks_of_mode = [mask for mask in pending if mask.mode == mode]
            if mode == "digest":
                texts.update({mask: self._user_digest(caller.tenant, mask.text) for mask in masks_of_mode})
                continue
            key = self.audit.digest(caller.tenant, _HASH_KEY).encode() if mode == "hash" else None
            replacements = await self.masker.apply_operator(
                mode, [(mask.label, mask.text) for mask in masks_of_mode], key
            )
            texts.update(zip(masks_of_mode, replacements, strict=True))
        return context.masked(texts)

    def _user_digest(self, tenant: str, user: str) -> str:
        """Return the pseudonym of an end user: the same in all scopes of a tenant, and safe as an id."""
        return f"user_{self.audit.user_ref(tenant, user)[:_USER_DIGITS]}"

    async def kept(self, pending: Sequence[PendingConceal], scope: str | None, caller: Caller) -> set[Handle]:
        """Return the handles in the text that the scope knows, which stay as they are."""
        handles = {conceal.keep for conceal in pending if conceal.keep is not None}
        return await self.vault.known(caller, scope, handles) if handles and scope is not None else set()

    async def revealed(
        self, context: Context, scope: str, metadata: dict[str, Any], caller: Caller, secrets: SecretPolicy
    ) -> tuple[Context, int]:
        """Return ``context`` with the originals that the scope knows, and their number; the caller may restore."""
        reveals = context.reveals
        originals = await self.vault.read(caller, scope, secrets.restorable(reveals, caller))
        missing = sum(handle not in originals for handle in reveals)
        metadata["unresolved"] = metadata.get("unresolved", 0) + missing
        left = missing + sum(
            count_handles(originals[handle].text) for handle in reveals if handle in originals
        )
        if left:
            metadata[HANDLES_LEFT] = metadata.get(HANDLES_LEFT, 0) + left
        return context.resolved({}, originals), len(reveals) - missing

    async def _store_concealed(self, outcome: Outcome, policy: Policy, call: MiddlewareCall) -> InvokeAnswer:
        caller, context, options = call.acting, outcome.context, outcome.vault
        pending = await off_loop(len(call.input_json) // LIGHT, _conceals, context)
        kept = await self.kept(pending, options.scope, caller)
        wanted = [conceal for conceal in pending if conceal.keep is None or conceal.keep not in kept]
        final: list[InvokeAnswer] = []

        def events(receipt: VaultReceipt) -> Sequence[AuditEvent]:
            handles: dict[Any, Handle | None] = dict.fromkeys(pending)
            handles.update(zip(wanted, receipt.handles, strict=True))
            content = context.resolved(handles, {}).to_json()
            named = [
                (handle, conceal.original.text) for conceal, handle in handles.items() if handle is not None
            ]
            metadata = {**outcome.metadata, **redactions(named, receipt.scope, options)}
            event = call.event(OUTCOME_OK, out=content, scope=receipt.scope)
            final[:] = [InvokeAnswer(content, metadata, call.output_json)]
            return [event]

        call.details = {**call.details, "mapping_returned": options.return_mapping}
        originals = [(conceal.label, conceal.original) for conceal in wanted]
        ttl_s = options.ttl_s or policy.scope_ttl_s
        write = VaultWrite(options.scope, originals, options, events, ttl_s, len(call.input_json) // LIGHT)
        await self.vault.commit(caller, write)
        return final[0]

    async def _record_revealed(
        self,
        context: Context,
        scope: str | None,
        metadata: dict[str, Any],
        secrets: SecretPolicy,
        call: MiddlewareCall,
    ) -> InvokeAnswer:
        if scope is not None:
            context, restored = await self.revealed(context, scope, metadata, call.acting, secrets)
            call.counts = {
                **call.counts,
                "restored": call.counts.get("restored", 0) + restored,
                "unresolved": metadata["unresolved"],
            }
        content = await off_loop(len(call.input_json) // LIGHT, context.to_json)
        await self.audit.record(call.event(OUTCOME_OK, out=content, scope=scope))
        return InvokeAnswer(content, metadata, call.output_json)


def require_role(caller: Caller, options: VaultOptions) -> None:
    """Refuse a caller without the role for what a middleware does with the vault."""
    caller.require(Role.RESTORER if options.restores or options.return_mapping else Role.INVOKER)


def add_engine(metadata: dict[str, Any], engine: EngineReport) -> None:
    """Add the engine that decided to ``metadata``."""
    metadata["engine"] = {"name": engine.name, "version": engine.version, "degraded": engine.degraded}
    if engine.degraded:
        metadata["degraded"] = True


def redactions(named: Sequence[tuple[Handle, str]], scope: str, options: VaultOptions) -> dict[str, Any]:
    """Return the metadata of new handles: a list without originals, or a map to them where it was requested."""
    texts = {str(handle.name): (handle, text) for handle, text in named}
    listed: Any = [{"handle": name, "type": handle.label.lower()} for name, (handle, _) in texts.items()]
    if options.return_mapping:
        listed = {name: text for name, (_, text) in texts.items()}
    return {"redactions": listed, "scope": scope}


def _conceals(context: Context) -> list[PendingConceal]:
    return context.conceals
