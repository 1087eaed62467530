"""What a server lists only to some clients: how often it is listed for that, and what is made of the lists."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import pytest

from app.core.catalog.primitives import Offer, PrimitiveKind
from app.core.client_features import ALL_FEATURES, client_features, declared_capabilities
from app.core.errors import UpstreamUnavailableError
from app.upstream.askable_offers import AskableOffers

SAMPLING = frozenset({"sampling"})
FORM = frozenset({"elicitation.form"})


class Server:
    """Lists tools by the capabilities of the connection, and keeps which connections there were."""

    def __init__(self, **needs: str | None) -> None:
        self.needs = needs
        self.connections: list[list[str]] = []
        self.refuses = False

    @asynccontextmanager
    async def dedicated(self, capabilities: Mapping[str, Any], **_callbacks: Any) -> AsyncIterator[Any]:
        self.connections.append(sorted(capabilities))
        if self.refuses:
            raise UpstreamUnavailableError("No second connection.")
        yield _Link([name for name, need in self.needs.items() if need is None or need in capabilities])

    def everyone(self) -> list[Offer]:
        return [_offer(name) for name, need in self.needs.items() if need is None]


class _Link:
    capabilities = MappingProxyType({"tools": {}})

    def __init__(self, names: list[str]) -> None:
        self.names = names

    async def request(self, _method: str, *_arguments: Any, **_options: Any) -> dict[str, Any]:
        return {"tools": [_offer(name).definition for name in self.names]}


def _offer(name: str) -> Offer:
    return Offer(PrimitiveKind.TOOL, "files", name, {"name": name, "inputSchema": {"type": "object"}})


def askable(server: Server, *, roots: bool = False, told: list[str] | None = None) -> AskableOffers:
    offers = AskableOffers(
        "files",
        server.dedicated,
        roots=roots,
        timeout_s=5,
        most_bytes=10_000,
        on_listed=lambda: told.append("listed") if told is not None else None,
    )
    offers.renew(server.everyone())
    return offers


async def test_each_set_of_features_is_listed_once_and_only_where_that_can_matter() -> None:
    server = Server(echo=None, sample="sampling", ask="elicitation")
    offers = askable(server)
    await asyncio.gather(*(offers.find(SAMPLING) for _ in range(5)))
    await offers.find(FORM)
    await offers.find(SAMPLING)
    assert server.connections == [["elicitation", "sampling"], ["sampling"], ["elicitation"]]
    listed_to = {offer.own_name: offer.listed_to for offer in offers.offers()}
    assert listed_to.keys() == {"sample", "ask"}
    assert SAMPLING in listed_to["sample"] and FORM not in listed_to["sample"]
    assert SAMPLING | {"roots"} in listed_to["sample"], (
        "the server is not told of roots, so they make no difference"
    )
    assert FORM in listed_to["ask"] and SAMPLING not in listed_to["ask"]

    plain = Server(echo=None)
    offers = askable(plain)
    await offers.find(SAMPLING)
    await offers.find(FORM)
    assert plain.connections == [["elicitation", "sampling"]]
    assert offers.offers() == ()
    await offers.find(frozenset({"roots"}))
    assert len(plain.connections) == 1


async def test_a_server_that_may_have_roots_is_listed_with_them() -> None:
    server = Server(folders="roots")
    offers = askable(server, roots=True)
    await offers.find(frozenset({"roots"}))
    assert server.connections == [["elicitation", "roots", "sampling"], ["roots"]]
    assert [offer.listed_to for offer in offers.offers()] == [{ALL_FEATURES, frozenset({"roots"})}]


async def test_a_failure_is_not_repeated_at_once_and_is_forgotten_when_the_server_comes_again() -> None:
    server, told = Server(echo=None, sample="sampling"), []
    server.refuses = True
    offers = askable(server, told=told)
    await offers.find()
    await offers.find()
    assert len(server.connections) == 1
    assert offers.tried and told == ["listed"]
    server.refuses = False
    offers.renew(server.everyone())
    assert not offers.tried
    await offers.find()
    assert [offer.own_name for offer in offers.offers()] == ["sample"]


async def test_a_change_is_listed_again_in_the_background_and_the_former_list_stays_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.upstream.askable_offers.CALM_S", 0.05)
    server = Server(echo=None, sample="sampling")
    offers = askable(server)
    await offers.find()
    server.needs["more"] = "sampling"
    offers.suspect()
    offers.suspect()
    assert [offer.own_name for offer in offers.offers()] == ["sample"]
    async with asyncio.timeout(5):
        while len(offers.offers()) < 2:
            await asyncio.sleep(0.01)
    assert len(server.connections) == 2
    server.refuses = True
    offers.suspect()
    await asyncio.sleep(0.2)
    assert len(offers.offers()) == 2, "a listing that fails takes nothing away"
    await offers.close()


def test_capabilities_and_features_say_the_same() -> None:
    assert client_features(
        {"sampling": {"tools": {}}, "elicitation": {}, "roots": {"listChanged": True}}
    ) == {
        "sampling",
        "sampling.tools",
        "elicitation.form",
        "roots",
    }
    assert client_features({"elicitation": {"url": {}}, "experimental": {"x": {}}, "sampling": None}) == {
        "elicitation.url"
    }
    assert declared_capabilities(ALL_FEATURES) == {
        "sampling": {"context": {}, "tools": {}},
        "elicitation": {"form": {}, "url": {}},
        "roots": {},
    }
    assert client_features(declared_capabilities(ALL_FEATURES)) == ALL_FEATURES
