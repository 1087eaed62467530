"""``sluice db``: the schema of the database."""

from typing import Annotated

import typer

from app.cli.terminal import confirm

commands = typer.Typer(
    help="Bring the database's schema forward or back.", no_args_is_help=True, rich_markup_mode=None
)


@commands.command(
    epilog="Example:\n\n\b\n  SLUICE_DATABASE__URL=postgresql://owner@localhost/sluice sluice db upgrade"
)
def upgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go to.")] = "head",
) -> None:
    """Bring the database forward, to the newest schema unless told otherwise.

    Run it as the owner of the tables, before the new release starts: the previous release keeps working.
    """
    from app.store import migrate

    url = _url()
    migrate.upgrade(url, revision)
    print(f"The database is at revision {migrate.current(url)}.")


@commands.command(epilog="Example:\n\n\b\n  sluice db current")
def current() -> None:
    """Show the revision of the database and whether it is the newest."""
    from app.store import migrate

    url = _url()
    found = migrate.current(url)
    if found is None:
        print("The database is empty: run `sluice db upgrade`.")
    elif found == migrate.head():
        print(f"{found} (newest)")
    else:
        print(f"{found}; the newest is {migrate.head()}: run `sluice db upgrade`.")


@commands.command(epilog="Example:\n\n\b\n  sluice db downgrade base --yes")
def downgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go back to; base empties the database.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take the database back to an earlier schema; what that loses stands in the header of each migration."""
    from app.store import migrate

    confirm(f"Going back to {revision} can delete data. Go on?", yes=yes)
    url = _url()
    migrate.downgrade(url, revision)
    print(f"The database is at revision {migrate.current(url) or 'base (empty)'}.")


def _url() -> str:
    from app.settings import load

    return load().database.url.get_secret_value()
