"""Fill a migrated database with many events and chunks: ``python -m tests.benchmarks.speed.growth_fill --help``.

The rows are made by the database itself, from their numbers, so that ten million take minutes. They have the shape of
rows that the service writes and none of its secrets: no key opens them, and ``audit verify`` would refuse them.
"""

import argparse
import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import asyncpg

from app.core.catalog.search_words import VERSION
from app.store.dialects import async_url

LARGE = "large"
"""The tenant that has every tenth event and most chunks; the other rows are spread evenly over the other tenants."""
SMALL = "tenant-7"
"""One of the others."""
DAYS = 90
RARE_ACTOR, RARE_ACTION, RARE_MIDDLEWARE = "key-rare", "key.revoke", "content_moderation"
GONE_ACTOR = "key-gone"
"""An actor of the first ten days alone, who did every tenth thing then."""
STEP = 500_000

_EVENTS = """
SELECT CASE WHEN i % 10 = 0 THEN 'large' ELSE 'tenant-' || (1 + (i / 10 * 9 + i % 10) * 7919 % ({tenants} - 1)) END,
    {id}, {at},
    CASE WHEN h % 50021 = 0 THEN 'key-rare' WHEN h % 10 < 8 THEN 'key-0' WHEN i < {total} / 9 THEN 'key-gone'
        ELSE 'key-' || (h % 29) END,
    '["invoker"]',
    CASE WHEN h % 40009 = 1 THEN 'key.revoke' WHEN h % 12 = 0 THEN 'tools/call' ELSE 'middleware.invoke' END,
    CASE WHEN h % 30011 = 2 THEN 'failed' WHEN h % 40 = 0 THEN 'refused' ELSE 'ok' END,
    CASE WHEN h % 20011 = 3 THEN 'content_moderation' WHEN h % 12 = 0 THEN NULL ELSE 'pii_redaction' END,
    1, NULL, {scope}, {digest}, {digest}, 1, 400, 420, '{{"PERSON": 2}}', 2500, {request}, NULL,
    CASE WHEN h % 5 = 0 THEN '{{"client_request_id": "theirs-of-a-client-' || (i / 5) || '"}}' ELSE '{{}}' END{json},
    NULL, {mac}{later}
FROM (
    SELECT i, i * 2654435761 % 4294967291 * 1103515245 % 2147483647 AS h, {now} - ({total} - i) * {step_ms} AS ms
    FROM {numbers}
) AS event
"""
_COLUMNS = (
    "tenant, id, at, actor, roles, action, outcome, middleware, policy_version, error_code, scope_ref, in_hmac, "
    "out_hmac, blocks, bytes_in, bytes_out, counts, duration_us, request_id, traceparent, details, sealed, mac"
)
_LATER = {
    "on_behalf_of": "CASE WHEN h % 3 = 0 THEN {user} END",
    "key_name": "'assistant'",
    "address_class": "'private'",
    "decision": "CASE WHEN h % 12 > 0 THEN CASE WHEN h % 4 = 1 THEN 'change' ELSE 'allow' END END",
    "versions": """'{{"sluice": "0.2.0", "engines": {{"pii_redaction": "rules 7"}}}}'{json}""",
    "writer": "'bench'",
    "writer_seq": "i",
    "leaf": "{mac}",
}
"""Columns that tables of older revisions lack."""
_PACE = {"synchronous_commit": "off", "jit": "off", "maintenance_work_mem": "512MB"}
_HEX = "lpad(to_hex({}), {}, '0')"
_POSTGRESQL = {
    "id": f"({_HEX.format('ms', 12)} || '70008' || {_HEX.format('i', 15)})::uuid",
    "at": "to_timestamp(ms / 1000.0)",
    "scope": "repeat(md5((i / 200)::text), 2)",
    "digest": "repeat(md5(i::text), 2)",
    "user": "repeat(md5('user ' || h % 2003), 2)",
    "request": "'request-' || i",
    "json": "::jsonb",
    "mac": "decode(repeat(md5(i::text), 2), 'hex')",
}
_SQLITE = {
    "id": "printf('%012x', ms) || '70008' || printf('%015x', i)",
    "at": "strftime('%Y-%m-%d %H:%M:%f', ms / 1000.0, 'unixepoch') || '000'",
    "scope": "printf('%064x', i / 200)",
    "digest": "printf('%064x', i)",
    "user": "printf('%064x', h % 2003)",
    "request": "'request-' || i",
    "json": "",
    "mac": "CAST(printf('%032d', i) AS BLOB)",
}
_NUMBERS = "(WITH RECURSIVE n(i) AS (SELECT {} UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i FROM n)"

# Words follow a power law: w0 is in most chunks, w100 in one of ten, w9999 in a few.
_CHUNKS = """
INSERT INTO document_chunk (tenant, document, ordinal, number, part, title, headings, text, embedder)
SELECT tenant, tenant, ordinal, nextval('document_chunk_number'), 1, 'A page of ' || tenant, '', words, ''
FROM (
    SELECT CASE WHEN i % 5 < 4 THEN 'large' ELSE 'tenant-' || i / 5 % 50 END AS tenant, i AS ordinal, (
        SELECT string_agg('w' || floor(power(10000, (hashint8extended(i, word) % 100000 + 100000) / 200000.0)) - 1, ' ')
        FROM generate_series(1, 60) AS word
    ) AS words
    FROM generate_series($1::bigint, $2::bigint) AS i
) AS made
"""
_TERMS = """
INSERT INTO document_search (tenant, number, part, embedder, terms)
SELECT tenant, number, part, embedder, setweight(to_tsvector('english', title), 'A') || to_tsvector('english', text)
FROM document_chunk WHERE ordinal BETWEEN $1 AND $2
"""
_HAS = "SELECT attname FROM pg_attribute WHERE attrelid = 'audit_event'::regclass AND attnum > 0"
_INDEXES = """
SELECT indexrelid::regclass::text AS name, replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') AS made
FROM pg_index WHERE indrelid = $1::text::regclass AND NOT indisprimary
"""
_SHELVES = (
    """INSERT INTO tenant SELECT name, now(), 'bench' FROM unnest($1::text[]) AS name ON CONFLICT DO NOTHING""",
    """INSERT INTO collection SELECT name, 'notes', '{"description": "", "access": ["*"]}', now(), 'bench', now()
    FROM unnest($1::text[]) AS name ON CONFLICT DO NOTHING""",
    """INSERT INTO collection_part SELECT name, 1, 'notes', '', '', '[]', 1, 0, 0, '', 1
    FROM unnest($1::text[]) AS name ON CONFLICT DO NOTHING""",
    """INSERT INTO collection_document
    SELECT name, name, 'notes', '', 'page', 1, 'A page', NULL, NULL, 'text/plain', '', 0, 0, 0, now(), now()
    FROM unnest($1::text[]) AS name ON CONFLICT DO NOTHING""",
)
_COUNTED = """
UPDATE collection_part p SET chunks = c.chunks, words = c.chunks * 60, revision = p.revision + 1
FROM (SELECT tenant, count(*) AS chunks FROM document_chunk GROUP BY tenant) c WHERE c.tenant = p.tenant
"""


@dataclass(frozen=True)
class Fill:
    """Rows to add behind the first ``have`` events (or chunks): up to ``total``, over ``tenants`` tenants."""

    have: int
    total: int
    tenants: int

    def steps(self) -> list[tuple[int, int]]:
        """Return ranges of numbers, both ends inclusive."""
        starts = range(self.have + 1, self.total + 1, STEP)
        return [(start, min(start + STEP - 1, self.total)) for start in starts]


async def fill_events(url: str, fill: Fill) -> None:
    """Add events of the last 90 days, oldest first; on PostgreSQL in partitions of their months."""
    pace = {"total": fill.total, "step_ms": DAYS * 86_400_000 // fill.total, "tenants": fill.tenants}
    pace["now"] = time.time_ns() // 1_000_000
    parsed = async_url(url)
    if parsed.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(parsed.database))) as file, file:
            has = {row[1] for row in file.execute("PRAGMA table_info(audit_event)")}
            for first, last in fill.steps():
                numbers = _NUMBERS.format(first, last)
                file.execute(_insert(has, {**_SQLITE, **pace, "numbers": numbers}))
        return
    owner = await owner_of(url)
    try:
        for month in range(DAYS // 28 + 1):
            await owner.execute(_partition(month))
        has = {row[0] for row in await owner.fetch(_HAS)}
        async with without_indexes(owner, "audit_event"):
            for first, last in fill.steps():
                numbers = f"generate_series({first}::bigint, {last}::bigint) AS i"
                await owner.execute(_insert(has, {**_POSTGRESQL, **pace, "numbers": numbers}))
        await owner.execute("VACUUM ANALYZE audit_event")
    finally:
        await owner.close()


def _insert(has: set[str], values: dict[str, Any]) -> str:
    """Return the statement for a table that has these columns."""
    later = [name for name in _LATER if name in has]
    made = "".join(f", {_LATER[name].format(**values)}" for name in later)
    return f"INSERT INTO audit_event ({', '.join([_COLUMNS, *later])})" + _EVENTS.format(**values, later=made)


async def fill_chunks(url: str, fill: Fill) -> None:
    """Add chunks of 60 words to PostgreSQL, four of five in one tenant."""
    owner = await owner_of(url)
    try:
        names = [LARGE, *(f"tenant-{number}" for number in range(50))]
        for statement in _SHELVES:
            await owner.execute(statement, names)
        async with without_indexes(owner, "document_search"):
            for first, last in fill.steps():
                await owner.execute(_CHUNKS, first, last)
                await owner.execute(_TERMS, first, last)
        await owner.execute(_COUNTED)
        await owner.execute(f"UPDATE collection_document SET prepared = {VERSION}")  # noqa: S608 - our own number
        for table in ("document_search", "document_chunk"):
            await owner.execute(f"VACUUM ANALYZE {table}")
    finally:
        await owner.close()


@asynccontextmanager
async def without_indexes(owner: asyncpg.Connection, table: str) -> AsyncIterator[None]:
    """Drop the indexes of a table and build them again afterwards, which is faster than filling them row by row."""
    indexes = await owner.fetch(_INDEXES, table)
    for row in indexes:
        await owner.execute(f"DROP INDEX {row['name']}")
    yield
    for row in indexes:
        await owner.execute(row["made"])


async def owner_of(url: str) -> asyncpg.Connection:
    """Return a connection as the database's owner that does not wait for the disk at each step."""
    address = async_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return await asyncpg.connect(address, server_settings=_PACE)


def _partition(ago: int) -> str:
    """Return the statement that makes the partition of the month ``ago`` months back, where it is absent."""
    return f"""DO $$
    DECLARE month date := (date_trunc('month', now() AT TIME ZONE 'UTC') - make_interval(months => {ago}))::date;
    BEGIN
        EXECUTE format(
            'CREATE TABLE IF NOT EXISTS %I PARTITION OF audit_event FOR VALUES FROM (%L) TO (%L)',
            'audit_event_' || to_char(month, 'YYYY_MM'),
            month::timestamp AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC'
        );
    END $$"""


def main() -> None:
    """Fill the database that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.speed.growth_fill", description=__doc__)
    parser.add_argument("url", help="Address of a migrated database, as its owner.")
    parser.add_argument("--events", type=int, default=0, help="How many audit events.")
    parser.add_argument("--chunks", type=int, default=0, help="How many chunks of documents (PostgreSQL).")
    parser.add_argument("--tenants", type=int, default=5000, help="Over how many tenants.")
    options = parser.parse_args()
    if options.events:
        asyncio.run(fill_events(options.url, Fill(0, options.events, options.tenants)))
    if options.chunks:
        asyncio.run(fill_chunks(options.url, Fill(0, options.chunks, options.tenants)))


if __name__ == "__main__":
    main()
