"""``sluice middleware``: list the middlewares that can be invoked."""

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
        bool, typer.Option("--json", help="Print JSON, including the schema of the arguments.")
    ] = False,
) -> None:
    """List the middlewares that the key may invoke on a running service."""
    with service(url, key, timeout) as client:
        listed = client.list_middleware()
    if json:
        show_json(
            [
                {
                    "name": entry.name,
                    "title": entry.title,
                    "description": entry.description,
                    "phase": entry.phase,
                    "inputSchema": entry.input_schema,
                }
                for entry in listed
            ]
        )
        return
    show_table(
        ("NAME", "PHASE", "DESCRIPTION"), [(entry.name, entry.phase, entry.description) for entry in listed]
    )
