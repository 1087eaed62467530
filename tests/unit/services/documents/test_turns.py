"""Tenants take turns at reading documents, and what is remembered of that is bounded."""

from app.services.documents import turns as module
from app.services.documents.turns import Turns


def read(turns: Turns, tenant: str) -> None:
    with turns.reading(tenant):
        pass


def test_who_was_served_longest_ago_is_next_and_nobody_twice_at_once() -> None:
    turns = Turns()
    for tenant in ("b", "a", "c"):
        read(turns, tenant)
    assert turns.choose(["a", "b", "c"]) == "b"
    with turns.reading("b"):
        assert turns.choose(["c", "b", "a"]) == "a"
        assert turns.choose(["b"]) is None
    assert turns.choose(["b", "c"]) == "c"


def test_of_many_tenants_the_first_is_forgotten_and_is_next_like_one_that_is_new() -> None:
    turns = Turns()
    tenants = [f"tenant-{number}" for number in range(module._REMEMBERED + 1)]
    for tenant in tenants:
        read(turns, tenant)
    first, second = tenants[:2]
    assert turns.choose(["zeta", first]) == first, "both count as never served, so the name decides"
    assert turns.choose([second, "zeta"]) == "zeta", "the control: the second is remembered"
