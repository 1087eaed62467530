"""Let full text of PostgreSQL use its index: keys by tenant, and two functions that search them.

The operator of full text is not leakproof, so under row-level security no index serves it. The functions run as
sluice_system, whose policy is simply true, take the tenant from the transaction's setting and search its keys alone.

Safe while the previous release runs: it never could use the index that this drops, and knows neither function.
The indexes are built and dropped without blocking writers. A build that was interrupted is begun anew by the next try.
Undone by downgrade: the functions and the index of keys are lost, the older index is built again.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_26_search_functions"
down_revision = "2026_11_25_providers"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
WAITS = ("lock_timeout", "statement_timeout")

# The keys of other tenants' words are other keys: what a search costs does not depend on what others store.
KEYS = """
CREATE FUNCTION sluice_search_keys(tenant text, terms tsvector) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$
    SELECT coalesce(array_agg(tenant || ' ' || lexeme), '{}') FROM unnest(tsvector_to_array(terms)) AS lexeme
$$"""
DEFINER = """STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    me CONSTANT text := nullif(current_setting('app.tenant', true), '');"""
# Written so that no other index can serve them, tenant and part are checked in the rows that the keys name.
MATCHING = """public.document_search s WHERE public.sluice_search_keys(s.tenant, s.terms) @> keys
            AND s.tenant || '' = me AND s.part + 0 = ANY (parts)"""
WORD = "unnest(tsvector_to_array(to_tsvector('pg_catalog.english', {}))) AS lexeme"

# A word of more chunks than ``most`` is estimated from 2,000 readable chunks, 40 at each of 50 places.
COUNT = f"""
CREATE FUNCTION sluice_count_words(parts bigint[], words text[], most integer) RETURNS bigint[]
LANGUAGE plpgsql {DEFINER}
    counts bigint[] := array_fill(0::bigint, ARRAY[cardinality(words)]);
    keys text[];
    readable bigint;
    first bigint;
    step bigint;
    estimate record;
BEGIN
    FOR at IN 1..cardinality(words) LOOP
        keys := ARRAY(SELECT me || ' ' || lexeme FROM {WORD.format("words[at]")});
        IF keys <> '{{}}' THEN
            counts[at] := (SELECT count(*) FROM (SELECT FROM {MATCHING} LIMIT most) AS found);
        END IF;
    END LOOP;
    IF most <= ANY (counts) THEN
        SELECT sum(chunks) INTO readable FROM public.collection_part WHERE tenant = me AND id = ANY (parts);
        SELECT min(number), (max(number) - min(number)) / 50 + 1 INTO first, step
            FROM public.document_search WHERE tenant = me;
        FOR estimate IN
            WITH sample AS MATERIALIZED (
                SELECT chunk.terms FROM generate_series(0, 49) AS place CROSS JOIN LATERAL (
                    SELECT s.terms FROM public.document_search s
                    WHERE s.tenant = me AND s.part = ANY (parts)
                    AND s.number >= first + place * step AND s.number < first + (place + 1) * step
                    ORDER BY s.number LIMIT 40
                ) AS chunk
            )
            SELECT word.at, count(*) * readable / (SELECT count(*) FROM sample) AS chunks
            FROM sample, unnest(words) WITH ORDINALITY AS word(word, at)
            WHERE counts[word.at] >= most AND terms @@ plainto_tsquery('pg_catalog.english', word.word)
            GROUP BY word.at
        LOOP
            counts[estimate.at] := greatest(most, estimate.chunks);
        END LOOP;
    END IF;
    RETURN counts;
END $$"""  # noqa: S608 - our own words

# Words come rarest first. Where all that match are too many to rank, those with more of the words are.
MATCH = f"""
CREATE FUNCTION sluice_match_words(
    parts bigint[], words text[], weights double precision[], ranked integer, wanted integer
) RETURNS SETOF bigint LANGUAGE plpgsql {DEFINER}
    many CONSTANT integer := cardinality(words);
    candidates bigint[] := '{{}}';
    more bigint[];
    keys text[];
    queries tsquery[] := ARRAY(SELECT plainto_tsquery('pg_catalog.english', word) FROM unnest(words) AS word);
BEGIN
    FOR at IN 1..many LOOP
        keys := ARRAY(SELECT me || ' ' || lexeme FROM {WORD.format("words[at]")});
        CONTINUE WHEN keys = '{{}}';
        more := ARRAY(SELECT s.number FROM {MATCHING} LIMIT ranked + 1);
        IF cardinality(candidates) + cardinality(more) <= ranked THEN
            candidates := candidates || more;
            CONTINUE;
        END IF;
        FOR upto IN REVERSE many..at LOOP
            CONTINUE WHEN upto NOT IN (many, at + 1, at);
            keys := ARRAY(
                SELECT me || ' ' || lexeme FROM {WORD.format("array_to_string(words[at:upto], ' ')")}
            );
            candidates := candidates || ARRAY(
                SELECT s.number FROM {MATCHING} LIMIT ranked - cardinality(candidates)
            );
        END LOOP;
        EXIT;
    END LOOP;
    RETURN QUERY SELECT s.number FROM public.document_search s
        WHERE s.tenant = me AND s.number = ANY (candidates)
        ORDER BY (
            SELECT sum(weight * ts_rank(s.terms, query, 1)) FROM unnest(queries, weights) AS word(query, weight)
        ) DESC, s.number LIMIT wanted;
END $$"""  # noqa: S608 - as above

FUNCTIONS = {
    "sluice_count_words(bigint[], text[], integer)": COUNT,
    "sluice_match_words(bigint[], text[], double precision[], integer, integer)": MATCH,
}
# A function's new owner must be allowed to create in its schema, for this moment.
OWNED = """
DO $$ BEGIN
    GRANT CREATE ON SCHEMA public TO {system};
    {alter};
    REVOKE CREATE ON SCHEMA public FROM {system};
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'This login may not give a function to the role {system}.'
        USING HINT = 'Migrate as the owner of the database, who owns the schema public.';
END $$"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(KEYS.replace("FUNCTION", "OR REPLACE FUNCTION", 1))
    for signature, statement in FUNCTIONS.items():
        op.execute(f"DROP FUNCTION IF EXISTS {signature}")
        op.execute(statement)
        op.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {APP}")
        op.execute(OWNED.format(system=SYSTEM, alter=f"ALTER FUNCTION {signature} OWNER TO {SYSTEM}"))
    _exchange(
        "ix_document_search_keys",
        "gin (sluice_search_keys(tenant, terms)) WITH (fastupdate = off)",
        drop="ix_document_search_terms",
    )


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for signature in FUNCTIONS:
        op.execute(f"DROP FUNCTION IF EXISTS {signature}")
    _exchange("ix_document_search_terms", "gin (terms)", drop="ix_document_search_keys")
    op.execute("DROP FUNCTION IF EXISTS sluice_search_keys(text, tsvector)")


def _exchange(name: str, definition: str, *, drop: str) -> None:
    """Build one index of document_search and drop another while others write."""
    asked = f"SELECT {', '.join(f'current_setting({wait!r})' for wait in WAITS)}"
    before = op.get_bind().execute(sa.text(asked)).one()
    with op.get_context().autocommit_block():
        # A concurrent build waits for transactions that began before it, without blocking anybody.
        _set_waits(dict.fromkeys(WAITS, "0"))
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.execute(f"CREATE INDEX CONCURRENTLY {name} ON document_search USING {definition}")
        # Without statistics of the keys the planner takes every word for a common one.
        op.execute("ANALYZE document_search")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {drop}")
        _set_waits(dict(zip(WAITS, before, strict=True)))


def _set_waits(values: dict[str, str]) -> None:
    for name, value in values.items():
        op.execute(f"SET {name} = '{value}'")
