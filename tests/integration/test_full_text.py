"""Full text of PostgreSQL: served by its index under row-level security, bounded, and of one tenant alone."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store import migrate
from app.store.database import Database
from app.store.documents.search import count_matches, match_words
from tests.conftest import connect, fresh_postgres
from tests.integration.collection_setup import Library, open_library

BEFORE = "2026_11_25_providers"
HERE = "2026_11_26_search_functions"
COUNT = "SELECT sluice_count_words(CAST(:parts AS bigint[]), CAST(:words AS text[]), :most)"
MATCH = "SELECT sluice_match_words(CAST(:parts AS bigint[]), CAST(:words AS text[]), ARRAY[2.0, 1.0, 1.0], :most, 50)"


@pytest.fixture(scope="module")
def owned_url(postgres_url: str) -> Iterator[str]:
    """Return a database that a login without superuser rights owns and has migrated."""
    owner = f"owner_{uuid4().hex[:8]}"
    with fresh_postgres(postgres_url) as url:
        name = make_url(url).database
        run(url, f"CREATE ROLE {owner} LOGIN", *MAKE_ROLES, f"GRANT sluice_app, sluice_system TO {owner}")
        run(url, f'ALTER DATABASE "{name}" OWNER TO {owner}')
        owned = make_url(url).set(username=owner).render_as_string(hide_password=False)
        migrate.upgrade(owned)
        yield owned
        run(url, f"REASSIGN OWNED BY {owner} TO postgres", f"DROP OWNED BY {owner}")
    run(postgres_url, f"DROP ROLE {owner}")


MAKE_ROLES = tuple(
    f"DO $$ BEGIN CREATE ROLE {name} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    for name in ("sluice_app", "sluice_system")
)


def run(url: str, *statements: str) -> None:
    async def all_of_them() -> None:
        connection = await connect(url)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    asyncio.run(all_of_them())


@pytest.fixture
async def libraries(owned_url: str) -> AsyncIterator[tuple[Library, Library]]:
    """Return my library and another tenant's; both know the zeppelin, one of them the secret."""
    database = Database(owned_url)
    unique = uuid4().hex[:8]
    async with (
        open_library(database, f"me-{unique}", None) as mine,
        open_library(database, f"you-{unique}", None) as yours,
    ):
        for library in (mine, yours):
            await library.make()
            await library.add("z", "The zeppelin landed in the field.")
        await yours.add("s", "A quokka is secret; so is the zeppelin.")
        yield mine, yours
    await database.close()


async def parts_of(tx: AsyncConnection, tenant: str) -> list[int]:
    query = text("SELECT id FROM collection_part WHERE tenant = :tenant")
    return list((await tx.execute(query, {"tenant": tenant})).scalars())


async def scans(url: str) -> tuple[int, int]:
    """Return how often the index of words served a scan, and how often the whole table was read."""
    owner = await connect(url)
    await owner.execute("SELECT pg_stat_force_next_flush()")
    row = await owner.fetchrow(
        "SELECT (SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'ix_document_search_keys'), seq_scan "
        "FROM pg_stat_user_tables WHERE relname = 'document_search'"
    )
    await owner.close()
    return row[0], row[1]


async def test_the_index_answers_a_question_and_the_table_is_not_read(owned_url: str) -> None:
    database = Database(owned_url, pool_size=1)
    async with open_library(database, f"t-{uuid4().hex[:8]}", None) as library:
        await library.make()
        await library.add("many", "\n\n".join(f"## Part {n}\n\nThe word{n} of page {n}." for n in range(400)))
        await library.add("one", "A lone axolotl.")
        owner = await connect(owned_url)
        await owner.execute("ANALYZE document_search")
        await owner.close()
        async with database.system_transaction() as tx:
            await tx.execute(text("SELECT pg_stat_force_next_flush()"))
        by_index, by_table = await scans(owned_url)
        assert [one.text for one in await library.ask("axolotl")] == ["A lone axolotl."]
        async with database.system_transaction() as tx:
            await tx.execute(text("SELECT pg_stat_force_next_flush()"))
        assert (await scans(owned_url))[0] > by_index
        assert (await scans(owned_url))[1] == by_table
        # The control: the operator itself reads the table, which is why there are functions.
        async with database.transaction(library.tenant) as tx:
            plain = text("SELECT count(*) FROM document_search WHERE terms @@ plainto_tsquery('axolotl')")
            assert (await tx.execute(plain)).scalar_one() == 1
            await tx.execute(text("SELECT pg_stat_force_next_flush()"))
        assert (await scans(owned_url))[1] > by_table
    await database.close()


async def test_no_tenant_finds_or_counts_what_another_stored(libraries: tuple[Library, Library]) -> None:
    mine, yours = libraries
    assert [one.text for one in await mine.ask("zeppelin quokka")] == ["The zeppelin landed in the field."]
    assert len(await yours.ask("zeppelin quokka")) == 2
    async with mine.database.transaction(yours.tenant) as tx:
        foreign = await parts_of(tx, yours.tenant)
    async with mine.database.transaction(mine.tenant) as tx:
        parts = [*foreign, *await parts_of(tx, mine.tenant)]
        # Naming another tenant, its parts, or its keys of words changes nothing.
        words = ["quokka", f"{yours.tenant} quokka", "zeppelin"]
        for tenant in (mine.tenant, yours.tenant):
            assert await count_matches(tx, tenant, parts, words) == [0, 0, 1]
            assert len(await match_words(tx, tenant, parts, words, [3, 2, 1], limit=9)) == 1
        estimated = await tx.execute(text(COUNT), {"parts": parts, "words": words, "most": 1})
        assert estimated.scalar_one() == [0, 0, 1]
    # The control: the same call in a transaction of the other's finds both.
    async with mine.database.transaction(yours.tenant) as tx:
        assert await count_matches(tx, mine.tenant, parts, ["quokka", "zeppelin"]) == [1, 2]


async def test_without_a_tenant_or_the_role_of_requests_nothing_is_searched(
    libraries: tuple[Library, Library],
) -> None:
    mine, _ = libraries
    values = {"parts": [1], "words": ["zeppelin"], "most": 5}
    async with mine.database.transaction(mine.tenant) as tx:
        values["parts"] = await parts_of(tx, mine.tenant)
        assert (await tx.execute(text(COUNT), values)).scalar_one() == [1]
        await tx.execute(text("SELECT set_config('app.tenant', '', true)"))
        assert (await tx.execute(text(COUNT), values)).scalar_one() == [0]
    owner = await connect(mine.database.url.set(drivername="postgresql").render_as_string())
    functions = await owner.fetch(
        "SELECT proname, prosecdef, pg_get_userbyid(proowner) AS owner, proconfig[1] AS path, "
        "has_function_privilege('public', p.oid, 'EXECUTE') AS anybody, rolsuper "
        "FROM pg_proc p JOIN pg_roles r ON r.oid = proowner WHERE proname ~ '^sluice_(count|match)_words'"
    )
    await owner.close()
    assert {row["proname"] for row in functions} == {"sluice_count_words", "sluice_match_words"}
    for row in functions:
        facts = (row["prosecdef"], row["owner"], row["path"], row["anybody"], row["rolsuper"])
        assert facts == (True, "sluice_system", "search_path=pg_catalog, pg_temp", False, False)


async def test_a_chunk_that_may_not_be_read_is_neither_counted_nor_proposed(owned_url: str) -> None:
    database = Database(owned_url)
    async with open_library(database, f"t-{uuid4().hex[:8]}", None) as library:
        await library.make()
        await library.add("open", "The zeppelin is public.")
        await library.add("closed", "The zeppelin is private.", access=["key:11111111"])
        assert [one.text for one in await library.ask("zeppelin")] == ["The zeppelin is public."]
        assert len(await library.ask("zeppelin", frozenset({"*", "key:11111111"}))) == 2
        async with database.transaction(library.tenant) as tx:
            parts = await parts_of(tx, library.tenant)
            counts = [await count_matches(tx, library.tenant, [part], ["zeppelin"]) for part in parts]
        assert counts == [[1], [1]]
    await database.close()


async def test_common_words_are_estimated_and_the_chunks_with_more_words_are_ranked(owned_url: str) -> None:
    database = Database(owned_url)
    async with open_library(database, f"t-{uuid4().hex[:8]}", None) as library:
        await library.make()
        for number in range(40):
            words = ["river"] + ["bank"] * (number % 4 == 0) + ["ferry"] * (number == 36)
            await library.add(f"d{number}", f"Text {number}: {' '.join(words)}.")
        async with database.transaction(library.tenant) as tx:
            values = {"parts": await parts_of(tx, library.tenant), "words": ["ferry", "bank", "river"]}
            for most in (5, 1_000):  # from the sample, which holds all forty, and from the index
                counted = await tx.execute(text(COUNT), values | {"most": most})
                assert counted.scalar_one() == [1, 10, 40]
            every = list((await tx.execute(text(MATCH), values | {"most": 1_000})).scalars())
            assert len(every) == 40
            # Of 5, one has the ferry; the other four have both of the common words.
            ranked = list((await tx.execute(text(MATCH), values | {"most": 5})).scalars())
        assert ranked[0] == every[0]
        assert set(ranked) <= set(every[:10])
        assert len(ranked) >= 4
    await database.close()


@pytest.fixture
def empty_url(postgres_url: str) -> Iterator[str]:
    with fresh_postgres(postgres_url) as url:
        yield url


async def test_an_interrupted_upgrade_is_finished_and_documents_of_before_are_found(empty_url: str) -> None:
    await asyncio.to_thread(migrate.upgrade, empty_url)
    database = Database(empty_url)
    async with open_library(database, "t-old", None) as library:
        await library.make()
        await library.add("old", "The zeppelin of last year.")
        await asyncio.to_thread(migrate.downgrade, empty_url, BEFORE)
        owner = await connect(empty_url)
        # What interruptions leave behind: an index of the name, here of the wrong kind; then all but the revision.
        await owner.execute("CREATE INDEX ix_document_search_keys ON document_search (tenant)")
        await asyncio.to_thread(migrate.upgrade, empty_url, HERE)
        await owner.execute("UPDATE alembic_version SET version_num = $1", BEFORE)
        await asyncio.to_thread(migrate.upgrade, empty_url, HERE)
        await asyncio.to_thread(migrate.upgrade, empty_url)
        names = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'document_search'"
        indexes = dict(await owner.fetch(names))
        await owner.close()
        assert "USING gin (sluice_search_keys(tenant, terms))" in indexes["ix_document_search_keys"]
        assert "ix_document_search_terms" not in indexes
        assert len(await library.ask("zeppelin")) == 1
    await database.close()


async def test_words_of_others_are_not_read_from_statistics(libraries: tuple[Library, Library]) -> None:
    mine, yours = libraries
    words = "SELECT count(*) FROM pg_stats WHERE most_common_elems::text LIKE '%' || $1 || '%'"
    owner = await connect(mine.database.url.set(drivername="postgresql").render_as_string())
    await owner.execute("ANALYZE document_search")
    # The control: they hold words of the other tenant, with its name.
    assert await owner.fetchval(words, yours.tenant) > 0
    for role in ("sluice_app", "sluice_system"):
        async with owner.transaction():
            await owner.execute(f"SET LOCAL ROLE {role}")
            assert await owner.fetchval(words, yours.tenant) == 0
    await owner.close()


async def test_requests_may_not_replace_the_functions(libraries: tuple[Library, Library]) -> None:
    mine, _ = libraries
    for statement in (
        "DROP FUNCTION sluice_search_keys(text, tsvector)",
        "ALTER FUNCTION sluice_count_words(bigint[], text[], integer) SECURITY INVOKER",
        "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ):
        async with mine.database.transaction(mine.tenant) as tx:
            with pytest.raises(DBAPIError, match=r"permission denied|must be owner"):
                await tx.execute(text(statement))
