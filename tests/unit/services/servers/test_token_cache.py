"""The cache of tokens for servers: nobody gets what was given to somebody else, however alike they are."""

import asyncio
import random
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from app.core.grants import GrantedToken, GrantFailedError
from app.services.servers.token_cache import TokenCache, TokenKey
from tests.sampling import SEED, examples

# Names that a careless key would join, fold, cut or normalise into one another.
ALIKE = [
    "ada",
    "Ada",
    "ADA",
    "ada ",
    " ada",
    "ada\x00",
    "ada\x00grace",
    "ada:grace",
    "ada/grace",
    "ada|grace",
    "adagrace",
    "grace",
    "ad",
    "a",
    "",
    "ada%00",
    "ada\u200b",
    "\u0430da",
    "a\u0301da",
    "\u00e1da",
    "ada" * 100,
    "ada" * 100 + "a",
    "0",
    "None",
    "('ada', 'grace')",
]
PLACES = [
    *ALIKE,
    "https://mcp.example.com/mcp",
    "https://mcp.example.com/mcp/",
    "https://MCP.example.com/mcp",
]


def keys(number: int) -> Iterator[TokenKey]:
    """Yield keys of random users, servers, audiences and tenants."""
    draw = random.Random(f"{SEED} token cache")
    for _ in range(number):
        yield TokenKey(
            tenant=draw.choice(ALIKE),
            holder=draw.choice(ALIKE),
            server=draw.choice(ALIKE),
            issuer=draw.choice(PLACES),
            audience=draw.choice(PLACES),
            scopes=tuple(draw.choices(ALIKE, k=draw.randrange(3))),
            binding=draw.choice(ALIKE),
            presented=draw.choice(ALIKE).encode(),
        )


@dataclass
class Probed:
    """A cache that is filled and probed; ``key_of`` is what it takes for a key's identity."""

    key_of: Callable[[TokenKey], Hashable]
    given: dict[TokenKey, str] = field(default_factory=dict)
    shelf: dict[Hashable, str] = field(default_factory=dict)

    def hits_of_others(self, probes: Iterator[TokenKey], peek: Callable[[TokenKey], str | None]) -> int:
        return sum(1 for key in probes if (token := peek(key)) is not None and self.given.get(key) != token)


async def filled(probed: Probed, number: int) -> TokenCache:
    """Return a cache with a token of its own for every second key."""
    cache = TokenCache(size=number)
    for count, key in enumerate(keys(number)):
        if count % 2 or key in probed.given:
            continue
        token = f"token {count}"

        async def load(token: str = token) -> GrantedToken:
            return GrantedToken(token, 3_600)

        probed.given[key] = await cache.get(key, load)
        probed.shelf[probed.key_of(key)] = token
    return cache


async def test_no_probe_gets_the_token_of_another(record_property: Callable[[str, Any], None]) -> None:
    """A million in `make soak`: whoever differs in anything has no token, or one of its own."""
    number = examples(1_000_000, 4_000)
    probed = Probed(lambda key: key)
    cache = await filled(probed, min(number // 2, 20_000))
    probes = (
        replace(key, **{draw: changed})
        for key, (draw, changed) in zip(keys(number), _changes(number), strict=True)
    )
    assert probed.hits_of_others(probes, cache.peek) == 0
    own = [key for key, token in probed.given.items() if cache.peek(key) == token]
    assert len(own) == len(probed.given) > 0
    record_property("probes", number)


BROKEN: dict[str, Callable[[TokenKey], Hashable]] = {
    "joined": lambda key: f"{key.tenant}:{key.holder}:{key.server}",
    "folded": lambda key: (key.tenant.lower(), key.holder.strip().lower(), key.server, key.audience),
    "without the user": lambda key: (key.tenant, key.server, key.audience, key.scopes),
    "without the presented token": lambda key: (key.tenant, key.holder, key.server, key.audience),
    "cut": lambda key: (key.tenant[:300], key.holder[:300], key.server[:300]),
}


@pytest.mark.parametrize("broken", BROKEN)
async def test_the_probes_find_a_key_that_leaves_something_out(broken: str) -> None:
    """The negative control: the same probes of a cache whose key is wrong."""
    number = 4_000
    probed = Probed(BROKEN[broken])
    await filled(probed, number)
    probes = (
        replace(key, **{draw: changed})
        for key, (draw, changed) in zip(keys(number), _changes(number), strict=True)
    )
    assert probed.hits_of_others(probes, lambda key: probed.shelf.get(probed.key_of(key))) > 0


def _changes(number: int) -> Iterator[tuple[str, Any]]:
    draw = random.Random(f"{SEED} token cache changes")
    for _ in range(number):
        member = draw.choice(["tenant", "holder", "server", "issuer", "audience", "binding", "presented"])
        text = draw.choice(PLACES if member in {"issuer", "audience"} else ALIKE)
        yield member, text.encode() if member == "presented" else text


KEY = TokenKey("acme", "sub-1", "alpha", "https://a.example", "https://r.example", ("use",), "b")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Source:
    """Gives a token at each call, when it may."""

    lifetime_s: float = 600
    calls: int = 0
    held: asyncio.Event = field(default_factory=asyncio.Event)

    async def load(self) -> GrantedToken:
        self.calls += 1
        number = self.calls
        await self.held.wait()
        return GrantedToken(f"token {number}", self.lifetime_s)


async def test_all_who_wait_share_one_load_and_a_waiter_that_leaves_harms_nobody() -> None:
    cache, source = TokenCache(), Source()
    waiting = [asyncio.create_task(cache.get(KEY, source.load)) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    source.held.set()
    tokens = await asyncio.gather(*waiting[1:])
    assert (set(tokens), source.calls) == ({"token 1"}, 1)


@pytest.mark.parametrize(("lifetime_s", "used_s"), [(600, 570), (100, 80), (5, 4)])
async def test_a_token_is_used_until_shortly_before_it_ends(lifetime_s: float, used_s: float) -> None:
    clock, source = Clock(), Source(lifetime_s)
    cache = TokenCache(clock=clock)
    source.held.set()
    assert await cache.get(KEY, source.load) == "token 1"
    clock.now += used_s - 0.1
    assert await cache.get(KEY, source.load) == "token 1"
    clock.now += 0.1
    assert cache.peek(KEY) is None
    assert await cache.get(KEY, source.load) == "token 2"


async def test_a_load_that_fails_is_tried_again_and_leaves_nothing() -> None:
    cache, source = TokenCache(), Source()

    async def failing() -> GrantedToken:
        raise GrantFailedError("it does not answer")

    with pytest.raises(GrantFailedError):
        await cache.get(KEY, failing)
    assert cache.peek(KEY) is None
    source.held.set()
    assert await cache.get(KEY, source.load) == "token 1"


async def test_a_refused_token_is_forgotten_once_and_its_successor_stays() -> None:
    cache, source = TokenCache(), Source()
    source.held.set()
    first = await cache.get(KEY, source.load)
    cache.refuse(KEY, first)
    second = await cache.get(KEY, source.load)
    cache.refuse(KEY, first)  # another call had been refused, too, and says so late
    assert cache.peek(KEY) == second == "token 2"
    assert "token 2" not in repr(cache._memory._values)
