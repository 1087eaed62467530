"""Documents in scripts without spaces, or with marks, are found by their words, whenever they were stored."""

from collections.abc import AsyncIterator, Sequence

import pytest
from sqlalchemy import text

from app.core.contracts.engines import Embeddings, EngineReport
from app.engines.documents.tantivy_index import IndexShelf
from app.engines.encoder import ENGINE
from app.services.documents.preparation import DocumentWords
from app.services.documents.retrieval import RetrievalService
from app.services.documents.side_index import SideIndex
from app.store.database import Database
from app.store.documents import search
from app.store.documents.collections import list_parts
from tests.fakes import FakeEmbedder
from tests.integration.collection_setup import Library, open_library

pytestmark = pytest.mark.in_turn("database_url")

TEXTS = {
    "ja": "東京都の予算は昨年承認された。猫はデータを見る。",
    "zh": "委员会批准了飞艇的预算。",
    "ko": "위원회가 비행선의 예산을 승인했다.",
    "th": "คณะกรรมการอนุมัติงบประมาณ",
    "hi": "समिति ने बजट को मंजूरी दी।",
    "ru": "Российский бюджет дирижабля.",
    "el": "Ο προϋπολογισμός του αερόπλοιου εγκρίθηκε.",
    "ar": "وافقت اللجنة على ميزانية المنطاد.",
    "de": "Der Zeppelin flöge für dreißig Straßen.",
    "en": "A plain zeppelin.",
}
QUESTIONS = {
    "ja": ("東京", "予算の承認", "猫", "データ", "\uff83\uff9e\uff70\uff80"),
    "zh": ("飞艇预算", "批准"),
    "ko": ("비행선",),
    "th": ("งบประมาณ",),
    "hi": ("मंजूरी",),
    "ru": ("российский", "бюджет", "дирижаблями", "российского"),
    "el": ("προϋπολογισμού", "αερόπλοια"),
    "ar": ("المنطاد", "والمنطاد", "منطاد", "لجنة"),
    "de": ("flöge", "floge", "Straßen"),
}  # fmt: skip


class Misleading(FakeEmbedder):
    """Takes what begins with one letter for the same; named like the embedded encoder, or like one of yours."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        vectors = [self._one("z" if "zz" in body else "y") for body in texts]
        return Embeddings(vectors, EngineReport(self.name, "1"))


@pytest.fixture
async def library(database: Database, tenant: str) -> AsyncIterator[Library]:
    async with open_library(database, tenant, None) as opened:
        await opened.make()
        for language, body in TEXTS.items():
            await opened.add(language, body, title=language)
        yield opened


async def all_are_found(library: Library) -> None:
    for language, questions in QUESTIONS.items():
        for question in questions:
            passages = await library.ask(question)
            assert [one.title for one in passages] == [language], question
            assert passages[0].text == TEXTS[language]


async def words_of(library: Library) -> int:
    async with library.database.transaction(library.tenant, write=False) as tx:
        return sum(part.words for part in await list_parts(tx, library.tenant))


async def test_words_of_every_script_are_found_and_the_text_is_given_out_as_it_was(library: Library) -> None:
    await all_are_found(library)
    assert await library.titles("飞艇 zeppelin plain", limit=3) == ["en", "zh", "de"]


async def test_more_parts_than_a_query_names(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_MOST_NAMED_PARTS", 0)
    await library.add("mine", TEXTS["zh"], title="mine", access=["key:11111111"])
    await all_are_found(library)
    assert set(await library.titles("飞艇", frozenset({"*", "key:11111111"}))) == {"zh", "mine"}


async def test_what_is_deleted_leaves_no_words(library: Library) -> None:
    await library.collections.delete(library.caller, "notes")
    assert await library.ask("東京") == []
    if library.database.embedded:
        async with library.database.system_transaction() as tx:
            left = "SELECT count(*) FROM document_search_words WHERE rowid NOT IN (SELECT number FROM document_chunk)"
            assert (await tx.execute(text(left))).scalar_one() == 0


async def test_what_was_stored_before_is_indexed_again_once(library: Library) -> None:
    words = await words_of(library)
    await _as_before(library)
    assert await words_of(library) < words
    assert await library.titles("飞艇预算") == []
    again = DocumentWords(library.database)
    assert await again.prepare_stored() >= len(TEXTS)
    await all_are_found(library)
    assert await words_of(library) == words
    async with library.database.transaction(library.tenant, write=False) as tx:
        (part,) = await list_parts(tx, library.tenant)
    assert await again.prepare_stored() == 0
    async with library.database.transaction(library.tenant, write=False) as tx:
        assert await list_parts(tx, library.tenant) == [part]


async def test_an_index_beside_the_database_has_them_too(library: Library, tmp_path: object) -> None:
    side = SideIndex(library.database, IndexShelf(tmp_path / "index"), 1)  # type: ignore[operator]
    for _ in range(2):
        await side.keep()
    retrieval = RetrievalService(library.database, None, side)
    await all_are_found(Library(**{**vars(library), "retrieval": retrieval}))


@pytest.mark.parametrize(("name", "first"), [(ENGINE, "right"), ("multilingual", "wrong")])
async def test_an_encoder_of_english_has_no_vote_in_other_scripts(
    database: Database, tenant: str, name: str, first: str
) -> None:
    async with open_library(database, tenant, Misleading(name)) as library:
        await library.make()
        await library.add("right", "飞艇的预算", title="right")
        await library.add("wrong", "天气预报预 zz", title="wrong")
        assert (await library.titles("飞艇预算 zz"))[0] == first


async def _as_before(library: Library) -> None:
    """Bring documents, index and counts to the state in which the former release left them."""
    statements = [
        "UPDATE collection_document SET prepared = 0 WHERE tenant = :tenant",
        "UPDATE collection_document SET words = 1 WHERE tenant = :tenant AND title <> 'en'",
        (
            "UPDATE collection_part SET revision = revision + 1, words = "
            "(SELECT sum(d.words) FROM collection_document d "
            "WHERE d.tenant = collection_part.tenant AND d.part = collection_part.id) WHERE tenant = :tenant"
        ),
    ]
    if library.database.embedded:
        statements.append(
            "DELETE FROM document_search_words WHERE rowid IN "
            "(SELECT number FROM document_chunk WHERE tenant = :tenant)"
        )
    else:
        statements.append(
            "UPDATE document_search s SET terms = to_tsvector('english', c.text) FROM document_chunk c "
            "WHERE c.number = s.number AND c.tenant = s.tenant AND s.tenant = :tenant"
        )
    async with library.database.transaction(library.tenant) as tx:
        for statement in statements:
            await tx.execute(text(statement), {"tenant": library.tenant})
