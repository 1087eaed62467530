"""``sluice access``: try whom a token makes a caller, and what is done for which end user."""

import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import fail, note, show_json, show_table, show_text

if TYPE_CHECKING:
    from app.api.access.issuers import TokenExplainAnswer, TriedRuleAnswer
    from app.assembly import Services
    from app.services.access.identity.end_user_trials import EndUserTrial

REFUSALS = {
    "delegate": "The service may name no end user: it lacks the role delegate.",
    "refused": "Nothing is done for this end user: a rule refuses them.",
    "inactive": "Nothing is done for this end user: the mirror has no active person of that name, and a rule's "
    "provisioning asks for one.",
}
NOT_MAPPED = {
    "unmapped": "The token is valid, but no rule maps it.",
    "ended": "The rule's tenant does not exist here, or is disabled; or its owner has ended, or is not active there.",
    "elsewhere": "A rule of another tenant decides.",
}
KEY_ID = re.compile(r"[0-9a-f]{8}")

commands = typer.Typer(
    help="Try tokens of identity providers, and end users whom services name: which rules count, and why others "
    "do not.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.callback()
def access() -> None:
    """Try tokens of identity providers, and end users whom services name."""


@commands.command(
    epilog="""Examples:

\b
  sluice access explain - < token.txt
  sluice access explain - --url https://sluice.example.com < token.txt
  sluice access explain 0a1b2c3d --user ada@example.org      a key that names an end user
  sluice access explain - --user ada@example.org < token.txt"""
)
@placed("none")
def explain(
    target: CommandTarget,
    token: Annotated[
        str,
        typer.Argument(
            help="The token; - reads it from standard input, where no list of processes shows it. With --user also "
            "the id of a key."
        ),
    ],
    *,
    user: Annotated[
        str | None,
        typer.Option(help="Say what its holder may do for this end user, named as in X-Sluice-User."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say whether a token would be taken here, which rule maps it, and what others miss. Nobody gets in by this.

    Names of claims and groups are printed, and no values. The exit status is 1 where the token would not be taken, or
    nothing would be done for the end user.
    """
    from app.api.access.issuers import TokenExplainAnswer
    from app.cli.host import on_host

    target.refuse("--user is tried on the host of the service: run it there, or leave --user out.", user)
    if user is not None and KEY_ID.fullmatch(token):
        _tell_end_user(on_host(lambda host: _tried_key(host, token, user)), json=json)
        return
    text = (sys.stdin.read() if token == "-" else token).strip()  # noqa: S105 - a dash is no token
    trial, acting = target.do(
        lambda host: _tried(host, text, user),
        lambda service: (
            TokenExplainAnswer.model_validate(
                service.ask("POST", "/api/v1/issuers/explain", {"token": text})
            ),
            None,
        ),
    )
    if json:
        show_json(
            trial.model_dump(mode="json") | ({} if acting is None else {"end_user": acting.described()})
        )
    else:
        _show(trial)
    if not trial.taken:
        raise typer.Exit(1)
    if acting is not None:
        _tell_end_user(acting, json=json, shown=json)


async def _tried(
    host: "Services", token: str, user: str | None
) -> "tuple[TokenExplainAnswer, EndUserTrial | None]":
    from app.api.access.issuers import explained_answer
    from app.services.access.identity.end_user_trials import tried_end_user

    authenticator = host.access.authenticator
    if authenticator.tokens is None or not authenticator.tokens.trusted:
        fail(
            "No issuer is trusted here: set SLUICE_AUTH__ISSUERS, or run `sluice issuers add` (docs/identity.md)."
        )
    trial = await authenticator.tokens.tried(token, datetime.now(UTC))
    acting = None
    if user is not None and trial.rule is not None:
        acting = await tried_end_user(authenticator, trial.rule.tenant, trial.rule.roles, user)
    return explained_answer(trial), acting


async def _tried_key(host: "Services", key_id: str, user: str) -> "EndUserTrial":
    from app.services.access.identity.end_user_trials import tried_end_user

    key = await host.access.authenticator.find(key_id)
    if key is None or key.ended:
        fail("There is no such key, or it has ended; `sluice keys list` shows the ids of keys.")
    caller = key.settled_caller
    return await tried_end_user(host.access.authenticator, caller.tenant, caller.roles, user)


def _tell_end_user(trial: "EndUserTrial", *, json: bool, shown: bool = False) -> None:
    """Print what would be done for an end user unless it is ``shown`` already; exit with 1 where that is nothing."""
    if json and not shown:
        show_json({"end_user": trial.described()})
    elif not json:
        rows = [
            (
                *(source.source, number),
                "refuses" if each.rule.refuse else _listed(each.rule.roles),
                *("-" if each.rule.refuse else _listed(each.rule.grants), result),
            )
            for source, number, each, result in trial.results()
        ]
        if rows:
            show_table(("PLACE", "RULE", "ROLES", "GRANTS", "RESULT"), rows)
        if trial.refusal is None:
            grants = "" if trial.bounds.grants is None else f", as {_listed(trial.bounds.grants)}"
            show_text(f"For this end user it has: {_listed(trial.roles)}{grants}.")
        else:
            note(REFUSALS[trial.refusal])
    if trial.refusal is not None:
        raise typer.Exit(1)


def _listed(names: "frozenset[Any] | None") -> str:
    return "as the service" if names is None else " ".join(sorted(names)) or "none"


def _show(trial: "TokenExplainAnswer") -> None:
    from app.services.access.identity.token_trials import TOKEN_FAULTS

    if (fault := TOKEN_FAULTS.get(trial.reason or "")) is not None:
        note(f"The token is not taken. {fault}")
        return
    rows = [
        (*(number, rule.tenant, " ".join(rule.roles), " ".join(rule.grants) or "-"), _result(rule))
        for number, rule in enumerate(trial.rules, start=1)
    ]
    show_table(("RULE", "TENANT", "ROLES", "GRANTS", "RESULT"), rows)
    if trial.reason in NOT_MAPPED:
        note(NOT_MAPPED[trial.reason])


def _result(rule: "TriedRuleAnswer") -> str:
    from app.services.access.identity.token_trials import fault_of

    return fault_of(rule.missing, rule.missing_groups) or ("maps" if rule.maps else "matches")
