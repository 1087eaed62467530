"""Documents are taken in once, replaced whole, read in the background over restarts, and deleted for good."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import ascii_lowercase

import pytest

from app.core.access import Role
from app.core.catalog.collections import CollectionDefinition
from app.core.contracts.engines import Embeddings, EngineReport
from app.core.errors import (
    ForbiddenError,
    InvalidArgumentsError,
    NotFoundError,
    TooLargeError,
    UpstreamUnavailableError,
)
from app.services.documents import ingestion
from app.services.documents.ingestion import IngestionService
from app.services.documents.retrieval import RetrievalService
from app.services.documents.vectors import DocumentVectors
from app.store.database import Database
from app.store.documents.collections import list_parts
from app.store.documents.search import scrub_index
from app.store.migrate import upgrade
from tests.factories import caller_of
from tests.fakes import FakeEmbedder
from tests.integration.collection_setup import Library, open_library

pytestmark = pytest.mark.in_turn("database_url")

CANARIES = ("zanzibarquartz", "Quokkafjord")


class OtherEmbedder(FakeEmbedder):
    """Another version, which the vectors of the first cannot be compared with; slow enough to be cut off."""

    def __init__(self) -> None:
        self.calls = 0

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        self.calls += 1
        made = await super().embed(texts)
        return Embeddings(made.vectors, EngineReport("fake", "2"))


class AbsentEmbedder(FakeEmbedder):
    async def embed(self, texts: Sequence[str]) -> Embeddings:
        raise UpstreamUnavailableError("There is no encoder.")


@pytest.fixture
async def library(database: Database, tenant: str) -> AsyncIterator[Library]:
    async with open_library(database, tenant) as opened:
        await opened.make()
        yield opened


async def test_the_same_again_changes_nothing_and_other_content_replaces_the_document(
    library: Library,
) -> None:
    first = await library.add("a", "# Plan\nThe alpha launch is in May.")
    again = await library.add("a", "# Plan\nThe alpha launch is in May.")
    other = await library.add("a", "# Plan\nThe beta launch is in June.")
    assert [one.outcome for one in (first, again, other)] == ["created", "unchanged", "updated"]
    assert first.document is not None
    assert other.document is not None
    assert other.document.id == first.document.id
    assert other.document.title == "Plan"
    assert await library.titles("alpha May") == []
    assert await library.titles("beta June") == ["Plan"]
    assert (await library.collections.get(library.caller, "notes")).documents == 1
    retitled = await library.add("a", "# Plan\nThe beta launch is in June.", title="Other plan")
    assert retitled.outcome == "updated"
    same_name_elsewhere = await library.add("a", "gamma", source="wiki")
    assert same_name_elsewhere.outcome == "created"


async def test_readers_see_the_old_or_the_new_and_never_both(library: Library) -> None:
    texts = [f"Launch. {word} " * 400 for word in ("alpha", "beta")]
    await library.add("a", texts[0])
    seen = set()

    reads, written = 0, False

    async def read() -> None:
        nonlocal reads
        while not written:
            for one in await library.ask("launch"):
                seen.add(frozenset({"alpha", "beta"} & set(one.text.split())))
            reads += 1

    async def write() -> None:
        nonlocal written
        for number in range(6):
            await library.add("a", texts[(number + 1) % 2])
            # The second read from here on began after the text was stored.
            following = reads + 2
            while reads < following:
                await asyncio.sleep(0.001)
        written = True

    await asyncio.gather(read(), write())
    assert seen == {frozenset({"alpha"}), frozenset({"beta"})}


async def test_a_queued_document_is_read_by_whoever_comes_after_a_restart(
    library: Library, database: Database, tenant: str
) -> None:
    queued = await library.add("long", "The zeppelin landed. " * 200, background=True)
    assert queued.waiting is not None
    assert queued.waiting.state == "queued"
    assert await library.ask("zeppelin") == []
    async with open_library(database, tenant) as restarted:
        while await restarted.ingestion.work():
            pass
        found = await restarted.ingestion.ingestion(restarted.caller, "notes", queued.waiting.id)
        assert (found.state, found.done) == ("done", found.total)
        assert await restarted.titles("zeppelin") == ["long"]


async def test_work_that_was_cut_off_is_taken_up_and_given_up_in_the_end(library: Library) -> None:
    later = datetime.now(UTC)

    class Dying(FakeEmbedder):
        async def embed(self, texts: Sequence[str]) -> Embeddings:
            raise asyncio.CancelledError

    queued = await library.add("a", "The zeppelin landed.", background=True)
    assert queued.waiting is not None
    for _ in range(3):
        dying = IngestionService(library.database, library.vault.audit, Dying(), lambda at=later: at)
        with pytest.raises(asyncio.CancelledError):
            await dying.work()
        later += timedelta(minutes=10)
    last = IngestionService(library.database, library.vault.audit, FakeEmbedder(), lambda: later)
    while await last.work():
        pass
    found = await last.ingestion(library.caller, "notes", queued.waiting.id)
    assert found.state == "failed"
    assert found.result is not None
    assert found.result.startswith("invalid_arguments: ")
    assert await library.ask("zeppelin") == []


async def test_an_unreadable_document_fails_with_a_sentence_and_without_its_content(library: Library) -> None:
    broken = await library.add("x.pdf", "%PDF secretword", media_type="application/pdf", background=True)
    good = await library.add("good", "fine", background=True)
    assert broken.waiting is not None
    assert good.waiting is not None
    while await library.ingestion.work():
        pass
    found = await library.ingestion.ingestion(library.caller, "notes", broken.waiting.id)
    assert found.state == "failed"
    assert "secretword" not in str(found.result)
    assert (await library.ingestion.ingestion(library.caller, "notes", good.waiting.id)).state == "done"
    with pytest.raises(InvalidArgumentsError):
        await library.add("x.pdf", "%PDF secretword", media_type="application/pdf")


async def test_what_is_deleted_or_overtaken_while_it_waits_does_not_come_back(library: Library) -> None:
    first = await library.add("a", "alpha")
    assert first.document is not None
    await library.add("a", "beta", background=True)
    await library.collections.delete_document(library.caller, "notes", first.document.id)
    await library.add("b", "gamma", background=True)
    await library.add("b", "delta", background=False)
    while await library.ingestion.work():
        pass
    assert await library.ask("alpha beta gamma") == []
    assert await library.titles("delta") == ["b"]


async def test_without_an_embedder_words_decide_and_vectors_are_made_later(library: Library) -> None:
    absent = AbsentEmbedder()
    without = IngestionService(library.database, library.vault.audit, absent)
    plain = RetrievalService(library.database, absent)
    blind = Library(**{**vars(library), "ingestion": without, "retrieval": plain})
    await blind.add("a", "The zeppelin landed.")
    query = (await blind.retrieval.retrieve([])).report
    assert query.name == "embedded-lexical"
    assert await blind.titles("zeppelin") == ["a"]
    # Words that no document has take no place among those that are looked for.
    assert await blind.titles("zeppelin " + " ".join(f"unheard{letter}" for letter in ascii_lowercase)) == [
        "a"
    ]
    assert not (await library.collections.get(library.caller, "notes")).embedded
    assert await DocumentVectors(library.database, absent).embed_missing() == 0
    await library.vectors.embed_missing()
    assert (await library.collections.get(library.caller, "notes")).embedded
    assert await _engine(library) == "embedded-hybrid"


async def test_another_embedder_makes_all_vectors_anew_and_words_decide_meanwhile(library: Library) -> None:
    for number in range(3):
        await library.add(f"d{number}", f"The zeppelin landed. {number}")
    assert await _engine(library) == "embedded-hybrid"
    other = OtherEmbedder()
    changed = Library(**{**vars(library), "retrieval": RetrievalService(library.database, other)})
    assert await _engine(changed) == "embedded-lexical"
    assert len(await changed.ask("zeppelin")) == 3
    assert await DocumentVectors(library.database, other).embed_missing() >= 3
    assert await _engine(changed) == "embedded-hybrid"
    assert len(await changed.ask("zeppelin")) == 3
    assert await _engine(library) == "embedded-lexical"
    await library.vectors.embed_missing()


async def _engine(library: Library) -> str:
    from app.core.contracts.engines import RetrievalQuery

    query = RetrievalQuery(library.tenant, frozenset({"*"}), "zeppelin")
    return (await library.retrieval.retrieve([query])).report.name


async def test_meaning_finds_what_words_do_not_and_both_databases_agree(library: Library) -> None:
    for word in ("budget", "travel", "hiring"):
        await library.add(word, f"Notes about {word} and other things.", title=word.title())
    found = await library.ask("budgets for travel")
    assert [one.title for one in found[:2]] == ["Travel", "Budget"]
    assert all(1 >= one.relevance > 0 for one in found)
    assert [one.relevance for one in found] == sorted((one.relevance for one in found), reverse=True)
    assert await library.ask("budgets for travel", min_relevance=found[0].relevance) == found[:1]


async def test_long_documents_are_shown_by_their_best_parts(library: Library) -> None:
    filler = "\n\n".join(f"Paragraph {number} speaks of nothing in particular. " * 12 for number in range(12))
    await library.add("long", f"{filler}\n\n## Landing\n\nThe zeppelin landed safely.\n\n{filler}")
    (passage,) = await library.ask("zeppelin landing", limit=1)
    assert "The zeppelin landed safely." in passage.text
    assert len(passage.text) < 4000


async def test_deleting_leaves_nothing_in_memory_of_any_process(
    library: Library, database: Database, tenant: str
) -> None:
    await library.add("a", "The zeppelin landed.")
    async with open_library(database, tenant) as other:
        assert await other.titles("zeppelin") == ["a"]
        await library.collections.delete(library.caller, "notes")
        for _ in range(100):
            if not other.retrieval.vectors._parts:
                break
            await asyncio.sleep(0.02)
        assert not other.retrieval.vectors._parts
        assert await other.ask("zeppelin") == []
    with pytest.raises(NotFoundError):
        await library.add("a", "again")


async def test_a_tenant_holds_so_many_chunks_and_may_still_replace_documents(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "MAX_CHUNKS_HELD", 2)
    for name in ("a", "b"):
        await library.add(name, "one")
    with pytest.raises(TooLargeError):
        await library.add("c", "three")
    await library.add("b", "another")


async def test_readers_of_deleted_documents_are_forgotten_and_those_of_others_stay(library: Library) -> None:
    kept = await library.add("a", "one", access=["role:auditor"])
    gone = await library.add("b", "two", access=["key:11111111"])
    moved = await library.add("c", "three", access=["key:22222222"])
    assert kept.document is not None and gone.document is not None and moved.document is not None
    await library.collections.delete_document(library.caller, "notes", gone.document.id)
    await library.add("c", "three again", access=["role:auditor"])
    async with library.database.transaction(library.tenant, write=False) as tx:
        assert [part.access for part in await list_parts(tx, library.tenant)] == [("role:auditor",)]
    await library.collections.delete_document(library.caller, "notes", kept.document.id)
    left = await library.collections.get(library.caller, "notes")
    assert (left.documents, left.chunks) == (1, 1)


@pytest.mark.parametrize("way", ["document", "collection", "replaced"])
async def test_no_word_of_a_deleted_document_stays_in_the_files(
    tmp_path: Path, tenant: str, way: str
) -> None:
    url = f"sqlite:///{tmp_path}/sluice.db"
    await asyncio.to_thread(upgrade, url)
    database = Database(url)
    async with open_library(database, tenant) as library:
        await library.make()
        for number in range(20):
            await library.add(f"kept {number}", f"Something about the weather {number}.")
        added = await library.add("gone", f"{CANARIES[0]} meets {CANARIES[1]}", title=CANARIES[1])
        waiting = await library.add("gone", f"{CANARIES[0]} waits", background=True)
        assert added.document is not None
        assert waiting.waiting is not None
        assert _in_files(tmp_path), "the control: before, it is there"
        if way == "document":
            await library.collections.delete_document(library.caller, "notes", added.document.id)
        elif way == "collection":
            await library.collections.delete(library.caller, "notes")
        else:
            while await library.ingestion.work():
                pass
            await library.add("gone", "Only the weather.")
            await library.ingestion.purge()
        assert _in_files(tmp_path) == []
        if way != "collection":
            assert len(await library.ask("weather", limit=50)) >= 20
    await database.close()
    assert _in_files(tmp_path) == []


def _in_files(folder: Path) -> list[str]:
    held = b"".join(path.read_bytes() for path in folder.iterdir()).lower()
    stems = {canary.lower()[:10] for canary in CANARIES}
    return [stem for stem in sorted(stems) if stem.encode() in held]


async def test_scrubbing_an_index_that_holds_nothing_is_harmless(database: Database) -> None:
    await scrub_index(database)


async def test_only_operators_make_fill_and_see_collections(library: Library) -> None:
    await library.add("a", "text")
    for role in set(Role) - {Role.OPERATOR}:
        caller = caller_of(library.tenant, role)
        with pytest.raises(ForbiddenError):
            await library.collections.put(caller, CollectionDefinition(name="mine"))
        with pytest.raises(ForbiddenError):
            await library.collections.documents(caller, "notes")
        with pytest.raises(ForbiddenError):
            await library.collections.delete(caller, "notes")


async def test_every_act_is_on_record_in_ids_and_numbers(library: Library) -> None:
    from app.services.audit.audit import AuditQuery

    added = await library.add("secretname", "secrettext", title="secrettitle")
    assert added.document is not None
    await library.collections.delete_document(library.caller, "notes", added.document.id)
    page = await library.vault.audit.query(library.caller, AuditQuery())
    actions = {event.action: event for event in page.items}
    assert {"collections.put", "documents.put", "documents.delete"} <= set(actions)
    assert actions["documents.put"].details["document"] == added.document.id
    assert dict(actions["collections.put"].details) == {"collection": "notes", "readers": 1}
    assert actions["documents.delete"].details["document"] == added.document.id
    assert "secret" not in str(page.items)
