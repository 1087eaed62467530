"""``sluice auth``: sign in to a service with its identity provider, from the command line."""

from typing import Annotated

import typer

from app.cli.remote import Url
from app.cli.terminal import note, show_table

commands = typer.Typer(
    help="Sign in to a service with its identity provider; `invoke` and `middleware` then need no key.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
ClientId = Annotated[
    str,
    typer.Option(envvar="SLUICE_CLIENT_ID", help="Id of this command line at the issuer: a public client."),
]


@commands.command(
    epilog="""Examples:

\b
  sluice auth login --url https://sluice.example.com --client-id sluice-cli
  sluice auth login --url https://sluice.example.com --client-id sluice-cli --device"""
)
def login(
    url: Url,
    client_id: ClientId = "sluice-cli",
    *,
    device: Annotated[
        bool, typer.Option("--device", help="Sign in with a browser elsewhere: show a code for it.")
    ] = False,
) -> None:
    """Sign in, with a browser on this machine, and keep the token for this service alone."""
    from app.cli.access.sign_in import by_browser, by_device, origin_of, planned
    from app.cli.access.token_file import store_token, token_path

    plan = planned(url, client_id)
    token = by_device(plan) if device else by_browser(plan)
    store_token(origin_of(url), token)
    note(f"Signed in to {origin_of(url)}; the token is in {token_path()}.")


@commands.command(epilog="Example:\n\n\b\n  sluice auth status")
def status() -> None:
    """Show which services you are signed in to, without the tokens."""
    from datetime import UTC, datetime

    from app.cli.access.token_file import stored_tokens

    rows = [
        (url, token.issuer, datetime.fromtimestamp(token.ends, UTC), "yes" if token.refresh else "no")
        for url, token in sorted(stored_tokens().items())
    ]
    show_table(("SERVICE", "ISSUER", "ENDS", "RENEWED"), rows)


@commands.command(epilog="Example:\n\n\b\n  sluice auth logout --url https://sluice.example.com")
def logout(url: Url) -> None:
    """Forget the token of a service here; at the issuer it counts until it ends."""
    from app.cli.access.sign_in import origin_of
    from app.cli.access.token_file import store_token

    store_token(origin_of(url), None)
    note(f"Signed out of {origin_of(url)} here.")
