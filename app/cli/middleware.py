"""``sluice middleware``: list what can be invoked."""

from typing import Annotated

import typer

from app.cli.remote import DEFAULT_URL, Key, Timeout, Url, service
from app.cli.terminal import show_json, show_table

EPILOG = """Examples:

\b
  sluice middleware
  sluice middleware --json | jq '.[].inputSchema'"""


def middleware(
    url: Url = DEFAULT_URL,
    key: Key = None,
    timeout: Timeout = 10.0,
    *,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with the schema of the arguments.")
    ] = False,
) -> None:
    """List the middlewares that the key may invoke on a running service."""
    with service(url, key, timeout) as client:
        listed = client.list_middleware()
    if json:
        show_json(
            [
                {
                    "name": one.name,
                    "title": one.title,
                    "description": one.description,
                    "phase": one.phase,
                    "inputSchema": one.input_schema,
                }
                for one in listed
            ]
        )
        return
    show_table(("NAME", "PHASE", "DESCRIPTION"), [(one.name, one.phase, one.description) for one in listed])
