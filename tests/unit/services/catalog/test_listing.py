"""What one caller may see, and lists made of that."""

from dataclasses import replace

import pytest

from app.core.access import Caller, Role
from app.core.catalog.primitives import Member, PrimitiveKind
from app.core.contracts.policy import ConcernPolicy, Grant, Limits, Policy
from app.core.errors import ForbiddenError, RateLimitedError
from app.core.strictjson import loads
from app.services.access.traffic import Traffic
from app.services.catalog.listing import Extra, Filter, ListingService, shown_definition
from tests.catalogs import Shelf, catalog_of, primitive, tool

ALICE = Caller("acme", "0000000a", frozenset({Role.INVOKER}))
BOB = Caller("acme", "0000000b", frozenset({Role.RESTORER}))


class Policies:
    """The policy that a test says holds, with its version."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.version, self.policy = 1, policy or Policy()

    async def get(self, _tenant):
        return self.version, self.policy

    def put(self, policy: Policy) -> None:
        self.version, self.policy = self.version + 1, policy


class Refusals:
    """Lets refusals pass without recording them."""

    def refusals(self, *_args, **_fields):
        return self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error):
        return None


CATALOG = catalog_of(
    tool("files", "read", groups=("reading",), within=frozenset({"reading", "work"})),
    tool("files", "delete", groups=("writing",), within=frozenset({"writing", "work"})),
    tool("mail", "send"),
    primitive(PrimitiveKind.PROMPT, "mail", "greet"),
    primitive(PrimitiveKind.RESOURCE, "files", "file:///a"),
)


def listing_of(policy: Policy | None = None, **catalogs) -> tuple[ListingService, Policies, Shelf]:
    policies, shelf = Policies(policy), Shelf(catalogs or {"acme": CATALOG})
    return ListingService(shelf, policies, Refusals(), Traffic()), policies, shelf


def names(listed) -> list[str]:
    return [next(iter(entry.definition.values())) for entry in listed.entries]


async def tools_of(service, caller=ALICE) -> list[str]:
    return names(service.listed(await service.view(caller), PrimitiveKind.TOOL))


async def test_without_grants_every_invoker_and_restorer_sees_everything_through_one_view():
    service, _, _ = listing_of()

    assert await tools_of(service) == ["files__read", "files__delete", "mail__send"]
    assert await service.view(ALICE) is await service.view(BOB)


async def test_other_roles_see_nothing():
    service, _, _ = listing_of()

    with pytest.raises(ForbiddenError):
        await service.view(Caller("acme", "0000000c", frozenset({Role.OPERATOR, Role.AUDITOR})))


async def test_grants_show_groups_with_those_below_and_single_primitives_and_nothing_else():
    grants = [
        Grant(keys=["0000000a"], groups=["work"]),
        Grant(roles=[Role.RESTORER], members=[Member(kind=PrimitiveKind.TOOL, name="mail__*")]),
        Grant(
            keys=["0000000b"], members=[Member(kind=PrimitiveKind.RESOURCE, name="file:*", server="files")]
        ),
    ]
    service, _, _ = listing_of(Policy(grants=grants))

    assert await tools_of(service) == ["files__read", "files__delete"]
    assert await tools_of(service, BOB) == ["mail__send"]
    view = await service.view(BOB)
    assert list(view.of(PrimitiveKind.RESOURCE)) == ["file:///a"]
    assert list(view.of(PrimitiveKind.PROMPT)) == []
    assert view.find(PrimitiveKind.TOOL, "files__read") is None
    assert await tools_of(service, Caller("acme", "0000000d", frozenset({Role.INVOKER}))) == []


async def test_a_service_sees_for_an_end_user_what_both_are_granted():
    grants = [
        Grant(keys=["0000000a"], groups=["work"]),
        Grant(
            keys=["support"], groups=["reading"], members=[Member(kind=PrimitiveKind.TOOL, name="mail__*")]
        ),
        Grant(roles=[Role.RESTORER], members=[Member(kind=PrimitiveKind.TOOL, name="files__delete")]),
    ]
    service, _, _ = listing_of(Policy(grants=grants))
    own = ["files__read", "files__delete"]
    for user_grants, seen in ((None, own), (frozenset({"support"}), ["files__read"]), (frozenset(), [])):
        assert await tools_of(service, replace(ALICE, user_grants=user_grants)) == seen
    # What is open to a role is open to both of them.
    both = replace(ALICE, user_grants=frozenset(), roles=frozenset({Role.INVOKER, Role.RESTORER}))
    assert await tools_of(service, both) == ["files__delete"]
    assert await tools_of(service) == own


async def test_grants_of_nobody_show_nothing():
    service, _, _ = listing_of(Policy(grants=[]))

    assert await tools_of(service) == []


async def test_the_endpoint_of_a_group_holds_what_is_in_it_or_below():
    service, _, _ = listing_of()
    view = await service.view(ALICE, None, "work")

    assert names(service.listed(view, PrimitiveKind.TOOL)) == ["files__read", "files__delete"]
    assert view.find(PrimitiveKind.TOOL, "mail__send") is None
    assert names(service.listed(await service.view(ALICE, None, "reading"), PrimitiveKind.TOOL)) == [
        "files__read"
    ]
    assert names(service.listed(await service.view(ALICE, None, "unknown"), PrimitiveKind.TOOL)) == []


async def test_a_new_catalog_or_policy_makes_new_views_and_the_same_ones_do_not():
    service, policies, shelf = listing_of()
    first = await service.view(ALICE)
    listed = service.listed(first, PrimitiveKind.TOOL)
    assert await service.view(ALICE) is first
    assert service.listed(first, PrimitiveKind.TOOL) is listed

    policies.put(Policy(grants=[Grant(groups=["reading"])]))
    assert await tools_of(service) == ["files__read"]
    shelf.catalogs["acme"] = catalog_of(tool("files", "other", groups=("reading",)))
    assert await tools_of(service) == ["files__other"]


async def test_filters_and_forms_are_part_of_what_a_list_is_remembered_by():
    service, _, _ = listing_of()
    view = await service.view(ALICE)
    whole = service.listed(view, PrimitiveKind.TOOL)
    only = Filter("mail", lambda one: one.server == "mail")
    short = Filter("staged", lambda one: one.server == "files")

    narrowed = service.listed(view, PrimitiveKind.TOOL, [only])
    staged = service.listed(view, PrimitiveKind.TOOL, short=short)
    more = service.listed(view, PrimitiveKind.TOOL, extra=Extra("own", [{"name": "own"}]))

    assert names(narrowed) == ["mail__send"]
    assert staged.entries[0].definition["inputSchema"] == {"type": "object", "additionalProperties": True}
    assert staged.entries[2].definition["inputSchema"] == {"type": "object"}
    assert names(more)[-1] == "own"
    assert len({one.fingerprint for one in (whole, narrowed, staged, more)}) == 4
    assert service.listed(view, PrimitiveKind.TOOL) is whole


async def test_the_fingerprint_of_a_list_is_the_same_in_another_process():
    one, _, _ = listing_of()
    other, _, _ = listing_of()
    lists = [service.listed(await service.view(ALICE), PrimitiveKind.TOOL) for service in (one, other)]

    assert lists[0].fingerprint == lists[1].fingerprint


async def test_what_is_encoded_is_what_is_defined():
    service, _, _ = listing_of()
    listed = service.listed(await service.view(ALICE), PrimitiveKind.TOOL)

    assert [loads(entry.encoded) for entry in listed.entries] == [
        dict(entry.definition) for entry in listed.entries
    ]


def test_concerns_are_shown_as_they_are_mapped_and_only_where_the_switch_says_so():
    one = tool("a", "b", concerns={"cost": "low"}, _meta={"concerns": {"cost": "own"}, "kept": 1})

    assert shown_definition(one, short=False, expose=True)["_meta"] == {
        "kept": 1,
        "concerns": {"cost": "low"},
    }
    assert shown_definition(one, short=False, expose=False)["_meta"] == {"kept": 1}
    assert "_meta" not in shown_definition(tool("a", "b", _meta={"concerns": {}}), short=False, expose=False)
    plain = tool("a", "b")
    assert shown_definition(plain, short=False, expose=True) is plain.definition


async def test_the_switch_reaches_the_list():
    catalog = catalog_of(tool("a", "b", concerns={"cost": "low"}))
    service, _, _ = listing_of(Policy(concerns=ConcernPolicy(expose=True)), acme=catalog)
    listed = service.listed(await service.view(ALICE), PrimitiveKind.TOOL)

    assert listed.entries[0].definition["_meta"] == {"concerns": {"cost": "low"}}


async def test_lists_count_against_the_rate_of_the_tenant():
    service, _, _ = listing_of(Policy(limits=Limits(requests_per_second=0.001, burst=2)))
    await service.admitted(ALICE)
    await service.admitted(BOB)

    with pytest.raises(RateLimitedError):
        await service.admitted(ALICE)


async def test_tenants_see_their_own_catalog():
    service, _, _ = listing_of(acme=catalog_of(tool("a", "x")), other=catalog_of(tool("a", "y")))

    assert await tools_of(service) == ["a__x"]
    assert await tools_of(service, Caller("other", "0000000a", ALICE.roles)) == ["a__y"]
    assert await tools_of(service, Caller("nobody", "0000000a", ALICE.roles)) == []
