"""``sluice audit sinks``: how far each place is to which the record is delivered."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.cli.terminal import FAILED, note, show_lines, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.services.audit.sinks.delivery import SinkState

EPILOG: Final = """Examples:

\b
  sluice audit sinks
  sluice audit sinks --json"""


def sinks(
    *, json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False
) -> None:
    """Show how far each sink of this host's settings is.

    Ends with 1 where one has been waiting for more than a minute.
    """
    from app.cli.host import on_host
    from app.services.audit.anchoring import LATE_S

    async def viewed(host: "Services") -> "list[SinkState]":
        return await host.outlets.view()

    states = on_host(viewed)
    if json:
        show_lines(state._asdict() for state in states)
    elif states:
        rows = [(state.name, round(state.waits_s), state.delivered) for state in states]
        show_table(("SINK", "WAITS (S)", "LAST GOT SOME"), rows)
    else:
        note("There are no sinks: SLUICE_AUDIT__SINKS names them.")
    if any(state.waits_s > LATE_S for state in states):
        raise typer.Exit(FAILED)
