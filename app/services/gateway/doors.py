"""The run of one request at a door: whose conversation, which provider, what leaves, and what the caller gets back."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final, cast

from app.core.access import Caller, Role
from app.core.contracts.gateway_policy import GatewayPipeline, GatewayPolicy
from app.core.contracts.policy import Policy
from app.core.errors import (
    BlockedByPolicyError,
    NotFoundError,
    UnscannableContentError,
)
from app.core.events import Changed
from app.core.gateway.credentials import ProviderCredential, check_head, credential_for
from app.core.gateway.offsets import OffsetMap
from app.core.gateway.providers import (
    ProviderEntry,
    ProviderKindName,
    choose_provider,
    provider_named,
)
from app.core.gateway.requests import NOTE, GatewayRequest
from app.core.gateway.restoring import HandleRestoration
from app.core.offload import LIGHT, off_loop
from app.core.request import RequestInfo
from app.services.gateway.answer_checks import AnswerChecks, HeldStreams, checks_of, evidence_of
from app.services.gateway.answers import AnswerRun, DoorAnswer, restoration_of, whole_answer
from app.services.gateway.door_requests import DoorRequest, hints, outgoing, read, scope_rules
from app.services.gateway.model_lists import LISTS, ModelLists
from app.services.gateway.opened_scopes import OpenedScopes
from app.services.gateway.outbound import Outbound
from app.services.gateway.pipeline_use import PipelineUse, end_of
from app.services.gateway.providers import ProviderService
from app.services.gateway.records import GatewayRecord
from app.services.gateway.request_vaults import RequestVault, RequestVaults
from app.services.gateway.scopes import ConversationScope, GatewayScopes, ScopeHints
from app.services.gateway.seen_texts import SeenTexts
from app.services.gateway.signed_reasoning import SignedBlocks
from app.services.invoke.invoke import InvokeService
from app.services.invoke.outcomes import OutcomeRecorder
from app.upstream.providers.requests import ProviderEndpoint

_STEPS: Final = "gateway.steps"


@dataclass(frozen=True, slots=True)
class _Destination:
    """The provider and model for a request; ``asked`` is the model that the caller named.

    ``bound`` is the provider that gave the ids in the request, None where it has none.
    """

    endpoint: ProviderEndpoint
    credential: ProviderCredential
    endpoints: Mapping[str, ProviderEndpoint]
    asked: str | None
    model: str | None
    bound: str | None
    caller_key: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What was decided about a request: the bytes that leave, where to, and what its answer may show."""

    body: bytes
    destination: "_Destination"
    vault: RequestVault
    restoration: HandleRestoration | None
    checks: AnswerChecks | None = None
    documents: Sequence[OffsetMap] = ()


@dataclass(frozen=True, slots=True)
class GatewayService:
    """Takes requests in the shape of a provider's API, hides what the policy hides, and restores the answers."""

    invoke: InvokeService
    providers: ProviderService
    scopes: GatewayScopes
    vaults: RequestVaults
    signed: SignedBlocks
    seen: SeenTexts
    """What other gateways showed before, for the doors that only check texts."""
    held_streams: HeldStreams = field(default_factory=HeldStreams)

    @classmethod
    def over(
        cls,
        invoke: InvokeService,
        providers: ProviderService,
        now: Callable[[], datetime],
        *,
        subscribe: Callable[[Callable[[Changed], None]], object],
    ) -> "GatewayService":
        """Return the service over the vault of ``invoke``; ``subscribe`` lets it hear of erasures and changes."""
        vault = invoke.vault
        opened = OpenedScopes(vault.database, vault.opener, now)
        seen = SeenTexts(vault.database, now)
        subscribe(opened.hear)
        subscribe(seen.hear)
        return cls(
            invoke=invoke,
            providers=providers,
            scopes=GatewayScopes(vault.database, vault, now),
            vaults=RequestVaults(vault, opened, now),
            signed=SignedBlocks(vault.database, vault.key_keeper, vault.default_ttl_s, now),
            seen=seen,
        )

    @asynccontextmanager
    async def answered(
        self, caller: Caller, incoming: DoorRequest, info: RequestInfo
    ) -> AsyncIterator[DoorAnswer]:
        """Send a request and hand out its answer; leaving the block ends the provider's request, too.

        Raises the errors of the services, each on record. Once the answer is handed out, its chunks raise only where
        something could not be recorded, sealed or bound.
        """
        record = GatewayRecord(self.invoke.audit, caller, info, incoming.operation.name)
        record.bytes_in = len(incoming.body)
        async with record.whole():
            caller.require(Role.INVOKER)
            check_head(incoming.headers, incoming.operation.path, incoming.query)
            record.policy_version, policy = await self.invoke.policies.get(caller.tenant)
            lane = f"gateway {incoming.kind.name}"
            most = policy.gateway.in_flight
            with self.invoke.traffic.forwarded(caller.tenant, lane, policy.limits, in_flight=most):
                turn = await self._prepared(caller, incoming, info, policy, record)
                await record.sending(turn.body)
                if incoming.operation.name == LISTS:
                    yield await self._models(incoming, turn, record)
                    return
                sending = self.providers.client.send(
                    turn.destination.endpoint,
                    outgoing(incoming, turn.destination.model, turn.body),
                    turn.destination.credential,
                )
                run = self._run(incoming, turn, record)
                # An answer may stream for long: what the request brought goes now, but for what its checks compare.
                del caller, incoming, info, policy, turn
                async with sending as answer:
                    record.status = answer.status
                    yield await run.begun(answer)
                    if not run.complete:
                        record.error_code = record.error_code or record.left

    def _run(self, incoming: DoorRequest, turn: _Turn, record: GatewayRecord) -> AnswerRun:
        if turn.checks is None:
            turn.vault.forget_texts()
        return AnswerRun(
            kind=incoming.kind,
            operation=incoming.operation,
            record=record,
            scopes=self.scopes,
            signed=self.signed,
            vault=turn.vault,
            entry=turn.destination.endpoint.entry,
            restoration=turn.restoration,
            checks=turn.checks,
            documents=turn.documents,
            model=turn.destination.model,
        )

    async def _models(self, incoming: DoorRequest, turn: _Turn, record: GatewayRecord) -> DoorAnswer:
        """Return the models of all providers of this kind as one list."""
        lists = ModelLists(
            client=self.providers.client,
            kind=incoming.kind,
            endpoints=turn.destination.endpoints,
            first=turn.destination.endpoint,
            credential=turn.destination.credential,
            request=outgoing(incoming, turn.destination.model, turn.body),
        )
        listed = await lists.listed()
        record.status = listed.status
        return whole_answer(incoming.kind, listed.status, listed.headers, listed.body, record)

    async def _prepared(
        self,
        caller: Caller,
        incoming: DoorRequest,
        info: RequestInfo,
        policy: Policy,
        record: GatewayRecord,
    ) -> _Turn:
        """Decide where a request goes, and turn it into the bytes that leave."""
        request = await read(incoming)
        scope = await self._scope(caller, incoming, request, policy)
        record.scope = scope.name
        vault = await self.vaults.open(caller, scope, partial(_texts, request), policy.secrets)
        destination = await self._chosen(caller, incoming, request, scope)
        use = PipelineUse(
            invoke=self.invoke,
            outcomes=OutcomeRecorder(vault, self.invoke.audit, self.invoke.masker),
            caller=caller,
            policy=policy,
            policy_version=record.policy_version or 0,
            info=info,
            until=end_of(policy),
            action=_STEPS,
            findings=record.findings,
            reports=record.steps,
        )
        if request is None:
            return await self._without_texts(incoming, use, vault, destination, record)
        record.streams, record.unscanned = request.facts.stream, sum(request.unscanned.values())
        if record.unscanned and policy.gateway.unscanned == "block":
            raise UnscannableContentError(
                "The request contains parts that cannot be scanned, and the policy of this tenant refuses those; leave "
                "out what the details count by kind.",
                details={"unscanned": request.unscanned},
            )
        outbound = Outbound(use, vault, self.signed)
        async with self.invoke.traffic.slot(
            caller.tenant, policy.limits, use.until, queue=policy.gateway.in_flight
        ):
            return await self._hidden(outbound, request, destination, record)

    async def _without_texts(
        self,
        incoming: DoorRequest,
        use: PipelineUse,
        vault: RequestVault,
        destination: "_Destination",
        record: GatewayRecord,
    ) -> "_Turn":
        """Return a request that leaves as it came, such as one for a stored answer."""
        terms, record.provider = use.policy.gateway, destination.endpoint.entry.name
        record.observed = terms.mode == "observe"
        if record.observed:
            return _Turn(incoming.body, destination, vault, None)
        pipeline = await _pipeline_of(use, destination)
        restoration = restoration_of(terms, use.restoration(pipeline), vault)
        return _Turn(incoming.body, destination, vault, restoration, self._checks(use, pipeline))

    def _checks(
        self, use: PipelineUse, pipeline: GatewayPipeline, request: GatewayRequest | None = None
    ) -> AnswerChecks | None:
        """Return what judges the answer to ``request``; None where the policy has it judged by nothing."""
        steps = checks_of(pipeline)
        if not steps:
            return None
        return AnswerChecks(
            use=use,
            steps=steps,
            streams=self.held_streams,
            evidence=evidence_of(request) if request is not None else (),
            refuses_streams=pipeline.streams == "refuse",
        )

    async def _scope(
        self, caller: Caller, incoming: DoorRequest, request: GatewayRequest | None, policy: Policy
    ) -> ConversationScope:
        """Return the scope of the conversation. An id of a provider decides, whatever else the request names."""
        named, rules = hints(incoming, request), scope_rules(policy, incoming.scope)
        if not named.ids:
            return await self.scopes.find(caller, named, rules)
        scope = await self.scopes.find(caller, ScopeHints(ids=named.ids), rules)
        if named.named not in {None, scope.name}:
            raise NotFoundError(
                "The conversation or response belongs to another scope than X-Sluice-Scope names; leave the header out."
            )
        return scope

    async def _hidden(
        self,
        outbound: Outbound,
        request: GatewayRequest,
        destination: "_Destination",
        record: GatewayRecord,
    ) -> "_Turn":
        """Return the request with handles, for the provider to which the policy routes it because of what was found."""
        policy, vault, came = outbound.use.policy.gateway, outbound.vault, request
        asked, record.observed = request.facts.model, policy.mode == "observe"
        pipeline = await _pipeline_of(outbound.use, destination)
        if policy.routes and not record.observed:
            # What is found decides where the request goes, and that decides what is hidden from whom.
            await outbound.observed(request, pipeline.outbound)
            destination = self._routed(destination, policy, outbound.use.findings)
            pipeline = await _pipeline_of(outbound.use, destination)
            record.forget_steps()
        checks = self._checks(outbound.use, pipeline, came)
        if checks is not None and record.streams and not record.observed:
            checks.refuse_stream()
        if record.observed:
            await outbound.observed(request, pipeline.outbound)
        else:
            request = await outbound.redacted(request, pipeline.outbound)
        record.provider, record.model = destination.endpoint.entry.name, destination.model
        if destination.model is not None and destination.model != asked:
            request = request.with_model(destination.model)
        if record.observed:
            return _Turn(await off_loop(record.bytes_in // LIGHT, request.to_bytes), destination, vault, None)
        sent, body, replaced = await outbound.checked(request, NOTE if policy.note else None)
        record.egress.update(replaced)
        if sent is request:
            record.prefix_changed = outbound.changed_prefixes(came, request)
        else:  # the check has changed texts, whose places count the note
            before = came.with_note(NOTE) if policy.note else came
            record.prefix_changed = outbound.changed_prefixes(before, sent)
        return _Turn(
            body=body,
            destination=destination,
            vault=vault,
            restoration=restoration_of(policy, outbound.use.restoration(pipeline), vault),
            checks=checks,
            documents=await outbound.documents(came, sent),
        )

    def _routed(
        self, destination: "_Destination", policy: GatewayPolicy, findings: Mapping[str, int]
    ) -> "_Destination":
        """Return the destination that the policy's routes name for what was found, or raise BlockedByPolicyError."""
        route = policy.route_of(findings)
        if route is None:
            return destination
        if route.provider is None:
            raise BlockedByPolicyError(
                "The policy of this tenant refuses requests that contain what was found in this one (gateway.routes)."
            )
        entries = [place.entry for place in destination.endpoints.values()]
        kind, model = destination.endpoint.entry.kind, route.model or destination.asked or ""
        choice = provider_named(entries, kind, route.provider, model)
        if destination.bound not in {None, choice.provider.name}:
            raise BlockedByPolicyError(
                "The policy routes this request to another provider than the one that holds its conversation; begin "
                "a new conversation."
            )
        by_model = choice.provider.name == destination.endpoint.entry.name
        credential = credential_for(choice.provider, destination.caller_key, chosen_by_model=by_model)
        return replace(
            destination,
            endpoint=destination.endpoints[choice.provider.name],
            model=choice.model,
            credential=credential,
        )

    async def _chosen(
        self,
        caller: Caller,
        incoming: DoorRequest,
        request: GatewayRequest | None,
        scope: ConversationScope,
    ) -> "_Destination":
        """Return the provider of a request, the model's name there, and whose key goes along."""
        endpoints = {place.entry.name: place for place in await self.providers.of_tenant(caller.tenant)}
        entries = [place.entry for place in endpoints.values()]
        kind = cast("ProviderKindName", incoming.kind.name)
        asked = request.facts.model if request is not None else incoming.operation.ids.get("model")
        model = None
        if asked is not None:
            choice = choose_provider(entries, kind, asked)
            if scope.provider not in {None, choice.provider.name}:
                choice = provider_named(entries, kind, scope.provider or "", asked)
            entry, model = choice.provider, choice.model
        else:
            entry = _of_kind(entries, kind, scope.provider)
        credential = credential_for(entry, incoming.caller_key, chosen_by_model=True)
        return _Destination(
            endpoint=endpoints[entry.name],
            credential=credential,
            endpoints=endpoints,
            asked=asked,
            model=model,
            bound=scope.provider,
            caller_key=incoming.caller_key,
        )


def _texts(request: GatewayRequest | None) -> list[str]:
    return [] if request is None else [leaf.leaf.text for leaf in request.leaves()]


async def _pipeline_of(use: PipelineUse, destination: _Destination) -> GatewayPipeline:
    return await use.pipeline_of(destination.endpoint.entry.name, destination.model)


def _of_kind(entries: Sequence[ProviderEntry], kind: str, bound: str | None) -> ProviderEntry:
    """Return the provider of a request without a model: the one that its id is bound to, else the first."""
    for entry in entries:
        if entry.kind == kind and bound in {None, entry.name}:
            return entry
    raise NotFoundError(
        f"This tenant has no provider of kind {kind}; an operator adds one with PUT /api/v1/providers/NAME.",
        details={"kind": kind},
    )
