"""The memory of how many chunks have a word."""

from app.engines.documents.counts import CountMemory, ScopeKey

NOW = ScopeKey("acme", ((1, 7),))


def test_counts_are_remembered_for_one_state_of_the_parts():
    memory = CountMemory()
    memory.learn(NOW, {"parcel": 3, "late": 0})
    assert memory.known(NOW, ["late", "parcel", "new"]) == {"late": 0, "parcel": 3}
    assert memory.known(ScopeKey("acme", ((1, 8),)), ["parcel"]) == {}
    assert memory.known(ScopeKey("other", ((1, 7),)), ["parcel"]) == {}


def test_the_scope_used_longest_ago_makes_room():
    memory = CountMemory(words=4)
    other, third = ScopeKey("acme", ((2, 1),)), ScopeKey("acme", ((3, 1),))
    memory.learn(NOW, {"a": 1, "b": 1})
    memory.learn(other, {"a": 2, "b": 2})
    assert memory.known(NOW, ["a"])
    memory.learn(third, {"a": 3})
    assert memory.known(other, ["a"]) == {}
    assert memory.known(NOW, ["a", "b"]) == {"a": 1, "b": 1}
    assert memory.known(third, ["a"]) == {"a": 3}


def test_words_of_a_tenant_are_forgotten_with_its_documents():
    memory = CountMemory()
    beside = ScopeKey("other", ((2, 1),))
    memory.learn(NOW, {"secret": 1})
    memory.learn(beside, {"secret": 2})
    memory.forget("acme")
    assert memory.known(NOW, ["secret"]) == {}
    assert memory.known(beside, ["secret"]) == {"secret": 2}
    memory.forget(None)
    assert memory.known(beside, ["secret"]) == {}
