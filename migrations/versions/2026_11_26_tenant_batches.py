"""Add what stores the writes of many tenants in one statement on PostgreSQL: a role, its policies, two functions.

Expand only; SQLite has nothing to change. It makes the role sluice_batch where it is absent, as a member's role of
sluice_app (which needs CREATEROLE; otherwise an administrator runs before: CREATE ROLE sluice_batch NOLOGIN;
GRANT sluice_batch TO sluice_app WITH INHERIT FALSE, SET TRUE).
Safe while the previous release runs: it does not know the functions.
Undone by downgrade: nothing is lost; the role stays, since it belongs to the whole cluster.
"""

from alembic import op

revision = "2026_11_26_tenant_batches"
down_revision = "2026_11_26_blind_index"
branch_labels = None
depends_on = None

APP, BATCH = "sluice_app", "sluice_batch"

# The application's role may take the batch's role, but never has its rights without taking it: a transaction of one
# tenant sees no others, whatever its settings say.
ROLE = f"""
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{BATCH}') THEN
        BEGIN
            CREATE ROLE {BATCH} NOLOGIN;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'The role {BATCH} is absent and this login may not create it.'
                    USING HINT = 'An administrator runs: CREATE ROLE {BATCH} NOLOGIN; '
                                 'GRANT {BATCH} TO {APP} WITH INHERIT FALSE, SET TRUE';
        END;
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_auth_members m
        WHERE m.roleid = '{BATCH}'::regrole AND m.member = '{APP}'::regrole AND m.set_option AND NOT m.inherit_option
    ) THEN
        BEGIN
            GRANT {BATCH} TO {APP} WITH INHERIT FALSE, SET TRUE;
        EXCEPTION
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'The role {APP} may not take the role {BATCH}, and this login may not change that.'
                    USING HINT = 'An administrator runs: GRANT {BATCH} TO {APP} WITH INHERIT FALSE, SET TRUE';
            -- The migration of another database of this cluster did it at the same time.
            WHEN unique_violation OR internal_error THEN NULL;
        END;
    END IF;
END $$
"""  # noqa: S608 - our own names

GRANTS = (
    "SELECT, INSERT, UPDATE (counters) ON scope",
    "SELECT (tenant, scope, type, ordinal, lookup), INSERT ON entry",
    "INSERT ON audit_event",
    "SELECT ON installation",
)
COMMANDS = {
    "scope": ("SELECT", "INSERT", "UPDATE"),
    "entry": ("SELECT", "INSERT"),
    "audit_event": ("INSERT",),
}

# A scalar subquery is computed once in a statement, not for each row.
MEMBER = "tenant = ANY ((SELECT nullif(current_setting('app.tenants', true), '')::text[])::text[])"

EVENT_COLUMNS = {
    "tenant": "text",
    "id": "uuid",
    "at": "timestamptz",
    "actor": "text",
    "roles": "jsonb",
    **dict.fromkeys(("action", "outcome", "middleware"), "text"),
    "policy_version": "bigint",
    **dict.fromkeys(("error_code", "scope_ref", "in_hmac", "out_hmac"), "text"),
    **dict.fromkeys(("blocks", "bytes_in", "bytes_out"), "bigint"),
    "counts": "jsonb",
    "duration_us": "bigint",
    **dict.fromkeys(("request_id", "traceparent"), "text"),
    "details": "jsonb",
    **dict.fromkeys(("sealed", "mac"), "bytea"),
}
SCOPE_COLUMNS = {
    **dict.fromkeys(("tenant", "id"), "text"),
    **dict.fromkeys(("generation", "restore_epoch"), "bigint"),
    **dict.fromkeys(("before", "counters"), "jsonb"),
    "expires": "timestamptz",
    "dek_wrapped": "bytea",
    "kek_version": "bigint",
    "owner": "text",
}
ENTRY_COLUMNS = {
    "unit": "bigint",
    **dict.fromkeys(("tenant", "scope", "type"), "text"),
    "ordinal": "bigint",
    **dict.fromkeys(("lookup", "ciphertext"), "bytea"),
    "origin": "text",
    "blind": "bytea",
}

ASSUME = f"""
    PERFORM set_config('role', '{BATCH}', true), set_config('app.tenants', tenants::text, true);
"""
EPOCH = "SELECT CAST(value AS bigint) FROM installation WHERE name = 'restore_epoch'"

READ = f"""
CREATE FUNCTION sluice_read_batch(
    tenants text[], of_scope text[], id_of text[], of_entry text[], scope_of text[], type_of text[], lookup_of bytea[]
) RETURNS TABLE (
    kind text, "at" bigint, "number" bigint, id text, generation bigint, state text, expires timestamptz,
    counters jsonb, restore_epoch bigint, dek_wrapped bytea, kek_version bigint, owner text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN {ASSUME}
    RETURN QUERY
        SELECT 'scope', q.at, NULL::bigint, s.id, s.generation, s.state, s.expires, s.counters, s.restore_epoch,
               s.dek_wrapped, s.kek_version, s.owner
        FROM unnest(of_scope, id_of) WITH ORDINALITY AS q(tenant, id, at)
        JOIN scope s ON s.tenant = q.tenant AND s.id = q.id;
    IF cardinality(of_entry) > 0 THEN
        RETURN QUERY
            SELECT 'entry', q.at, e.ordinal, NULL, NULL::bigint, NULL, NULL::timestamptz, NULL::jsonb, NULL::bigint,
                   NULL::bytea, NULL::bigint, NULL
            FROM unnest(of_entry, scope_of, type_of, lookup_of) WITH ORDINALITY AS q(tenant, scope, type, lookup, at)
            JOIN entry e
              ON e.tenant = q.tenant AND e.scope = q.scope AND e.type = q.type AND e.lookup = q.lookup;
    END IF;
    RETURN QUERY
        SELECT 'epoch', NULL::bigint, ({EPOCH}), NULL, NULL::bigint, NULL, NULL::timestamptz, NULL::jsonb,
               NULL::bigint, NULL::bytea, NULL::bigint, NULL
        WHERE EXISTS ({EPOCH});
END $$
"""  # noqa: S608 - our own names


def _parameters(prefix: str, columns: dict[str, str]) -> str:
    return ", ".join(f"{prefix}_{name} {kind}[]" for name, kind in columns.items())


def _rows(prefix: str, columns: dict[str, str], *, numbered: str = "") -> str:
    arrays = ", ".join(f"{prefix}_{name}" for name in columns)
    ordinality = "WITH ORDINALITY " if numbered else ""
    names = ", ".join([*columns, *([numbered] if numbered else [])])
    return f"unnest({arrays}) {ordinality}AS q({names})"


# What is compared under the lock is all that the numbers were computed from. A scope that fails, or that another
# writer locks, stays out with its values and records; the caller hears which scopes did not.
STORE = f"""
CREATE FUNCTION sluice_store_batch(
    tenants text[], waits bigint[], moment timestamptz, {_parameters("s", SCOPE_COLUMNS)},
    {_parameters("e", ENTRY_COLUMNS)}, a_request bigint[], {_parameters("a", EVENT_COLUMNS)}
) RETURNS bigint[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    stored bigint[] := '{{}}';
    made bigint[];
BEGIN {ASSUME}
    IF EXISTS (
        SELECT FROM unnest(a_request, a_tenant) AS q(request, tenant) WHERE q.tenant IS DISTINCT FROM tenants[q.request]
    ) OR EXISTS (
        SELECT FROM unnest(e_unit, e_tenant, e_scope) AS q(unit, tenant, scope)
        WHERE q.tenant IS DISTINCT FROM s_tenant[q.unit] OR q.scope IS DISTINCT FROM s_id[q.unit]
    ) OR EXISTS (
        SELECT FROM unnest(tenants, waits) AS q(tenant, unit)
        WHERE q.unit IS NOT NULL AND q.tenant IS DISTINCT FROM s_tenant[q.unit]
    ) THEN
        RAISE EXCEPTION 'A row of the batch is not of its request''s tenant.' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF cardinality(s_id) > 0 THEN
        SELECT coalesce(array_agg(free.unit), '{{}}') INTO stored FROM (
            SELECT q.unit
            FROM {_rows("s", SCOPE_COLUMNS, numbered="unit")}
            JOIN scope s ON s.tenant = q.tenant AND s.id = q.id
            WHERE q.before IS NOT NULL AND s.counters = q.before AND s.generation = q.generation
              AND s.restore_epoch = q.restore_epoch AND s.state = 'active' AND (s.expires IS NULL OR s.expires > moment)
            FOR UPDATE OF s SKIP LOCKED
        ) AS free;
        UPDATE scope s SET counters = q.counters
        FROM {_rows("s", SCOPE_COLUMNS, numbered="unit")}
        WHERE s.tenant = q.tenant AND s.id = q.id AND q.unit = ANY (stored);
        WITH added AS (
            INSERT INTO scope (tenant, id, created, expires, state, generation, counters, restore_epoch, dek_wrapped,
                               kek_version, owner)
            SELECT q.tenant, q.id, moment, q.expires, 'active', q.generation, q.counters, q.restore_epoch,
                   q.dek_wrapped, q.kek_version, q.owner
            FROM {_rows("s", SCOPE_COLUMNS)}
            WHERE q.before IS NULL AND q.restore_epoch = coalesce(({EPOCH}), 0)
              AND pg_try_advisory_xact_lock(hashtextextended(q.tenant || chr(31) || q.id, 0))
            ON CONFLICT (tenant, id) DO NOTHING
            RETURNING tenant, id
        )
        SELECT coalesce(array_agg(q.unit), '{{}}') INTO made
        FROM unnest(s_tenant, s_id) WITH ORDINALITY AS q(tenant, id, unit)
        JOIN added ON added.tenant = q.tenant AND added.id = q.id;
        stored := stored || made;
        INSERT INTO entry (tenant, scope, type, ordinal, lookup, ciphertext, origin, blind, created)
        SELECT q.tenant, q.scope, q.type, q.ordinal, q.lookup, q.ciphertext, q.origin, q.blind, moment
        FROM {_rows("e", ENTRY_COLUMNS)}
        WHERE q.unit = ANY (stored);
    END IF;
    INSERT INTO audit_event ({", ".join(EVENT_COLUMNS)})
    SELECT {", ".join(f"q.{name}" for name in EVENT_COLUMNS)}
    FROM unnest(a_request, {", ".join(f"a_{name}" for name in EVENT_COLUMNS)})
        AS q(request, {", ".join(EVENT_COLUMNS)})
    WHERE waits[q.request] IS NULL OR waits[q.request] = ANY (stored);
    RETURN stored;
END $$
"""  # noqa: S608 - our own names


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(ROLE)
    op.execute(f"GRANT USAGE ON SCHEMA public TO {BATCH}")
    for grant in GRANTS:
        op.execute(f"GRANT {grant} TO {BATCH}")
    for table, commands in COMMANDS.items():
        for command in commands:
            checks = {"INSERT": f"WITH CHECK ({MEMBER})", "UPDATE": f"USING ({MEMBER}) WITH CHECK ({MEMBER})"}
            op.execute(
                f"CREATE POLICY tenants_{command.lower()} ON {table} FOR {command} TO {BATCH} "
                + checks.get(command, f"USING ({MEMBER})")
            )
    op.execute(READ)
    op.execute(STORE)


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute("DROP FUNCTION sluice_store_batch")
    op.execute("DROP FUNCTION sluice_read_batch")
    for table, commands in COMMANDS.items():
        for command in commands:
            op.execute(f"DROP POLICY tenants_{command.lower()} ON {table}")
    for grant in GRANTS:
        op.execute(f"REVOKE {grant} FROM {BATCH}")
    op.execute(f"REVOKE USAGE ON SCHEMA public FROM {BATCH}")
