"""Links seen in results, remembered for whom they were given and within bounds."""

from app.core.access import Caller, Role
from app.services.forward import seen_uris
from app.services.forward.seen_uris import SeenUris

ALICE = Caller("acme", "0000000a", frozenset({Role.INVOKER}))
BOB = Caller("acme", "0000000b", frozenset({Role.INVOKER}))
ELSEWHERE = Caller("other", "0000000a", frozenset({Role.INVOKER}))


def link(uri, kind="resource_link"):
    return {"type": kind, "uri": uri}


def test_links_of_tools_and_prompts_are_found_bare_and_with_their_server():
    seen = SeenUris()
    seen.note(ALICE, "a", {"content": [link("x://1"), {"type": "resource", "resource": {"uri": "x://2"}}]})
    seen.note(ALICE, "b", {"messages": [{"role": "user", "content": link("x://3")}]})

    assert seen.find(ALICE, "x://1") == ("a", "x://1")
    assert seen.find(ALICE, "sluice://a/x://2") == ("a", "x://2")
    assert seen.find(ALICE, "x://3") == ("b", "x://3")
    assert seen.find(ALICE, "sluice://b/x://2") is None
    assert seen.find(BOB, "x://1") is None
    assert seen.find(ELSEWHERE, "x://1") is None


def test_what_is_no_link_is_not_taken_for_one():
    seen = SeenUris()
    odd = [
        None,
        7,
        "x://1",
        {"uri": "x://1"},
        link(5),
        link("x" * 3000),
        link("x://1", "text"),
        {"type": "resource"},
    ]
    for result in ({"content": odd}, {"content": "x://1"}, {"messages": [7]}, {}):
        seen.note(ALICE, "a", result)

    assert seen.find(ALICE, "x://1") is None


def test_the_last_links_of_the_last_callers_are_kept(monkeypatch):
    monkeypatch.setattr(seen_uris, "_URIS_PER_CALLER", 3)
    monkeypatch.setattr(seen_uris, "_CALLERS", 1)
    seen = SeenUris()
    for number in range(5):
        seen.note(ALICE, "a", {"content": [link(f"x://{number}")]})

    assert [number for number in range(5) if seen.find(ALICE, f"x://{number}")] == [2, 3, 4]
    seen.note(BOB, "a", {"content": [link("y://1")]})
    assert seen.find(ALICE, "x://4") is None


def test_who_came_last_is_kept_longest(monkeypatch):
    monkeypatch.setattr(seen_uris, "_CALLERS", 2)
    seen = SeenUris()
    for caller in (ALICE, BOB, ALICE, ELSEWHERE):
        seen.note(caller, "a", {"content": [link("x://1")]})
    known = [caller for caller in (ALICE, BOB, ELSEWHERE) if seen.find(caller, "x://1")]
    assert known == [ALICE, ELSEWHERE]
