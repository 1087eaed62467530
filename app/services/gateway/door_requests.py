"""A request as it came to a door: who sent it, what it holds, and what it says of its conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.contracts.policy import Policy
from app.core.gateway.kinds import Operation, ProviderKind
from app.core.gateway.requests import GatewayRequest
from app.core.offload import LIGHT, off_loop
from app.services.gateway.model_lists import LISTS
from app.services.gateway.scopes import ScopeHints, ScopeRules
from app.upstream.providers.requests import ProviderRequest

_PAGES: Final = frozenset({"after", "before", "after_id", "before_id", "limit"})


@dataclass(frozen=True, slots=True)
class DoorRequest:
    """One request as it came to a door; ``caller_key`` is the caller's own key of the provider.

    ``value`` is that of the body, where it was parsed on the way here; nobody may change it.
    """

    kind: ProviderKind
    operation: Operation
    method: str
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    query: Sequence[tuple[str, str]] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    value: Any = field(default=None, repr=False)
    caller_key: str | None = field(default=None, repr=False)
    scope: str | None = None


async def read(incoming: DoorRequest) -> GatewayRequest | None:
    """Return the parsed body, None where the operation has none with texts."""
    family, body = incoming.operation.family, incoming.body
    if family is None or not body:
        return None
    return await off_loop(len(body) // LIGHT, family.request, incoming.operation, body, incoming.value)


def hints(incoming: DoorRequest, request: GatewayRequest | None) -> ScopeHints:
    """Return what a request says of its conversation."""
    named = incoming.operation.ids
    ids = [named[kind] for kind in ("conversation", "response") if kind in named]
    if request is None:
        return ScopeHints(named=incoming.scope, ids=ids)
    facts = request.facts
    ids += [each for each in (facts.conversation, facts.previous_response) if each is not None]
    return ScopeHints(
        named=incoming.scope,
        ids=ids,
        sessions=tuple(facts.sessions.values()),
        first_user_text="\0".join(facts.first_user_texts) or None,
    )


def scope_rules(policy: Policy, named: str | None) -> ScopeRules:
    """Return what the policy says of the scope that a request names."""
    shared = (named,) if named is not None and policy.gateway.is_shared(named) else ()
    return ScopeRules(shared=shared, stable=policy.gateway.stable_scope, ttl_s=policy.scope_ttl_s)


def outgoing(incoming: DoorRequest, model: str | None, body: bytes) -> ProviderRequest:
    """Return what goes to the provider, which knows the model as ``model``; ``body`` is what may leave."""
    rules, path = incoming.kind.headers, incoming.operation.path
    asked, query = incoming.operation.ids.get("model"), rules.query(incoming.query)
    if asked is not None and model is not None:
        path = path.removesuffix(asked) + model
    if incoming.operation.name == LISTS:  # one list of several has no pages
        query = [*((name, value) for name, value in query if name not in _PAGES), *incoming.kind.whole_list]
    return ProviderRequest(
        method=incoming.method,
        path=path,
        headers=rules.request(incoming.headers),
        query=query,
        body=body or None,
    )
