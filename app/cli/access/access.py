"""``sluice access``: try on the host whom a token makes a caller."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.assembly import Services
    from app.services.access.identity.token_trials import TokenTrial

commands = typer.Typer(
    help="Try tokens of identity providers: which rule maps them, and why others do not.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.callback()
def access() -> None:
    """Try tokens of identity providers: which rule maps them, and why others do not."""


@commands.command(epilog="Example:\n\n\b\n  sluice access explain - < token.txt")
def explain(
    token: Annotated[
        str,
        typer.Argument(
            help="The token; - reads it from standard input, where no list of processes shows it."
        ),
    ],
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say whether a token would be taken here, which rule maps it, and what others miss. Nobody gets in by this.

    Names of claims are printed, and no values. The exit status is 1 where the token would not be taken.
    """
    from app.cli.host import on_host

    text = (sys.stdin.read() if token == "-" else token).strip()  # noqa: S105 - a dash is no token
    trial = on_host(lambda host: _tried(host, text))
    if trial is None:
        fail(
            "No issuer is trusted here: set SLUICE_AUTH__ISSUERS, or run `sluice issuers add` (docs/identity.md)."
        )
    if json:
        show_json(trial.described())
    else:
        _show(trial)
    if trial.rule is None:
        raise typer.Exit(1)


async def _tried(host: "Services", token: str) -> "TokenTrial | None":
    tokens = host.access.authenticator.tokens
    return await tokens.tried(token, datetime.now(UTC)) if tokens is not None and tokens.trusted else None


def _show(trial: "TokenTrial") -> None:
    from app.services.access.identity.token_trials import TOKEN_FAULTS

    if (fault := TOKEN_FAULTS.get(trial.reason or "")) is not None:
        note(f"The token is not taken. {fault}")
        return
    rows = [
        (number, rule.tenant, " ".join(sorted(rule.roles)), " ".join(sorted(rule.grants)) or "-", result)
        for number, (rule, result) in enumerate(trial.results(), start=1)
    ]
    show_table(("RULE", "TENANT", "ROLES", "GRANTS", "RESULT"), rows)
    if trial.reason == "unmapped":
        note("The token is valid, but no rule maps it.")
    elif trial.reason == "ended":
        note("The rule's tenant does not exist here, or is disabled.")
