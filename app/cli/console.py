"""``sluice console``: open the console in a browser, signed in by a link that works once."""

import sys
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import USAGE, fail, note

if TYPE_CHECKING:
    from app.assembly import Services

EPILOG = """Examples:

\b
  sluice console
  sluice console --key 0f1e2d3c --print
  sluice console --url https://sluice.example.com

The link is for one key, whose roles and networks the session has. Who runs this command has the host, so no secret is
asked for; the link is on record."""

KeyId = Annotated[
    str | None,
    typer.Option("--key", help="Id of the key to sign in as; without it, in development, the first one."),
]
Url = Annotated[
    str | None,
    typer.Option(
        envvar="SLUICE_URL", help="URL of the service; without it, where the settings of this host put it."
    ),
]


def console(
    key: KeyId = None,
    url: Url = None,
    *,
    only_print: Annotated[bool, typer.Option("--print", help="Print the link, open nothing.")] = False,
) -> None:
    """Sign in to the console as a key: print a link that works once, within five minutes, and open it."""
    from app.cli.host import on_host
    from app.cli.status.service import own_url
    from app.settings import load

    settings = load()
    if key is None and settings.environment != "development":
        fail("Name a key with --key: `sluice keys list` shows their ids.", USAGE)
    token = on_host(lambda services: _offered(services, key))
    address = (
        f"{(url or own_url(settings.http.host, settings.http.port)).rstrip('/')}/console/sign-in#{token}"
    )
    print(address)
    note("The link signs in once, within five minutes.")
    if not only_print and sys.stdout.isatty():
        webbrowser.open(address)


async def _offered(services: "Services", key: str | None) -> str:
    from app.services.access.bootstrap import list_first_keys
    from app.services.access.console_sessions import ConsoleSessions

    sessions = ConsoleSessions(services.sessions, services.access.authenticator, services.audit)
    ids = [key] if key is not None else await list_first_keys(services.access)
    if not ids:
        fail("No key was made in development: name one with --key.", USAGE)
    return await sessions.offer(ids[0])
