"""``sluice access``: try whom a token makes a caller, on the host or at a service."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.api.access.keys import TokenTrialAnswer
    from app.assembly import Services

REASONS = {
    "token": "It is malformed, too long, no access token, or lacks a claim: sub, aud, iat and exp must be there.",
    "inactive": "Its issuer says that it counts no more, or does not know it.",
    "issuer": "Its issuer is not among those of SLUICE_AUTH__ISSUERS, letter by letter.",
    "signature": "No key of its issuer signed it with an algorithm that is taken.",
    "audience": "Its aud names none of the issuer's audiences in SLUICE_AUTH__ISSUERS.",
    "token_expired": "It is over (exp).",
    "token_early": "It is not valid yet (nbf, iat); compare the clocks.",
    "token_old": "It was issued longer ago (iat) than maxTokenAge allows.",
}

commands = typer.Typer(
    help="Try tokens of identity providers: which rule maps them, and why others do not.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.callback()
def access() -> None:
    """Try tokens of identity providers: which rule maps them, and why others do not."""


@commands.command(
    epilog="""Examples:

\b
  sluice access explain - < token.txt
  sluice access explain - --url https://sluice.example.com < token.txt"""
)
@placed("none")
def explain(
    target: CommandTarget,
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
    from app.api.access.keys import TokenTrialAnswer

    text = (sys.stdin.read() if token == "-" else token).strip()  # noqa: S105 - a dash is no token

    async def here(host: "Services") -> "TokenTrialAnswer":
        tokens = host.access.authenticator.tokens
        if tokens is None:
            fail("No issuer is trusted here: set SLUICE_AUTH__ISSUERS (docs/identity.md).")
        trial = await tokens.tried(text, datetime.now(UTC))
        return TokenTrialAnswer.model_validate(trial.described())

    path, body = "/api/v1/keys/identities/explain", {"token": text}
    trial = target.do(here, lambda service: TokenTrialAnswer.model_validate(service.ask("POST", path, body)))
    if json:
        show_json(trial.model_dump(mode="json"))
    else:
        _show(trial)
    if not trial.taken:
        raise typer.Exit(1)


def _show(trial: "TokenTrialAnswer") -> None:
    if trial.reason in REASONS:
        note(f"The token is not taken. {REASONS[trial.reason]}")
        return
    rows = [
        (
            *(number, rule.tenant, " ".join(rule.roles), " ".join(rule.grants) or "-"),
            f"misses {', '.join(rule.missing)}" if rule.missing else "maps" if rule.maps else "matches",
        )
        for number, rule in enumerate(trial.rules, start=1)
    ]
    show_table(("RULE", "TENANT", "ROLES", "GRANTS", "RESULT"), rows)
    if trial.reason == "unmapped":
        note("The token is valid, but no rule maps it.")
    elif trial.reason == "ended":
        note("The rule's tenant does not exist here, or is disabled.")
