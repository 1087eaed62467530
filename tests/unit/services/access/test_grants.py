"""Who a grant is for: any of its keys and, where it names roles too, any of its roles."""

import pytest

from app.core.access import Caller, Role
from app.core.catalog.primitives import Catalog, Member, PrimitiveKind
from app.core.contracts.policy import Grant, Policy
from app.services.access.traffic import Traffic
from app.services.catalog.listing import ListingService
from tests.catalogs import Shelf, catalog_of, tool

EVERYTHING = [Member(kind=PrimitiveKind.TOOL, name="*")]
CATALOG = catalog_of(
    tool("files", "read", groups=("reading",), within=frozenset({"reading", "work"})),
    tool("mail", "send"),
)


class Policies:
    """The policy that holds."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    async def get(self, _tenant: str) -> tuple[int, Policy]:
        return 1, self.policy


def listing_of(*grants: Grant, catalog: Catalog = CATALOG) -> ListingService:
    policies = Policies(Policy(grants=list(grants)))
    return ListingService(Shelf({"acme": catalog}), policies, None, Traffic())  # type: ignore[arg-type]


def caller_of(*roles: Role, key: str = "0000000a") -> Caller:
    return Caller("acme", key, frozenset(roles))


async def tools_of(service: ListingService, caller: Caller) -> list[str]:
    view = await service.view(caller)
    return list(view.of(PrimitiveKind.TOOL))


@pytest.mark.parametrize(
    "roles",
    [(Role.INVOKER,), (Role.RESTORER,), (Role.INVOKER, Role.AUDITOR), (Role.INVOKER, Role.RESTORER)],
)
async def test_a_grant_for_several_roles_is_for_who_has_any_of_them(roles: tuple[Role, ...]) -> None:
    service = listing_of(Grant(roles=[Role.INVOKER, Role.RESTORER], members=EVERYTHING))
    assert await tools_of(service, caller_of(*roles)) == ["files__read", "mail__send"]


@pytest.mark.parametrize(
    ("caller", "is_meant"),
    [
        (caller_of(Role.INVOKER), False),
        (caller_of(Role.RESTORER, key="0000000b"), False),
        (caller_of(Role.INVOKER, key="0000000b"), False),
        (caller_of(Role.RESTORER), True),
        (caller_of(Role.RESTORER, Role.INVOKER), True),
    ],
)
async def test_a_grant_for_keys_and_roles_needs_one_of_each(caller: Caller, is_meant: bool) -> None:
    service = listing_of(Grant(keys=["0000000c", "0000000a"], roles=[Role.RESTORER], members=EVERYTHING))
    assert bool(await tools_of(service, caller)) is is_meant


async def test_a_grant_without_keys_and_roles_is_for_everybody_and_one_for_no_role_is_for_nobody() -> None:
    assert await tools_of(listing_of(Grant(groups=["reading"])), caller_of(Role.INVOKER)) == ["files__read"]
    nobody = (Grant(roles=[], members=EVERYTHING), Grant(keys=[], members=EVERYTHING))
    assert await tools_of(listing_of(*nobody), caller_of(Role.INVOKER)) == []


async def test_of_several_groups_any_lets_a_tool_be_seen_and_members_come_on_top() -> None:
    both = Grant(groups=["elsewhere", "work"], members=[Member(kind=PrimitiveKind.TOOL, name="mail__send")])
    assert await tools_of(listing_of(both), caller_of(Role.INVOKER)) == ["files__read", "mail__send"]
    assert await tools_of(listing_of(Grant(groups=["elsewhere"])), caller_of(Role.INVOKER)) == []


async def test_two_keys_with_the_same_roles_do_not_share_a_view_under_grants() -> None:
    service = listing_of(Grant(keys=["0000000b"], members=EVERYTHING))
    assert await tools_of(service, caller_of(Role.INVOKER)) == []
    assert len(await tools_of(service, caller_of(Role.INVOKER, key="0000000b"))) == 2


async def test_a_key_whose_roles_changed_does_not_keep_its_old_view() -> None:
    service = listing_of(Grant(roles=[Role.RESTORER], members=EVERYTHING))
    assert await tools_of(service, caller_of(Role.INVOKER)) == []
    assert len(await tools_of(service, caller_of(Role.RESTORER))) == 2


async def test_a_group_s_endpoint_shows_no_more_than_the_grants_do() -> None:
    service = listing_of(Grant(members=[Member(kind=PrimitiveKind.TOOL, name="mail__send")]))
    within = await service.view(caller_of(Role.INVOKER), None, "work")
    assert list(within.of(PrimitiveKind.TOOL)) == []
    assert within.servers == frozenset()


async def test_only_where_grants_decide_is_a_view_restricted() -> None:
    policies = Policies(Policy())
    service = ListingService(Shelf({"acme": CATALOG}), policies, None, Traffic())  # type: ignore[arg-type]
    assert not (await service.view(caller_of(Role.INVOKER))).restricted
    assert (await service.view(caller_of(Role.INVOKER), None, "work")).restricted
    assert (await listing_of(Grant()).view(caller_of(Role.INVOKER))).restricted
