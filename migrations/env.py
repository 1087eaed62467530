"""Run migrations on the connection that app.store.migrate hands over, or on SLUICE_DATABASE__URL by hand."""

import os

from alembic import context
from sqlalchemy import Connection, text

from app.store.migrate import included, is_table_of_ours, with_connection
from app.store.schema import metadata

LOCK_TIMEOUT = "5s"
STATEMENT_TIMEOUT = "10min"


def migrate(connection: Connection) -> None:
    """Run the asked-for migrations, giving up soon on a lock that traffic holds.

    Each has a transaction of its own on PostgreSQL; on SQLite all have one.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.execute(text(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
        connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_object=included,
        include_name=is_table_of_ours,
        compare_type=True,
        render_as_batch=connection.dialect.name == "sqlite",
        # Indexes are built concurrently between transactions. On SQLite the one transaction is also the lock, which
        # Alembic would give up after each migration, because it takes SQLite's for unable to hold changes of tables.
        transaction_per_migration=connection.dialect.name == "postgresql",
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    migrate(given)
else:
    settings = (os.environ.get(f"SLUICE_DATABASE__{name}") for name in ("DIRECT_URL", "URL"))
    url = context.get_x_argument(as_dictionary=True).get("url") or next(filter(None, settings), None)
    if not url:
        raise SystemExit("Say which database: alembic -x url=… or SLUICE_DATABASE__URL.")
    with_connection(url, migrate)
