"""``sluice config``: show the settings in effect."""

from typing import Annotated, Any

import typer

from app.cli.terminal import show_json, show_table

EPILOG = """Examples:

\b
  sluice config
  sluice config --json | jq .http.port

Set a value with its variable, such as SLUICE_HTTP__PORT=8080. docs/configuration.md explains every setting."""


def config(*, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show every setting as the service would read it now. Secrets are shown only as set or unset."""
    from functools import reduce

    from pydantic import SecretStr

    from app.settings import load, variable, walk

    settings = load()
    tree: dict[str, Any] = {}
    rows = []
    for section, name, field in walk():
        path = section.split("__") if section else []
        holder = reduce(getattr, path, settings)
        value = getattr(holder, name)
        source = "default" if value == field.default else "set"
        if (section, name) == ("keys", "file"):
            value = settings.key_file
        if isinstance(value, SecretStr):
            value = _without_password(value.get_secret_value()) if name == "url" else "(set)"
        if isinstance(value, dict):
            # Settings of a plug-in or a server may be secrets; the names are not.
            value = dict.fromkeys(value, "(set)")
        place = reduce(lambda inner, step: inner.setdefault(step, {}), path, tree)
        place[name] = value
        shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
        shown = ",".join(value) if isinstance(value, dict) else shown
        shown = str(value).lower() if isinstance(value, bool) else shown
        rows.append((variable(section, name), shown, source))
    if json:
        show_json(tree)
    else:
        show_table(("SETTING", "VALUE", "SOURCE"), rows)


def _without_password(url: str) -> str:
    """Return a database URL without its password."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.password is None:
        return url
    user = f"{parts.username}:(set)@" if parts.username else ""
    return parts._replace(netloc=user + parts.netloc.rpartition("@")[2]).geturl()
