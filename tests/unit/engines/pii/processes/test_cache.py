"""The span cache: bounded, the least recently used of the largest tenant first."""

from hypothesis import given
from hypothesis import strategies as st

from app.engines.pii.processes.cache import SpanCache


def test_a_cache_gives_back_what_was_put_under_the_same_tenant_and_key() -> None:
    cache = SpanCache(1 << 20)
    cache.put("acme", b"k", (b"value", None))
    assert cache.get("acme", b"k") == (b"value", None)
    assert cache.get("globex", b"k") is None
    assert cache.get("acme", b"other") is None


def test_the_least_recently_used_goes_first() -> None:
    cache = SpanCache(100_000)
    for number in range(100):
        cache.put("acme", b"%d" % number, (b"x" * 100,))
        cache.get("acme", b"0")
    while not cache.evictions:
        cache.put("acme", b"%d" % (100 + len(cache)), (b"x" * 100,))
    assert cache.get("acme", b"0") is not None
    assert cache.get("acme", b"1") is None


def test_a_tenant_that_sends_much_pushes_out_nothing_of_a_smaller_one() -> None:
    cache = SpanCache(200_000)
    for number in range(50):
        cache.put("small", b"%d" % number, (b"x" * 100,))
    for number in range(5_000):
        cache.put("noisy", b"%d" % number, (b"x" * 100,))
    assert cache.evictions > 4_000
    assert all(cache.get("small", b"%d" % number) for number in range(50))


def test_one_that_is_alone_may_use_everything() -> None:
    cache = SpanCache(200_000)
    for number in range(400):
        cache.put("acme", b"%d" % number, (b"x" * 100,))
    assert cache.evictions == 0
    assert len(cache) == 400


def test_what_is_larger_than_a_share_is_not_kept_and_takes_the_old_value_away() -> None:
    cache = SpanCache(100_000)
    cache.put("acme", b"k", (b"old",))
    cache.put("acme", b"k", (b"x" * 50_000,))
    assert cache.get("acme", b"k") is None
    assert (cache.size, len(cache)) == (0, 0)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.integers(0, 900)), max_size=300),
    st.sampled_from([0, 5_000, 70_000]),
)
def test_the_size_is_that_of_the_entries_and_never_above_the_capacity(
    puts: list[tuple[str, int, int]], capacity: int
) -> None:
    cache = SpanCache(capacity)
    for tenant, key, length in puts:
        cache.put(tenant, b"%d" % key, (b"x" * length,))
        held = [entry for entries in cache._tenants.values() for entry in entries.values()]
        assert cache.size == sum(320 + len(entry[0] or b"") for entry in held) <= capacity
        assert sum(cache._sizes.values()) == cache.size
        assert cache._sizes.keys() == cache._tenants.keys()
        got = cache.get(tenant, b"%d" % key)
        assert got is None or got == (b"x" * length,)
