"""``sluice issuers``: administer issuers of tokens on the host."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.terminal import FAILED, confirm, fail, show_json, show_table

if TYPE_CHECKING:
    from app.api.access.issuers import IssuerAnswer
    from app.assembly import Services
    from app.services.access.identity.issuer_trials import IssuerTrial
    from app.services.access.identity.issuers import IssuerRecord

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
def list_(*, json: Json = False) -> None:
    """List the issuers of the settings and those that are stored. Secrets are never shown."""
    from app.api.access.issuers import issuer_answer
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    async def listed(host: "Services") -> "list[IssuerAnswer]":
        return [issuer_answer(record) for record in await host.issuers.list(caller_for(SYSTEM_TENANT))]

    issuers = on_host(listed)
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
def show(issuer: Issuer) -> None:
    """Show an issuer as JSON, with null for each secret."""
    from app.api.access.issuers import issuer_answer
    from app.cli.host import on_host

    async def shown(host: "Services") -> "IssuerAnswer":
        return issuer_answer(await _named(host, issuer))

    show_json(_shown(on_host(shown)))


@commands.command(
    epilog="""Examples:

\b
  sluice issuers add login.yaml
  echo '{issuer: "https://login.example.com", audience: ["https://sluice.example.com/mcp"], tenants: [acme]}' |
    sluice issuers add -"""
)
def add(file: File) -> None:
    """Store an issuer, whose tokens count from now on.

    ${NAME} in the file is a variable of the environment, so that no secret needs to stand in it. Its rules cannot give
    the roles restorer, operator and key-custodian, nor map to the tenant system: the settings can.
    """
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT
    from app.services.access.identity.issuer_sealing import SubmittedIssuer

    submitted = SubmittedIssuer(_read(file))
    record = on_host(lambda host: host.issuers.add(caller_for(SYSTEM_TENANT), submitted), begins=True)
    print(f"{record.issuer} is stored. To try it: sluice issuers test {record.issuer}")


@commands.command(epilog="Example:\n\n\b\n  sluice issuers change login.yaml")
def change(file: File) -> None:
    """Replace what is stored of an issuer; a secret that the file leaves out stays as it is."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT
    from app.services.access.identity.issuer_sealing import SubmittedIssuer

    document = _read(file)

    async def changed(host: "Services") -> "IssuerRecord":
        before = await _named(host, str(document.get("issuer", "")))
        return await host.issuers.put(
            *(caller_for(SYSTEM_TENANT), before.id, SubmittedIssuer(document)),
            expected_version=before.stored.version if before.stored is not None else None,
        )

    record = on_host(changed)
    print(f"{record.issuer} is changed; tokens are mapped by what stands there now.")


@commands.command(epilog="Example:\n\n\b\n  sluice issuers remove https://login.example.com --yes")
def remove(issuer: Issuer, *, yes: Yes = False) -> None:
    """Trust an issuer no more: its tokens and the sessions of its people end."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    async def removed(host: "Services") -> None:
        before = await _named(host, issuer)
        version = before.stored.version if before.stored is not None else None
        await host.issuers.remove(caller_for(SYSTEM_TENANT), before.id, expected_version=version)

    confirm(f"Remove the issuer {issuer} and end whatever its tokens opened?", yes=yes)
    on_host(removed)
    print(f"{issuer} is removed.")


@commands.command("test", epilog="Example:\n\n\b\n  sluice issuers test https://login.example.com")
def try_out(issuer: Issuer, *, json: Json = False) -> None:
    """Fetch an issuer's metadata and keys from this host."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    async def trial_of(host: "Services") -> "IssuerTrial":
        return await host.issuers.test(caller_for(SYSTEM_TENANT), (await _named(host, issuer)).id)

    trial = on_host(trial_of)
    if json:
        show_json({name: getattr(trial, name) for name in ("ready", "keys", "algorithms", "error")})
    elif trial.ready:
        print(f"{issuer} is ready: {trial.keys} keys for {', '.join(trial.algorithms)}.")
    if not trial.ready:
        fail(trial.error or "It is not ready.", FAILED)


async def _named(host: "Services", issuer: str) -> "IssuerRecord":
    """Return an issuer by its address or its id; what is stored comes before what the settings say of the same."""
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT
    from app.core.identities import issuer_id

    ids = {issuer, issuer_id(issuer)}
    records = await host.issuers.list(caller_for(SYSTEM_TENANT))
    named = next((record for record in records if record.id in ids and not record.hidden), None)
    if named is None:
        fail(f"There is no issuer {issuer}: sluice issuers list shows those that there are.", FAILED)
    return named


def _shown(answer: "IssuerAnswer") -> dict[str, Any]:
    # What a process knows of keys says nothing here: this one has just begun.
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
