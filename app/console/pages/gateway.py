"""The gateway: providers, where requests go, what is under way, tokens, and whether masking is on for a client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, Final

from fastapi import Query
from starlette.responses import Response

from app.console.page_streams import following
from app.console.rendering import written
from app.console.samples import shown_items
from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages
from app.core.access import Role
from app.core.contracts.gateway_policy import GatewayRoute
from app.core.errors import NotFoundError
from app.edge.limits import needs, takes
from app.services.gateway.provider_sealing import shown_provider
from app.services.gateway.provider_trials import ProviderTrial
from app.services.gateway.usage import WINDOW, GatewayUsage
from app.services.previews.client_keys import list_clients
from app.services.previews.clients import ClientMasking, ClientPreviews
from app.services.previews.policies import PolicyPreviews

PAGE: Final = "/console/gateway"
_LISTED: Final = 100

router = new_pages()


@dataclass(frozen=True, slots=True)
class UnderWayReader:
    """Reads what a tenant has under way in this process, for all who watch its gateway."""

    usage: GatewayUsage
    tenant: str

    async def mark(self) -> str:
        """Return digits that differ where the numbers do."""
        return _mark_of(self.usage.running(self.tenant))

    async def content(self) -> str:
        """Return the part of the page that changes."""
        return written("under_way.html", {"under_way": self.usage.running(self.tenant)})


@router.get(PAGE)
async def show_gateway(
    visit: VisitDep, after: Annotated[str | None, Query(max_length=64)] = None
) -> Response:
    """Show the gateway, each part of it to those who may read what it is made of."""
    return await _page(visit, after=after)


@router.get(PAGE + "/live")
async def follow_gateway(
    visit: VisitDep, mark: Annotated[str, Query(pattern=r"^\d{1,19}$")] = "0"
) -> Response:
    """Send what is under way whenever that changes, while the session lives."""
    usage = _usage(visit)
    await usage.admit(visit.caller, visit.info)
    reader = partial(UnderWayReader, usage, visit.caller.tenant)
    return following(visit, "gateway", mark, (Role.OPERATOR, Role.AUDITOR), reader)


@router.post(PAGE)
@takes(FORM)
@needs(Role.OPERATOR, action="policy.preview")
async def look_at_client(visit: VisitDep, form: FormDep) -> Response:
    """Say whether masking is on for a key, with a sample."""
    asked = {name: form.get(name, "").strip() for name in ("key", "provider", "model")}
    previews = PolicyPreviews(visit.services.policies, visit.services.invoke)
    masking, fault = None, None
    try:
        masking = await ClientPreviews(visit.services.access, previews).masking(
            visit.caller, asked["key"], visit.info, provider=asked["provider"], model=asked["model"]
        )
    except NotFoundError as error:
        fault = error.message
    return await _page(visit, asked=asked, masking=masking, fault=fault)


@router.post(PAGE + "/test")
@takes(FORM)
@needs(Role.OPERATOR, action="providers.test")
async def test_provider(visit: VisitDep, form: FormDep) -> Response:
    """Ask a provider for its models once."""
    name = form.get("name", "")
    trial = await visit.services.providers.test(visit.caller, name, visit.info)
    return await _page(visit, trial=trial, tried=name)


async def _page(
    visit: Visit,
    *,
    after: str | None = None,
    asked: Mapping[str, str] | None = None,
    masking: ClientMasking | None = None,
    trial: ProviderTrial | None = None,
    tried: str | None = None,
    fault: str | None = None,
) -> Response:
    services, caller, info = visit.services, visit.caller, visit.info
    usage = _usage(visit)
    under_way = await usage.under_way(caller, info)
    values: dict[str, Any] = {
        "under_way": under_way,
        "mark": _mark_of(under_way),
        "use": await usage.recent(caller, info) if visit.may(Role.AUDITOR) else None,
        "hours": int(WINDOW.total_seconds() // 3600),
        "after": after,
        "asked": asked or {"key": "", "provider": "", "model": ""},
        "masking": masking,
        "shown": shown_items(masking.outcome.content) if masking is not None else "",
        "trial": trial,
        "tried": tried,
        "fault": fault,
        "operates": visit.may(Role.OPERATOR),
    }
    if not visit.may(Role.OPERATOR):
        return visit.page("gateway.html", values)
    listed = await services.providers.list(caller, info, after=after, limit=_LISTED + 1)
    version, policy = await services.policies.get(caller.tenant)
    values |= {
        "providers": [
            {**shown_provider(record.entry), "name": record.stored.name, "origin": record.stored.origin}
            for record in listed[:_LISTED]
        ],
        "next": listed[_LISTED - 1].stored.name if len(listed) > _LISTED else None,
        "gateway": policy.gateway,
        "routes": _routes(policy.gateway.routes),
        "policy_version": version,
        "most": policy.gateway.in_flight,
        "clients": await list_clients(services.access, caller, info),
    }
    return visit.page("gateway.html", values)


def _usage(visit: Visit) -> GatewayUsage:
    return GatewayUsage(visit.services.audit, visit.services.invoke.traffic)


def _mark_of(under_way: Mapping[str, int]) -> str:
    numbers = repr(sorted(under_way.items())).encode()
    return str(int.from_bytes(blake2b(numbers, digest_size=7).digest()))


def _routes(routes: Sequence[GatewayRoute]) -> list[dict[str, str]]:
    return [
        {
            "types": ", ".join(route.when.types),
            "leads": "refused"
            if route.refuse
            else f"{route.provider}{f', {route.model}' if route.model else ''}",
        }
        for route in routes
    ]
