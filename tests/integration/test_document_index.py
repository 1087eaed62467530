"""Documents in OpenSearch, Elasticsearch or Qdrant: found as the database finds them, by those who may.

Against servers of our own that speak these wire formats; none of the real ones takes part.
"""

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from app.core.contracts.engines import Embeddings, EngineReport, RetrievalQuery
from app.engines.documents.chunk_index import IndexOptions
from app.engines.resilience import unobserved
from app.services.documents.indexes import DocumentIndexes
from app.services.documents.retrieval import RetrievalService
from app.store.database import Database
from tests.factories import PATIENT, with_schema
from tests.fakes import FakeEmbedder
from tests.integration.collection_setup import open_library
from tests.integration.index_server import cutting, flooding, hanging, saying, serving
from tests.integration.index_setup import (
    QUESTION,
    READERS,
    WORDS,
    Indexed,
    asks,
    fill,
    indexed_on,
    indexes_of,
)
from tests.integration.opensearch_server import OpenSearchServer
from tests.integration.qdrant_server import QdrantServer


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return a database of its own: an index follows all tenants of a database."""
    return with_schema(f"sqlite:///{tmp_path}/sluice.db")


@pytest.fixture(params=["opensearch", "qdrant"])
async def indexed(request: pytest.FixtureRequest, url: str, tenant: str) -> AsyncIterator[Indexed]:
    async for one in indexed_on(url, tenant, request.param):
        yield one


async def test_on_postgresql_the_index_and_the_database_agree(own_postgres_url: str, tenant: str) -> None:
    async for indexed in indexed_on(own_postgres_url, tenant, "opensearch"):
        ids = await fill(indexed.without, 8)
        await indexed.indexing.keep()
        ours, theirs = await indexed.both(QUESTION, frozenset({"*", *READERS}))
        assert ours.passages == theirs.passages
        assert ours.report.name == "indexed-hybrid"
        gone, *kept = ids.values()
        await indexed.with_index.collections.delete_document(indexed.without.caller, "notes", gone)
        assert indexed.documents() == set(kept)


async def test_the_index_finds_for_every_principal_what_the_database_finds_in_the_same_order(
    indexed: Indexed,
) -> None:
    await fill(indexed.without)
    await indexed.indexing.keep()
    chance = random.Random(5)
    for _ in range(8):
        principals = frozenset({"*", *chance.sample(READERS, chance.randint(0, 3))})
        question = " ".join(chance.sample(WORDS, 4))
        ours, theirs = await indexed.both(question, principals)
        assert ours.passages == theirs.passages
        assert ours.passages[0]
        assert ours.report.name == "indexed-hybrid"
        assert not ours.report.degraded
    assert asks(indexed.server), "the control: it was asked"


async def test_elasticsearch_is_asked_in_its_own_way(url: str, tenant: str) -> None:
    async for indexed in indexed_on(url, tenant, "elasticsearch"):
        await fill(indexed.without, 8)
        await indexed.indexing.keep()
        ours, theirs = await indexed.both(QUESTION, frozenset({"*", *READERS}))
        assert ours.passages == theirs.passages
        assert not ours.report.degraded
        assert all(one.headers["authorization"] == "ApiKey k" for one in indexed.server.seen)


async def test_who_may_read_is_part_of_every_question(indexed: Indexed) -> None:
    await fill(indexed.without)
    async with open_library(indexed.without.database, f"{indexed.without.tenant}-b") as other:
        await other.make()
        await fill(other, 3)
    await indexed.indexing.keep()
    indexed.server.seen.clear()
    await indexed.both(QUESTION, frozenset({"*", "role:auditor"}))
    counted = [one for one in indexed.server.seen if "count" in one.path]
    questions = asks(indexed.server)
    assert questions
    for one in [*questions, *counted]:
        said = str(one.body)
        assert indexed.without.tenant in said
        assert f"{indexed.without.tenant}-b" not in said
        assert "'part'" in said


async def test_texts_stay_in_the_database(indexed: Indexed) -> None:
    await indexed.without.add("a", "The zeppelin was approved. Approving it took long.", title="Plans")
    await indexed.indexing.keep()
    assert len(indexed.documents()) == 1
    assert "The zeppelin was approved" not in str([one.body for one in indexed.server.seen])


async def test_a_change_is_found_at_once_and_indexed_with_the_next_round(indexed: Indexed) -> None:
    await fill(indexed.without, 4)
    await indexed.indexing.keep()
    added = await indexed.without.add("new", "A quagga was approved.", title="New")
    await indexed.without.add("d0", "A numbat took its place.", title="Numbat")
    for _ in range(2):
        assert (await indexed.with_index.titles("quagga", limit=1)) == ["New"]
        assert (await indexed.with_index.titles("numbat", limit=1)) == ["Numbat"]
        ours, theirs = await indexed.both("quagga numbat budget")
        assert ours.passages == theirs.passages
        await indexed.indexing.keep()
    assert added.document is not None
    assert added.document.id in indexed.documents()


async def test_a_deleted_document_leaves_the_index_before_the_answer(indexed: Indexed) -> None:
    ids = await fill(indexed.without, 4)
    await indexed.indexing.keep()
    gone = next(iter(ids.values()))
    assert gone in indexed.documents(), "the control"
    await indexed.with_index.collections.delete_document(indexed.without.caller, "notes", gone)
    assert indexed.documents() == set(ids.values()) - {gone}
    await indexed.with_index.collections.delete(indexed.without.caller, "notes")
    assert indexed.documents() == set()


async def test_a_deletion_that_fails_is_done_later(indexed: Indexed) -> None:
    ids = await fill(indexed.without, 5)
    await indexed.indexing.keep()
    left = set(ids.values())
    for fault in (cutting, saying(b"{}"), saying(b"oops", 500)):
        gone = min(left)
        indexed.server.hits, indexed.server.fault = lambda path: "delete" in path, fault
        await indexed.with_index.collections.delete_document(indexed.without.caller, "notes", gone)
        await indexed.indexing.keep()
        assert gone in indexed.documents(), "the control: the server did not do it"
        indexed.server.fault = None
        await indexed.indexing.keep()
        left.discard(gone)
        assert indexed.documents() == left


async def test_a_deletion_that_is_only_half_done_is_done_again(indexed: Indexed) -> None:
    ids = await fill(indexed.without, 2)
    await indexed.indexing.keep()
    gone, kept = ids.values()
    half = b'{"timed_out": false, "version_conflicts": 1, "failures": [], "deleted": 0}'
    pending = b'{"status": "ok", "result": {"operation_id": 3, "status": "acknowledged"}}'
    answer = pending if isinstance(indexed.server, QdrantServer) else half
    indexed.server.hits, indexed.server.fault = lambda path: "delete" in path, saying(answer)
    await indexed.with_index.collections.delete_document(indexed.without.caller, "notes", gone)
    indexed.server.fault = None
    await indexed.indexing.keep()
    assert indexed.documents() == {kept}


FAULTS = {
    "cuts": cutting,
    "fails": saying(b'{"error": "words of the server"}', 500),
    "floods": flooding,
    "garbage": saying(b"<html>hello</html>"),
    "nothing": saying(b""),
    "another shape": saying(b'{"hits": [], "status": "ok", "result": []}'),
    "not all shards": saying(
        b'{"timed_out": false, "_shards": {"failed": 1}, "hits": {"hits": []}, '
        b'"aggregations": {"words": {"buckets": {}}}}'
    ),
    "redirects": saying(b"", 302, location="http://127.0.0.1:1/"),
    "compressed": saying(b"\x1f\x8b", **{"content-encoding": "gzip"}),
}


async def test_where_the_server_fails_the_database_answers_and_says_so(indexed: Indexed) -> None:
    await fill(indexed.without, 5)
    await indexed.indexing.keep()
    served = EngineReport("indexed-hybrid", "1+1", degraded=False)
    for name, fault in FAULTS.items():
        assert await indexed.report() == served, f"the control, before one that {name}"
        indexed.server.fault = fault
        ours, theirs = await indexed.both(QUESTION)
        assert ours.passages == theirs.passages, name
        assert (ours.report.name, ours.report.degraded) == ("embedded-hybrid", True), name
        indexed.server.fault = None
    assert await indexed.report() == served


async def test_a_server_that_hangs_costs_no_more_than_its_time(url: str, tenant: str) -> None:
    async for indexed in indexed_on(url, tenant, "qdrant", 1):
        await fill(indexed.without, 2)
        await indexed.indexing.keep()
        indexed.server.fault = hanging
        ours, theirs = await indexed.both(QUESTION)
        assert ours.passages == theirs.passages
        assert ours.report.degraded
        (gone,) = {(await indexed.without.ask(QUESTION, limit=1))[0].document}
        await indexed.with_index.collections.delete_document(indexed.without.caller, "notes", gone)
        indexed.server.fault = None
        await indexed.indexing.keep()
        assert gone not in indexed.documents()


async def test_a_server_that_keeps_failing_is_left_alone(indexed: Indexed) -> None:
    await fill(indexed.without, 2)
    await indexed.indexing.keep()
    indexed.server.fault = saying(b"", 503)
    for _ in range(3):
        await indexed.both(QUESTION)
    indexed.server.seen.clear()
    assert (await indexed.report()).degraded
    assert indexed.server.seen == []


async def test_chunks_that_nobody_may_read_are_not_shown_whatever_the_server_proposes(
    indexed: Indexed,
) -> None:
    await indexed.without.add("open", "The budget of the zeppelin.", title="Open")
    secret = await indexed.without.add(
        "closed", "The secret budget.", title="Closed", access=["key:22222222"]
    )
    assert secret.document is not None
    await indexed.indexing.keep()
    numbers = range(1, 400)
    hits = [{"_id": str(number)} for number in numbers[:40]]
    search = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": hits}}
    if isinstance(indexed.server, QdrantServer):
        points = str([{"id": number} for number in numbers[:40]]).replace("'", '"')
        answer = f'{{"status": "ok", "result": {{"points": {points}}}}}'.encode()
        indexed.server.hits = lambda path: path.endswith("query")
    else:
        words = {str(at): {"doc_count": 1} for at in range(5)}
        answer = str(search | {"aggregations": {"words": {"buckets": words}}}).replace("'", '"').encode()
        answer = answer.replace(b"False", b"false")
        indexed.server.hits = lambda path: path.endswith("_search")
    indexed.server.fault = saying(answer)
    titles = await indexed.with_index.titles("secret budget", limit=30)
    assert "Closed" not in titles


async def test_an_index_that_was_emptied_or_is_gone_is_filled_again(indexed: Indexed) -> None:
    ids = await fill(indexed.without, 4)
    await indexed.indexing.keep()
    server = indexed.server
    if isinstance(server, QdrantServer):
        server.collections.clear()
    else:
        assert isinstance(server, OpenSearchServer)
        server.indexes.clear()
        server.aliases.clear()
    await indexed.indexing.keep()
    assert indexed.documents() == set(ids.values())
    for name in indexed.names():
        held = server.points[name] if isinstance(server, QdrantServer) else server.documents[name]
        held.pop(next(iter(held)))
        if isinstance(server, OpenSearchServer):
            server.refreshed[name] = dict(server.documents[name])
    indexed.indexing.counted.clear()  # as after a restart
    for _ in range(2):
        await indexed.indexing.keep()
    assert indexed.documents() == set(ids.values())
    assert await indexed.indexing.rebuild()
    assert indexed.documents() == set(ids.values())


class OtherEmbedder(FakeEmbedder):
    async def embed(self, texts: Sequence[str]) -> Embeddings:
        made = await super().embed(texts)
        return Embeddings(made.vectors, EngineReport("fake", "2"))


async def test_another_embedder_makes_another_index_and_the_old_one_goes(indexed: Indexed) -> None:
    ids = await fill(indexed.without, 4)
    await indexed.indexing.keep()
    (old,) = indexed.names()
    database, other = indexed.without.database, OtherEmbedder()
    kind = "qdrant" if isinstance(indexed.server, QdrantServer) else indexed.server.kind  # type: ignore[attr-defined]
    indexes = indexes_of(database, indexed.server, kind, other)
    assert indexes.indexing is not None
    await indexes.indexing.keep()
    assert old in indexed.names(), "it stays until all vectors are made anew"
    async with open_library(database, indexed.without.tenant, other) as library:
        await library.vectors.embed_missing()
    for _ in range(2):
        await indexes.indexing.keep()
    (new,) = indexed.names()
    assert new != old
    assert indexed.documents() == set(ids.values())
    await indexes.close()


async def test_without_an_embedder_words_alone_are_indexed(url: str, tenant: str) -> None:
    database, server = Database(url, patience=PATIENT), QdrantServer()
    async with serving(server), open_library(database, tenant, None) as library:
        await library.make()
        await library.add("a", "The budget.", title="A")
        indexes = indexes_of(database, server, "qdrant", None)
        assert indexes.indexing is not None
        await indexes.indexing.keep()
        retrieval = RetrievalService(database, None, None, indexes.search)
        found = await retrieval.retrieve([RetrievalQuery(tenant, frozenset({"*"}), "budget")])
        assert [one.title for one in found.passages[0]] == ["A"]
        assert found.report.name == "indexed-lexical"
        assert indexes.indexing.target is not None
        assert server.collections[indexes.indexing.target.name]["vectors"] == {}
        await indexes.close()
    await database.close()


@pytest.mark.parametrize("kind", ["opensearch", "elasticsearch"])
async def test_chunks_that_a_busy_server_turned_away_are_sent_again_and_refused_ones_are_not_forgotten(
    url: str, tenant: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async for indexed in indexed_on(url, tenant, kind):
        server = indexed.server
        assert isinstance(server, OpenSearchServer)
        ids = await fill(indexed.without, 4)
        server.busy = 2
        await indexed.indexing.keep()
        assert indexed.documents() == set(ids.values())
        bad = await indexed.without.add("bad", "The budget of the quagga.", title="Bad")
        assert bad.document is not None
        server.refused = bad.document.id
        await indexed.indexing.keep()
        assert "a chunk was refused" in caplog.text
        assert "quagga" not in caplog.text
        assert await indexed.with_index.titles("quagga", limit=1) == ["Bad"], "the database finds it"
        server.refused = ""
        await indexed.indexing.keep()
        assert bad.document.id in indexed.documents()


async def test_credentials_are_in_no_log(url: str, tenant: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    database, server = Database(url, patience=PATIENT), OpenSearchServer()
    async with serving(server), open_library(database, tenant) as library:
        await library.make()
        await library.add("a", "The budget.", title="A")
        options = IndexOptions(server.url, "opensearch", "ann", password="corvidae-lantern")
        indexes = DocumentIndexes.elsewhere(database, FakeEmbedder(), options, unobserved)
        assert indexes.indexing is not None
        await indexes.indexing.keep()
        server.fault = saying(b"corvidae-lantern", 401)
        await indexes.indexing.keep()
        assert server.seen[0].headers["authorization"] == "Basic YW5uOmNvcnZpZGFlLWxhbnRlcm4="
        assert "the index of documents failed: status 401" in caplog.text
        for word in ("corvidae", "YW5uOmN"):
            assert word not in caplog.text
            assert word not in repr(options)
        await indexes.close()
    await database.close()
