"""``sluice db``: migrate the database schema."""

from typing import Annotated

import typer

from app.cli.terminal import confirm, fail, note

commands = typer.Typer(
    help="Upgrade or downgrade the database schema.", no_args_is_help=True, rich_markup_mode=None
)


@commands.command(
    epilog="Example:\n\n\b\n  SLUICE_DATABASE__URL=postgresql://owner@localhost/sluice sluice db upgrade"
)
def upgrade(
    revision: Annotated[str, typer.Argument(help="Target revision.")] = "head",
) -> None:
    """Upgrade the database, by default to the newest schema.

    Run it as the owner of the tables before starting the new release. The previous release keeps working.
    """
    from app.store import migrate

    url = _url()
    migrate.upgrade(url, revision)
    print(f"The database is at revision {migrate.current(url)}.")


@commands.command(epilog="Example:\n\n\b\n  sluice db current")
def current() -> None:
    """Show the revision of the database and whether it is the newest."""
    from app.store import migrate

    url = _url(reads=True)
    revision = migrate.current(url)
    if revision is None:
        print("The database is empty: run `sluice db upgrade`.")
    elif revision == migrate.head():
        print(f"{revision} (newest)")
    else:
        print(f"{revision}; the newest is {migrate.head()}: run `sluice db upgrade`.")


@commands.command(epilog="Example:\n\n\b\n  sluice db downgrade base --yes")
def downgrade(
    revision: Annotated[str, typer.Argument(help="Target revision; base removes all tables.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
) -> None:
    """Downgrade the database to an earlier schema. The header of each migration says what data it deletes."""
    from app.store import migrate

    confirm(f"Downgrading to {revision} can delete data. Continue?", yes=yes)
    url = _url(reads=True)
    migrate.downgrade(url, revision)
    print(f"The database is at revision {migrate.current(url) or 'base (empty)'}.")


@commands.command("index-vectors", epilog="Example:\n\n\b\n  sluice db index-vectors")
def index_vectors() -> None:
    """Build indexes of vectors for tenants with many documents, and drop those that none needs (PostgreSQL).

    Run it as the owner of the tables where the service's login is not; readers and writers go on meanwhile.
    """
    import asyncio

    from app.services.documents.vector_indexes import VectorIndexes
    from app.settings import load
    from app.store.database import Database

    url, least = _url(reads=True), load().database.vector_index_chunks

    async def keep() -> None:
        async with Database(url) as database:
            plan = await VectorIndexes(database, least).keep()
        if not plan.permitted:
            fail("Only the owner of the tables may do this: put its login into SLUICE_DATABASE__URL.")
        print(f"{len(plan.build)} built, {len(plan.drop)} dropped")

    asyncio.run(keep())


def _url(*, reads: bool = False) -> str:
    """Return the URL of the database, and say which it is; ``reads``: a file that is not there is no database."""
    from app.settings import load

    database = load().database
    if reads and database.sqlite_file is not None and not database.sqlite_file.is_file():
        fail(f"There is no {database.display_name}: run `sluice db upgrade`, or set SLUICE_DATABASE__URL.")
    note(f"sluice: on this host, {database.display_name}")
    return database.owner_url
