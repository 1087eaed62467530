"""``sluice status``: what runs where, what is wrong or off, and how to mend it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import FAILED, OK, UNREACHABLE, USAGE, cell, fail, show_json

if TYPE_CHECKING:
    from app.cli.status.findings import StatusLine

EPILOG = """Examples:

\b
  sluice status
  sluice status --json | jq -r '.findings[] | select(.state == "wrong") | .mend'
  SLUICE_URL=http://10.0.0.5:8000 sluice status

Exit codes: 0 everything holds (parts may be off); 1 something is wrong; 2 wrong usage; 3 the service or its database
does not answer."""

Url = Annotated[
    str | None,
    typer.Option(
        envvar="SLUICE_URL", help="URL of the service; without it, where the settings of this host put it."
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        envvar="SLUICE_API_KEY",
        help="API key of an operator, optional: it adds the connection to each server of its tenant.",
    ),
]
_WIDTH = max(map(len, ("ok", "off", "wrong", "unreachable")))
_CODES: dict[str, int] = {"ok": OK, "off": OK, "wrong": FAILED, "unreachable": UNREACHABLE}


def status(
    url: Url = None,
    key: Key = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for the service.")] = 5.0,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show at a glance what runs where, what is wrong and what is off. It changes nothing and shows no content."""
    from app.cli.status.findings import findings_of
    from app.cli.status.service import ask_service, own_url
    from app.edge.logs import configure_logging
    from app.settings import load

    settings = load()
    configure_logging("error", settings.telemetry.log_format)
    address = url or own_url(settings.http.host, settings.http.port)
    if not address.startswith(("http://", "https://")):
        fail("The URL of the service must begin with http:// or https://: set SLUICE_URL or --url.", USAGE)
    findings = findings_of(settings, ask_service(address, key, timeout))
    worst = max((_CODES[finding.state] for finding in findings), default=OK)
    if json:
        states = {OK: "ok", FAILED: "wrong", UNREACHABLE: "unreachable"}
        show_json({"state": states[worst], "findings": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
    if worst != OK:
        raise typer.Exit(worst)


def _show(findings: "list[StatusLine]") -> None:
    width = max(len(finding.part) for finding in findings)
    for finding in findings:
        print(f"{finding.state.ljust(_WIDTH)}  {finding.part.ljust(width)}  {cell(finding.says)}")
        if finding.mend is not None:
            print(f"{' ' * (_WIDTH + width + 4)}-> {cell(finding.mend)}")
