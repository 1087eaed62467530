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
    with service(url, key, timeout) as calls:
        listed = calls.list_middleware()
    if json:
        members = "name", "title", "description", "phase", "inputSchema"
        show_json([{member: entry.get(member) for member in members} for entry in listed])
        return
    rows = [(entry["name"], entry.get("phase"), entry.get("description") or "") for entry in listed]
    show_table(("NAME", "PHASE", "DESCRIPTION"), rows)
