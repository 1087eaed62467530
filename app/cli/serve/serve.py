"""``sluice serve``: start the service."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from app.cli.serve.listening import listen

EPILOG = """Examples:

\b
  sluice serve
  sluice serve --port 8080
  sluice serve --config mcp.json
  sluice serve crm docs --config mcp.json --filter "crm:find,get;docs:-delete"
  SLUICE_DATABASE__URL=postgresql://sluice@localhost/sluice sluice serve --workers 4

SIGTERM and Ctrl+C let running requests end (SLUICE_HTTP__DRAIN_S) and then stop the service."""

Servers = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SERVER",
        help="Names of the MCP servers to serve; none: all [SLUICE_UPSTREAMS__SERVERS].",
        show_default=False,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(help="Declarative file with mcpServers, applied at start [SLUICE_UPSTREAMS__CONFIG]."),
]
Filter = Annotated[
    str | None, typer.Option("--filter", help='Tools by server, "a:x,y;c:-z" [SLUICE_UPSTREAMS__FILTER].')
]


def serve(
    servers: Servers = None,
    config: ConfigFile = None,
    filter_: Filter = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on [SLUICE_HTTP__HOST; default: 127.0.0.1].")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; 0 takes a free one [SLUICE_HTTP__PORT; default: 8000]."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Number of processes; more than one needs PostgreSQL [SLUICE_HTTP__WORKERS; default: 1].",
        ),
    ] = None,
    *,
    exit_with_parent: Annotated[
        bool, typer.Option("--exit-with-parent", help="Stop when the process that started this one ends.")
    ] = False,
) -> None:
    """Start the service: REST under /api/v1, MCP at /mcp.

    A SQLite database is created and migrated by itself; PostgreSQL is migrated by `sluice db upgrade`. The first start
    in development prints an API key, once.
    """
    configure(
        {
            "HTTP__HOST": host,
            "HTTP__PORT": port,
            "HTTP__WORKERS": workers,
            "UPSTREAMS__SERVERS": ",".join(servers) if servers else None,
            "UPSTREAMS__CONFIG": config,
            "UPSTREAMS__FILTER": filter_,
        }
    )
    if exit_with_parent:
        from app.cli.serve.parent_watch import end_with_parent

        end_with_parent()
    code = served()
    if code:
        raise typer.Exit(code)


def configure(options: Mapping[str, object]) -> None:
    """Let what the command line says stand for the settings of those names."""
    for name, value in options.items():
        if value is not None:
            # The processes of the service read their settings for themselves; the environment reaches them all.
            os.environ[f"SLUICE_{name}"] = str(value)


def served() -> int:
    """Serve until a signal, in this process or in several; return the exit code."""
    from app.settings import load

    settings = load()
    with listen(settings.http.host, settings.http.port) as listener:
        if settings.http.workers > 1:
            from app.cli.serve.workers import supervise

            return supervise(
                settings.http.workers, listener, settings.http.drain_s, metrics=settings.telemetry.metrics
            )
        from app.cli.serve.server import serve_here

        return serve_here(settings, listener)
