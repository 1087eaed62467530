"""What is approved of a tenant's servers becomes a catalog: names, groups, concerns, descriptions, what is hidden."""

from app.core.catalog.concerns import ConcernDefinition, ConcernMapping, ConcernTable
from app.core.catalog.groups import GroupDefinition, GroupTree
from app.core.catalog.primitives import CONCERNS_META, GROUPS_META, Offer, PrimitiveKind
from app.core.tools.disclosure import ToolDescription
from app.services.catalog.catalogs import assembled
from app.services.servers.tenant_upstreams import Approved

EFFECT = ConcernDefinition(
    name="effect", description="What it does.", values=("read", "write"), default="read"
)
NO_GROUPS, NO_TABLE = GroupTree.build(()), ConcernTable.build(())


def tool(server, name, **members):
    return Offer(
        PrimitiveKind.TOOL, server, name, {"name": name, "inputSchema": {"type": "object"}, **members}
    )


def resource(server, uri, **members):
    return Offer(PrimitiveKind.RESOURCE, server, uri, {"uri": uri, "name": uri, **members})


def approved(*offers, **options):
    return Approved(offers=offers, **options)


def tree(**members):
    """Return groups; each is given its members as (kind, name)."""
    groups = [
        {"name": name, "members": [{"kind": kind, "name": one} for kind, one in rows]}
        for name, rows in members.items()
    ]
    return GroupTree.build(GroupDefinition.model_validate(one) for one in groups)


def catalog(given, groups=NO_GROUPS, table=NO_TABLE, described=None, middlewares=()):
    return assembled(given, groups, table, described or {}, middlewares)


def test_a_definition_is_kept_whole_but_for_its_name():
    offer = tool("crm", "find", title="Find", future={"x": [None]}, _meta={"vendor": 1})
    found = catalog(approved(offer)).of(PrimitiveKind.TOOL)["crm__find"]
    assert found.definition == {**offer.definition, "name": "crm__find"}
    assert (found.server, found.own_name, found.digest) == ("crm", "find", offer.digest)
    assert offer.definition["name"] == "find", "the offer itself is not touched"


def test_names_follow_namespaces_aliases_and_shared_uris():
    found = catalog(
        approved(
            *(tool("a", "one"), tool("b", "one"), tool("b", "two")),
            *(resource("a", "memo://x"), resource("b", "memo://x"), resource("b", "memo://y")),
            namespaced={"b": False},
            aliases={"b": {"second": "two"}},
        )
    )
    assert list(found.of(PrimitiveKind.TOOL)) == ["a__one", "one", "second"]
    assert list(found.of(PrimitiveKind.RESOURCE)) == [
        "sluice://a/memo://x",
        "sluice://b/memo://x",
        "memo://y",
    ]
    assert found.of(PrimitiveKind.RESOURCE)["sluice://b/memo://x"].definition["uri"] == "sluice://b/memo://x"
    assert found.shadowed == ()


def test_what_another_server_already_offers_is_hidden_and_named():
    found = catalog(approved(tool("a", "one"), tool("b", "one"), namespaced={"a": False, "b": False}))
    assert {name: one.server for name, one in found.of(PrimitiveKind.TOOL).items()} == {"one": "a"}
    assert found.shadowed == ((PrimitiveKind.TOOL, "one", "b"),)


def test_groups_stand_in_the_meta_and_those_of_a_server_do_not():
    groups = tree(mail=[("tool", "m__*")], work=[("group", "mail"), ("tool", "m__send")])
    given = approved(
        tool("m", "send", _meta={GROUPS_META: ["admin"], "dev.sluice/phase": "outbound", "kept": True}),
        tool("m", "check"),
        tool("x", "other", _meta={GROUPS_META: ["work"]}),
    )
    found = catalog(given, groups).of(PrimitiveKind.TOOL)
    assert found["m__send"].definition["_meta"] == {"kept": True, GROUPS_META: ["mail", "work"]}
    assert found["m__check"].definition["_meta"] == {GROUPS_META: ["mail"]}
    assert "_meta" not in found["x__other"].definition
    assert (found["m__check"].groups, found["m__check"].within) == (("mail",), {"mail", "work"})
    assert (found["x__other"].groups, found["x__other"].within) == ((), frozenset())


def test_groups_know_what_is_above_them_and_middlewares_their_groups():
    groups = tree(mail=[("middleware", "stamp")], work=[("group", "mail")])
    found = catalog(approved(), groups, middlewares=("stamp", "other"))
    assert found.group_parents == {"mail": {"mail", "work"}, "work": {"work"}}
    assert list(found.groups) == ["mail", "work"]
    assert found.middleware_groups == {"stamp": ("mail",)}


def test_concerns_come_from_mappings_before_the_servers_own():
    table = ConcernTable.build(
        [EFFECT],
        [ConcernMapping.model_validate({"kind": "tool", "name": "a__x", "concerns": {"effect": "write"}})],
    )
    said = {CONCERNS_META: {"effect": "read", "undeclared": 1}}
    found = catalog(approved(tool("a", "x", _meta=said), tool("a", "y", _meta=said)), table=table).of(
        PrimitiveKind.TOOL
    )
    assert found["a__x"].concerns == {"effect": "write"}
    assert found["a__y"].concerns == {"effect": "read"}


def test_tools_alone_have_a_short_form_and_two_stages():
    described = {"a__x": ToolDescription(short="Short.")}
    given = approved(
        tool("a", "x", description="Long."),
        resource("a", "memo://x"),
        tool("b", "x"),
        disclosure={"a": "staged"},
    )
    found = catalog(given, described=described)
    staged, flat = found.of(PrimitiveKind.TOOL)["a__x"], found.of(PrimitiveKind.TOOL)["b__x"]
    assert (staged.short["description"], staged.definition["description"]) == ("Short.", "Long.")
    assert (staged.staged, flat.staged) == (True, False)
    memo = found.of(PrimitiveKind.RESOURCE)["memo://x"]
    assert (memo.short, memo.staged) == (None, False)


def changed(before, after):
    return {name for name, digest in after.fingerprints.items() if before.fingerprints[name] != digest}


def test_fingerprints_tell_which_lists_are_other_than_before():
    one, memo = tool("a", "x"), resource("a", "memo://x")
    before = catalog(approved(one, memo))
    assert changed(before, catalog(approved(one, memo))) == set()
    assert changed(before, catalog(approved(tool("a", "x", title="X"), memo))) == {"tool"}
    assert changed(before, catalog(approved(one))) == {"resource"}
    assert changed(before, catalog(approved(one, memo), tree(empty=[]))) == {"group"}
    assert changed(before, catalog(approved(one, memo), tree(g=[("tool", "a__x")]))) == {"group", "tool"}
    said = {"a__x": ToolDescription(short="Other.")}
    assert changed(before, catalog(approved(one, memo), described=said)) == {"tool"}
    staged = catalog(approved(one, memo, disclosure={"a": "staged"}))
    assert changed(before, staged) == {"tool", "resource", "template"}


def test_the_order_of_members_makes_no_other_fingerprint():
    first = Offer(
        PrimitiveKind.TOOL, "a", "x", {"name": "x", "title": "X", "inputSchema": {"type": "object", "a": 1}}
    )
    second = Offer(
        PrimitiveKind.TOOL, "a", "x", {"inputSchema": {"a": 1, "type": "object"}, "title": "X", "name": "x"}
    )
    assert changed(catalog(approved(first)), catalog(approved(second))) == set()
