"""What every Retriever keeps to: the fake of the tests and the one on the database."""

from collections.abc import AsyncIterator

import pytest

from app.core.contracts.engines import RetrievalQuery, RetrievedPassage, Retriever
from app.store.database import Database
from tests.fakes_retrieval import FakeRetriever, KeptDocument
from tests.integration.collection_setup import open_library

TEXTS = {"a": "budget and travel plans", "b": "budget of the team", "c": "weather report"}


@pytest.fixture(params=["fake", "real"])
async def retriever(
    request: pytest.FixtureRequest, sqlite_database_url: str, tenant: str
) -> AsyncIterator[Retriever]:
    if request.param == "fake":
        kept = [
            KeptDocument(
                RetrievedPassage(name, name, "notes", f"from-{name}", text, 0),
                tenant,
                frozenset({"*"} if name != "b" else {"key:11111111"}),
            )
            for name, text in TEXTS.items()
        ]
        yield FakeRetriever(kept)
        return
    database = Database(sqlite_database_url)
    async with open_library(database, tenant) as library:
        await library.make()
        for name, text in TEXTS.items():
            access = ["key:11111111"] if name == "b" else []
            await library.add(name, text, title=name, source=f"from-{name}", access=access)
        yield library.retrieval
    await database.close()


async def test_the_contract(retriever: Retriever, tenant: str) -> None:
    everybody, one = frozenset({"*"}), frozenset({"*", "key:11111111"})
    found = await retriever.retrieve(
        [
            RetrievalQuery(tenant, everybody, "travel budget"),
            RetrievalQuery(tenant, one, "travel budget"),
            RetrievalQuery(tenant, one, "travel budget", limit=1),
            RetrievalQuery(tenant, one, "travel budget", ("from-b",)),
            RetrievalQuery("nobody", one, "travel budget"),
        ]
    )
    titles = [[passage.title for passage in passages] for passages in found.passages]
    assert titles[0][0] == "a"
    assert "b" not in titles[0]
    assert titles[1][:2] == ["a", "b"]
    assert titles[2:] == [["a"], ["b"], []]
    for passages in found.passages:
        scores = [passage.relevance for passage in passages]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)
    least = found.passages[1][0].relevance
    (strict,) = (
        await retriever.retrieve([RetrievalQuery(tenant, one, "travel budget", min_relevance=least)])
    ).passages
    assert [passage.title for passage in strict] == ["a"]
    assert found.report.name
    assert (await retriever.retrieve([])).passages == []
