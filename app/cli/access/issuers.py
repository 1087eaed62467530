"""``sluice issuers``: administer issuers of tokens, on the host or at a service."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import FAILED, fail, show_json, show_table, show_text

if TYPE_CHECKING:
    from app.api.access.issuers import IssuerAnswer, IssuerTrialAnswer
    from app.assembly import Services
    from app.cli.calls import ServiceCalls

_PATH = "/api/v1/issuers"

commands = typer.Typer(
    help="List, add, change, test and remove issuers of tokens, beside those of the settings.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Issuer = Annotated[str, typer.Argument(help="Address of an issuer as its tokens have it, or its id.")]
File = Annotated[
    Path,
    typer.Argument(
        help="File with an issuer, JSON or YAML, in the form of the settings; - is standard input.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]


@commands.command("list", epilog="Example:\n\n\b\n  sluice issuers list")
@placed("none")
def list_(target: CommandTarget, *, json: Json = False) -> None:
    """List the issuers of the settings and those that are stored. Secrets are never shown."""
    issuers = target.do(_listed, _listed_there)
    if json:
        show_json([_shown(issuer) for issuer in issuers])
        return
    show_table(
        ("ID", "ISSUER", "STANDS IN", "VERSION", "RULES", "TENANTS", "AUDIENCE"),
        [
            (
                *(issuer.id, issuer.issuer, "settings" if issuer.source == "settings" else "database"),
                *(issuer.version, len((issuer.settings or {}).get("rules", []))),
                *(
                    " ".join((issuer.settings or {}).get(name, [])) or None
                    for name in ("tenants", "audience")
                ),
            )
            for issuer in issuers
        ],
    )


@commands.command(epilog="Example:\n\n\b\n  sluice issuers show https://login.example.com")
@placed("none")
def show(target: CommandTarget, issuer: Issuer) -> None:
    """Show an issuer as JSON, with null for each secret."""

    async def here(host: "Services") -> "IssuerAnswer":
        return _named(await _listed(host), issuer)

    show_json(_shown(target.do(here, lambda service: _named(_listed_there(service), issuer))))


@commands.command(
    epilog="""Examples:

\b
  sluice issuers add login.yaml
  echo '{issuer: "https://login.example.com", audience: ["https://sluice.example.com/mcp"], tenants: [acme]}' |
    sluice issuers add -"""
)
@placed("none")
def add(target: CommandTarget, file: File) -> None:
    """Store an issuer, whose tokens count from now on.

    ${NAME} in the file is a variable of the environment, so that no secret needs to stand in it. Its rules cannot give
    the roles restorer, operator and key-custodian, nor map to the tenant system: the settings can.
    """
    from app.api.access.issuers import IssuerAnswer, issuer_answer
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT
    from app.services.access.identity.issuer_sealing import SubmittedIssuer

    document = _read(file)

    async def here(host: "Services") -> "IssuerAnswer":
        return issuer_answer(await host.issuers.add(caller_for(SYSTEM_TENANT), SubmittedIssuer(document)))

    stored = target.do(
        here,
        lambda service: IssuerAnswer.model_validate(service.ask("POST", _PATH, document)),
        begins=True,
    )
    show_text(f"{stored.issuer} is stored. To try it: sluice issuers test {stored.issuer}")


@commands.command(epilog="Example:\n\n\b\n  sluice issuers change login.yaml")
@placed("none")
def change(target: CommandTarget, file: File) -> None:
    """Replace what is stored of an issuer; a secret that the file leaves out stays as it is."""
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT
    from app.services.access.identity.issuer_sealing import SubmittedIssuer

    document = _read(file)
    name = str(document.get("issuer", ""))

    async def here(host: "Services") -> None:
        before = _named(await _listed(host), name)
        submitted = SubmittedIssuer(document)
        await host.issuers.put(
            caller_for(SYSTEM_TENANT), before.id, submitted, expected_version=before.version
        )

    def there(service: "ServiceCalls") -> None:
        before = _named(_listed_there(service), name)
        service.ask("PUT", f"{_PATH}/{before.id}", document, expected_version=before.version)

    target.do(here, there)
    show_text(f"{name} is changed; tokens are mapped by what stands there now.")


@commands.command(epilog="Example:\n\n\b\n  sluice issuers remove https://login.example.com --yes")
@placed("none")
def remove(target: CommandTarget, issuer: Issuer, *, yes: Yes = False) -> None:
    """Trust an issuer no more: its tokens and the sessions of its people end."""
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT

    async def here(host: "Services") -> None:
        before = _named(await _listed(host), issuer)
        await host.issuers.remove(caller_for(SYSTEM_TENANT), before.id, expected_version=before.version)

    def there(service: "ServiceCalls") -> None:
        before = _named(_listed_there(service), issuer)
        service.ask("DELETE", f"{_PATH}/{before.id}", expected_version=before.version)

    target.confirm(f"Remove the issuer {issuer} and end whatever its tokens opened?", yes=yes)
    target.do(here, there)
    show_text(f"{issuer} is removed.")


@commands.command("test", epilog="Example:\n\n\b\n  sluice issuers test https://login.example.com")
@placed("none")
def try_out(target: CommandTarget, issuer: Issuer, *, json: Json = False) -> None:
    """Fetch an issuer's metadata and keys, from this host or from the service."""
    from app.api.access.issuers import IssuerTrialAnswer
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT

    async def here(host: "Services") -> "IssuerTrialAnswer":
        named = _named(await _listed(host), issuer)
        trial = await host.issuers.test(caller_for(SYSTEM_TENANT), named.id)
        return IssuerTrialAnswer.model_validate(trial)

    def there(service: "ServiceCalls") -> "IssuerTrialAnswer":
        named = _named(_listed_there(service), issuer)
        return IssuerTrialAnswer.model_validate(service.ask("POST", f"{_PATH}/{named.id}/test"))

    trial = target.do(here, there)
    if json:
        show_json(trial.model_dump(mode="json"))
    elif trial.ready:
        show_text(f"{issuer} is ready: {trial.keys} keys for {', '.join(trial.algorithms)}.")
    if not trial.ready:
        fail(trial.error or "It is not ready.", FAILED)


async def _listed(host: "Services") -> "list[IssuerAnswer]":
    from app.api.access.issuers import issuer_answer
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT

    return [issuer_answer(record) for record in await host.issuers.list(caller_for(SYSTEM_TENANT))]


def _listed_there(service: "ServiceCalls") -> "list[IssuerAnswer]":
    from app.api.access.issuers import IssuerAnswer

    return [IssuerAnswer.model_validate(each) for each in service.pages(_PATH)]


def _named(issuers: "list[IssuerAnswer]", issuer: str) -> "IssuerAnswer":
    """Return an issuer by its address or its id; what is stored comes before what the settings say of the same."""
    from app.core.identities import issuer_id

    ids = {issuer, issuer_id(issuer)}
    named = next((each for each in issuers if each.id in ids and not each.hidden), None)
    if named is None:
        fail(f"There is no issuer {issuer}: sluice issuers list shows those that there are.", FAILED)
    return named


def _shown(answer: "IssuerAnswer") -> dict[str, Any]:
    # What one process knows of keys says nothing of the others, and this one may have just begun.
    return answer.model_dump(mode="json", exclude={"state"})


def _read(file: Path) -> dict[str, Any]:
    """Return the issuer in a file, with variables filled in."""
    from app.services.data_files import read_document
    from app.services.declare.declaration_files import filled

    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    document = read_document(body, "json" if file.suffix == ".json" else "yaml")
    if not isinstance(document, dict):
        fail("The file must hold one issuer: an object with issuer, audience, rules and more.")
    return filled(document, str(file))
