"""Let events of the record be deleted when their retention is over: a role that may call one function, no more.

Expand only; SQLite has nothing to change. It makes the role sluice_purge where it is absent, which sluice_system may
take (this needs CREATEROLE; otherwise an administrator runs before: CREATE ROLE sluice_purge NOLOGIN;
GRANT sluice_purge TO sluice_system WITH INHERIT FALSE, SET TRUE).
Safe while the previous release runs: it deletes nothing, but it calls what was deleted missing when it verifies.
Undone by downgrade: what was deleted stays deleted; the role stays, since it belongs to the whole cluster.
"""

from alembic import op

revision = "2026_12_01_audit_retention"
down_revision = "2026_11_30_event_numbers"
branch_labels = None
depends_on = None

SYSTEM, PURGE = "sluice_system", "sluice_purge"

ROLE = f"""
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{PURGE}') THEN
        BEGIN
            CREATE ROLE {PURGE} NOLOGIN;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'The role {PURGE} is absent and this login may not create it.'
                    USING HINT = 'An administrator runs: CREATE ROLE {PURGE} NOLOGIN; '
                                 'GRANT {PURGE} TO {SYSTEM} WITH INHERIT FALSE, SET TRUE';
        END;
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_auth_members m
        WHERE m.roleid = '{PURGE}'::regrole AND m.member = '{SYSTEM}'::regrole
          AND m.set_option AND NOT m.inherit_option
    ) THEN
        BEGIN
            GRANT {PURGE} TO {SYSTEM} WITH INHERIT FALSE, SET TRUE;
        EXCEPTION
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'The role {SYSTEM} may not take the role {PURGE}, and this login may not change that.'
                    USING HINT = 'An administrator runs: GRANT {PURGE} TO {SYSTEM} WITH INHERIT FALSE, SET TRUE';
            -- The migration of another database of this cluster did it at the same time.
            WHEN unique_violation OR internal_error THEN NULL;
        END;
    END IF;
END $$
"""  # noqa: S608 - our own names

# The function runs as the owner of the tables, whom FORCE ROW LEVEL SECURITY binds as well.
RULES = {"SELECT": ("audit_event", "log_leaf", "log_entry", "log_checkpoint", "policy")}
RULES["DELETE"] = ("audit_event", "log_leaf")

# Whoever calls it chooses nothing but the tenant, a moment and a number of rows. A row is deleted if the policy that
# holds gives days, its tenant is not held, the newest sealed statement names its position, a head that old was logged
# over it, it is that old by its own time, too, and its scope is not held.
FUNCTION = """
CREATE FUNCTION sluice_purge_audit(of_tenant text, until timestamptz, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    rules jsonb;
    before timestamptz;
    signed bigint;
    stated int8multirange;
    stated_at bigint;
    aged bigint;
    deleted bigint;
BEGIN
    SELECT p.document -> 'retention' INTO rules FROM public.policy p
    WHERE p.tenant = of_tenant ORDER BY p.version DESC LIMIT 1;
    IF (rules ->> 'audit_days') IS NULL OR coalesce((rules ->> 'hold')::boolean, false) THEN
        RETURN 0;
    END IF;
    -- Hours, because a day of a time zone may have 23.
    before := least(until, now() - make_interval(hours => 24 * greatest((rules ->> 'audit_days')::integer, 1)));
    SELECT e.size INTO signed FROM public.log_entry e
    WHERE e.tenant = of_tenant AND e.position < (SELECT max(c.size) FROM public.log_checkpoint c)
    ORDER BY e.size DESC LIMIT 1;
    BEGIN
        SELECT ('{' || regexp_replace(e.details ->> 'pruned', '(\\d+)-(\\d+)', '[\\1,\\2]', 'g') || '}')
               ::int8multirange, l.position
        INTO stated, stated_at
        FROM public.audit_event e
        JOIN public.log_leaf l ON l.tenant = e.tenant AND l.event = e.id AND l.position < signed
        WHERE e.tenant = of_tenant AND e.action = 'audit.purge' AND e.outcome = 'ok'
        ORDER BY l.position DESC LIMIT 1;
    EXCEPTION WHEN data_exception THEN
        RETURN 0;
    END;
    IF stated IS NULL OR isempty(stated) THEN
        RETURN 0;
    END IF;
    SELECT e.size INTO aged FROM public.log_entry e
    WHERE e.tenant = of_tenant AND e.at <= before AND e.size <= (
        SELECT min(c.size) FROM public.log_entry c
        WHERE c.tenant = of_tenant AND c.size >= least(upper(stated), stated_at)
    )
    ORDER BY e.size DESC LIMIT 1;
    IF aged IS NULL THEN
        RETURN 0;
    END IF;
    WITH victims AS MATERIALIZED (
        SELECT l.position, l.event, l.at
        FROM unnest(stated) WITH ORDINALITY AS s(run, number)
        CROSS JOIN LATERAL (
            SELECT l.position, l.event, l.at
            FROM public.log_leaf l
            JOIN public.audit_event e ON e.tenant = l.tenant AND e.id = l.event AND e.at = l.at
            WHERE l.tenant = of_tenant AND l.position >= lower(s.run)
              AND l.position < least(upper(s.run), aged, stated_at) AND e.at <= before AND (
                  e.scope_ref IS NULL OR NOT coalesce(rules -> 'held_scopes' ? e.scope_ref, false)
              )
            ORDER BY l.position LIMIT least(most, 10000)
        ) AS l
        LIMIT least(most, 10000)
    ), events AS (
        DELETE FROM public.audit_event e USING victims v
        WHERE e.tenant = of_tenant AND e.id = v.event AND e.at = v.at
        RETURNING 1
    ), leaves AS (
        DELETE FROM public.log_leaf l USING victims v WHERE l.tenant = of_tenant AND l.position = v.position
    )
    SELECT count(*) INTO deleted FROM events;
    RETURN deleted;
END $$"""
SIGNATURE = "sluice_purge_audit(text, timestamptz, integer)"


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(ROLE)
    for command, tables in RULES.items():
        for table in tables:
            op.execute(
                f"CREATE POLICY purging_{command.lower()} ON {table} FOR {command} TO CURRENT_USER USING (true)"
            )
    op.execute(FUNCTION)
    op.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {SIGNATURE} TO {PURGE}")
    op.execute(f"GRANT USAGE ON SCHEMA public TO {PURGE}")


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(f"DROP FUNCTION {SIGNATURE}")
    for command, tables in RULES.items():
        for table in tables:
            op.execute(f"DROP POLICY purging_{command.lower()} ON {table}")
    op.execute(f"REVOKE USAGE ON SCHEMA public FROM {PURGE}")
