"""Who may read is decided before anything is ranked: others' documents are neither found, counted nor felt."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from app.core.errors import NotFoundError
from app.services.documents import retrieval
from app.store.database import Database
from app.store.documents import search
from app.store.documents.collections import list_parts
from tests.integration.collection_setup import EVERYBODY, Library, open_library

PRINCIPALS = ["*", "role:invoker", "role:auditor", "key:0a1b2c3d", "key:11111111", "key:22222222"]
WORDS = [
    "budget",
    "travel",
    "hiring",
    "roadmap",
    "incident",
    "review",
    "offsite",
    "contract",
    "audit",
    "launch",
]


@pytest.fixture
async def library(database: Database, tenant: str) -> AsyncIterator[Library]:
    async with open_library(database, tenant) as opened:
        yield opened


async def filled(library: Library) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Fill three collections with documents of many readers; return who may read each, as written down here."""
    chance = random.Random(7)
    lists = {"open": ["*"], "team": ["role:invoker", "key:11111111"], "closed": []}
    readers = {}
    for collection, access in lists.items():
        await library.make(collection, access)
        for number in range(7):
            own = chance.sample(PRINCIPALS[1:], chance.randint(0, 2))
            name = f"{collection}-{number}"
            text = " ".join(chance.choices(WORDS, k=12))
            await library.add(name, text, collection=collection, title=name, access=own)
            readers[name] = frozenset(access), frozenset(own)
    return readers


def may_read(principals: frozenset[str], readers: tuple[frozenset[str], frozenset[str]]) -> bool:
    collection, own = readers
    return bool(principals & collection) and (not own or bool(principals & own))


async def test_every_principal_finds_exactly_what_it_may_read(library: Library) -> None:
    readers = await filled(library)
    chance = random.Random(3)
    for _ in range(12):
        principals = frozenset({"*", *chance.sample(PRINCIPALS[1:], chance.randint(0, 3))})
        found = await library.titles(" ".join(WORDS), principals, limit=50)
        assert set(found) == {name for name, who in readers.items() if may_read(principals, who)}


async def test_without_the_check_everything_is_found(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = await filled(library)
    monkeypatch.setattr(retrieval, "_may_read", lambda *_: True)
    assert set(await library.titles(" ".join(WORDS), frozenset(), limit=50)) == set(readers)


async def test_scores_do_not_change_with_what_others_have(library: Library, database: Database) -> None:
    await library.make()
    for number, word in enumerate(WORDS):
        await library.add(
            f"mine-{number}", f"The {word} was discussed at length on {number} May.", title="Minutes"
        )
    before = await library.ask("How did the budget review go?")
    for number in range(12):
        secret = f"budget review {number} " * 5
        await library.add(f"theirs-{number}", secret, title="budget review", access=["key:22222222"])
    async with open_library(database, f"t-{uuid4().hex[:12]}") as other:
        await other.make()
        for number in range(12):
            await other.add(f"foreign-{number}", f"budget review {number} " * 5)
    assert await library.ask("How did the budget review go?") == before
    assert (
        len(await library.ask("How did the budget review go?", frozenset({"*", "key:22222222"}), limit=50))
        > 12
    )


async def test_tenants_do_not_see_each_other(library: Library, database: Database) -> None:
    await library.make()
    await library.add("a", "The roadmap of acme")
    async with open_library(database, f"t-{uuid4().hex[:12]}") as other:
        await other.make()
        assert await other.ask("roadmap") == []
        assert (
            await other.ask("roadmap", frozenset(PRINCIPALS), sources=("notes", "documents"), limit=50) == []
        )


async def test_lists_hold_the_callers_own_whether_other_tenants_names_come_before_or_after_its_own(
    database: Database,
) -> None:
    run = uuid4().hex[:12]
    async with AsyncExitStack() as stack:
        libraries = [
            await stack.enter_async_context(open_library(database, f"{first}-{run}")) for first in "amz"
        ]
        for own in libraries:
            await own.make()
            for background in (False, True):
                name = f"{own.tenant}-{background}"
                await own.add(name, f"The roadmap of {own.tenant}", title=own.tenant, background=background)
        for own in libraries:
            assert [len(await own.collections.list(own.caller)), await own.titles("roadmap")] == [
                1,
                [own.tenant],
            ]
            (collection,) = await own.collections.list(own.caller)
            assert (collection.documents, collection.chunks) == (1, 1)
            documents = await own.collections.documents(own.caller, "notes")
            assert [document.external_id for document in documents] == [f"{own.tenant}-False"]
            (waiting,) = await own.ingestion.ingestions(own.caller, "notes")
            for other in libraries:
                if other is not own:
                    with pytest.raises(NotFoundError):
                        await other.collections.document(other.caller, "notes", documents[0].id)
                    with pytest.raises(NotFoundError):
                        await other.ingestion.ingestion(other.caller, "notes", waiting.id)


async def test_sources_are_names_of_collections_or_of_sources(library: Library) -> None:
    await library.make("internal_docs")
    await library.make("mailbox")
    await library.add("a", "roadmap one", collection="internal_docs", source="wiki", title="A")
    await library.add("b", "roadmap two", collection="mailbox", source="email", title="B")
    await library.add("c", "roadmap three", collection="mailbox", source="lists", title="C")
    assert set(await library.titles("roadmap", sources=("internal_docs", "email"))) == {"A", "B"}
    assert set(await library.titles("roadmap", sources=("mailbox",))) == {"B", "C"}
    assert await library.titles("roadmap", sources=("nothing",)) == []
    assert await library.titles("roadmap", sources=()) == []


async def test_a_changed_access_list_holds_at_once(library: Library) -> None:
    await library.make()
    await library.add("a", "roadmap", title="A")
    assert await library.titles("roadmap") == ["A"]
    await library.make(access=["role:auditor"])
    assert await library.titles("roadmap") == []
    assert await library.titles("roadmap", frozenset({"role:auditor"})) == ["A"]
    await library.add("a", "roadmap", title="A", access=["key:11111111"])
    assert await library.titles("roadmap", frozenset({"role:auditor"})) == []


async def test_documents_with_lists_of_their_own_in_more_parts_than_a_query_names_are_still_told_apart(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MOST_NAMED_PARTS", 6)
    await library.make()
    for number in range(10):
        await library.add(f"d{number}", f"roadmap {number}", title=f"D{number}", access=[f"key:{number:08x}"])
    async with library.database.transaction(library.tenant, write=False) as tx:
        assert len(await list_parts(tx, library.tenant)) == 10
    everyone = EVERYBODY | {f"key:{number:08x}" for number in range(8)}
    assert set(await library.titles("roadmap", everyone, limit=50)) == {f"D{number}" for number in range(8)}
    assert await library.titles("roadmap", frozenset({"*", "key:00000007"})) == ["D7"]
