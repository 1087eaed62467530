"""Large tenants on SQLite are searched in an index beside the database, with the same results, or not at all."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.engines.documents.tantivy_index import IndexShelf, build_index
from app.services.documents.collections import CollectionService
from app.services.documents.retrieval import RetrievalService
from app.services.documents.side_index import SideIndex
from app.store.database import Database
from app.store.documents.collections import list_parts
from tests.factories import with_schema
from tests.fakes import FakeEmbedder
from tests.integration.collection_setup import Library, open_library

LEAST = 8
QUESTION = "Who approved the budget of the zeppelin?"


@pytest.fixture
async def library(tmp_path: Path, tenant: str) -> AsyncIterator[Library]:
    database = Database(with_schema(f"sqlite:///{tmp_path}/sluice.db"))
    async with open_library(database, tenant) as opened:
        await opened.make()
        side = SideIndex(database, IndexShelf(tmp_path / "index"), LEAST)
        retrieval = RetrievalService(database, FakeEmbedder(), side)
        collections = CollectionService(database, opened.vault.audit, side=side)
        for number in range(12):
            word = ("budget", "zeppelin", "weather")[number % 3]
            mine = ["key:11111111"] if number == 0 else []
            await opened.add(
                f"d{number}", f"The {word} of {number} was approved.", title=f"D{number}", access=mine
            )
        yield Library(**{**vars(opened), "retrieval": retrieval, "collections": collections})
    await database.close()


def side_of(library: Library) -> SideIndex:
    assert library.retrieval.side is not None
    return library.retrieval.side


async def is_used(library: Library) -> bool:
    async with library.database.transaction(library.tenant, write=False) as tx:
        return side_of(library).find(library.tenant, await list_parts(tx, library.tenant)) is not None


async def test_results_are_those_of_the_database(library: Library) -> None:
    before = await library.ask(QUESTION, limit=20)
    await side_of(library).keep()
    assert not await is_used(library), "the documents did not stand still yet"
    await side_of(library).keep()
    assert await is_used(library)
    assert await library.ask(QUESTION, limit=20) == before
    everything = await library.titles(QUESTION, frozenset({"*", "key:11111111"}), limit=20)
    assert set(everything) - {one.title for one in before} == {"D0"}


async def test_a_change_is_found_at_once_and_indexed_later(library: Library) -> None:
    for _ in range(2):
        await side_of(library).keep()
    await library.add("new", "A quagga was approved.", title="New")
    assert not await is_used(library)
    assert await library.titles("quagga", limit=1) == ["New"]
    for _ in range(2):
        await side_of(library).keep()
    assert await is_used(library)
    assert await library.titles("quagga", limit=1) == ["New"]


async def test_a_deleted_document_leaves_the_index(library: Library, tmp_path: Path) -> None:
    added = await library.add("gone", "A xylocanth was approved.", title="Gone")
    assert added.document is not None
    for _ in range(2):
        await side_of(library).keep()
    assert await is_used(library)
    assert await library.titles("xylocanth", limit=1) == ["Gone"], "the control: before, it is there"
    await library.collections.delete_document(library.caller, "notes", added.document.id)
    assert not list((tmp_path / "index").iterdir())
    assert "Gone" not in await library.titles("xylocanth")


async def test_small_tenants_have_none(library: Library, tmp_path: Path) -> None:
    small = SideIndex(library.database, IndexShelf(tmp_path / "small"), least=1000)
    for _ in range(2):
        await small.keep()
    assert not (tmp_path / "small").exists()


def test_a_folder_that_was_cut_off_is_not_opened(tmp_path: Path) -> None:
    shelf = IndexShelf(tmp_path)
    (tmp_path / "acme" / "half").mkdir(parents=True)
    assert shelf.get("acme") is None
    build_index(tmp_path / "acme" / "whole", {1: 1}, [(1, 1, "t", "", "budget")])
    found = shelf.get("acme")
    assert found is not None
    assert found.match_words([1], ["budgets"], 5) == [1]
    assert found.match_words([], ["budgets"], 5) == []
    assert shelf.get("acme") is found
