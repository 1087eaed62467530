"""Let months of the record that are over and empty go: a function that drops their partitions, and nothing else.

Expand only; SQLite has no partitions. Safe while the previous release runs: an event of a dropped month would go into
the default partition. Undone by downgrade: nothing is lost but the function.
"""

from alembic import op

revision = "2026_12_05_emptied_months"
down_revision = "2026_12_04_event_identity"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"
SIGNATURE = "sluice_drop_emptied_months()"

# Retention deletes events when each tenant's time is over, so a month is empty before it can be dropped. It is read
# without a lock; only an empty one is locked and read again. Calls wait meanwhile, a tenth of a second at most. With
# row_security off, reading a partition fails where it would leave rows out. A large partition that vacuum has not
# shortened yet could take long to read, and is left for later.
FUNCTION = """
CREATE FUNCTION sluice_drop_emptied_months() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET row_security = off SET lock_timeout = '100ms' AS $$
DECLARE
    part text;
    filled boolean;
    dropped integer := 0;
BEGIN
    FOR part IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'public.audit_event'::regclass AND c.relname ~ '^audit_event_[0-9]{4}_[0-9]{2}$'
          AND to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month 2 days' <= now() AT TIME ZONE 'UTC'
          AND pg_relation_size(c.oid) < 64 * 1024 * 1024
        ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', part) INTO filled;
        CONTINUE WHEN filled;
        BEGIN
            LOCK TABLE ONLY public.audit_event IN ACCESS EXCLUSIVE MODE;
            EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', part) INTO filled;
            IF NOT filled THEN
                EXECUTE format('DROP TABLE public.%I', part);
                dropped := dropped + 1;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            RETURN dropped;
        END;
    END LOOP;
    RETURN dropped;
END $$"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(FUNCTION)
    op.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {SIGNATURE} TO {SYSTEM}")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"DROP FUNCTION {SIGNATURE}")
