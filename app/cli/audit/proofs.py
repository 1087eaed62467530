"""``sluice audit``: the signed log over the record: verify it, its checkpoints, proofs and keys."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple
from uuid import UUID

import typer

from app.cli.audit.files import checkpoints_of, public_keys, size_of
from app.cli.audit.filters import Since, Until
from app.cli.streamed_output import once, write
from app.cli.target import CommandTarget
from app.cli.terminal import FAILED, note, show_json, show_table
from app.cli.times import moment

if TYPE_CHECKING:
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.services.audit.findings import Verification

VERIFY_EPILOG: Final = """Examples:

\b
  sluice audit verify
  sluice audit verify --tenant acme --since 2026-11-01 --anchor checkpoint.txt --key KEY"""
CHECKPOINT_EPILOG: Final = """Example:

\b
  sluice audit checkpoint --output checkpoint.txt
  sluice audit checkpoint --continues checkpoint.txt --output grown.txt"""
PROVE_EPILOG: Final = """Examples:

\b
  sluice audit prove --tenant acme --since 2026-11-01 --output november.jsonl
  sluice audit prove 0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11 > event.jsonl
  python verify_audit.py event.jsonl --key KEY"""
KEY_EPILOG: Final = """Examples:

\b
  sluice audit key > audit-key.txt
  sluice audit key --renew"""
Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=64,
        help="Processes that compare events [default: one for each processor, and one for few events].",
    ),
]
Output = Annotated[Path | None, typer.Option(help="New file to write [default: standard output].")]


class RemoteVerification(NamedTuple):
    """What a service says of the log of the key's tenant; ``total`` is how many findings there are."""

    holds: bool
    events: int
    unnumbered: int
    pruned: int
    waiting: int
    unsigned: int
    checkpoints: int
    findings: list[dict[str, Any]]
    total: int


def verify(
    target: CommandTarget,
    since: Annotated[
        datetime | None,
        typer.Option(parser=moment, metavar="TIME", help="Compare only events at or after this time."),
    ] = None,
    anchor: Annotated[
        list[Path] | None,
        typer.Option(
            help="File with a checkpoint that was kept elsewhere, or with all of an anchor; may be repeated."
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            help="Public key to trust, as sluice audit key showed it once; may be repeated [default: those in the "
            "database, which its owner could have replaced]."
        ),
    ] = None,
    processes: Processes = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Recompute the whole log and name everything that was changed, removed, added, moved or set back.

    Ends with 0 where all holds, with 1 where something does not. Without --tenant: all tenants; a service verifies the
    log of the key's tenant, with its own keys.
    """
    target.refuse(
        "A service verifies its log whole and with its own keys: leave out --since, --anchor, --key and --processes, "
        "or verify on the host.",
        *(since, anchor, key, processes),
    )
    if target.remote:
        holds = _verify_there(target, as_json=json)
    else:
        anchors = [note for file in anchor or [] for note in checkpoints_of(file)]
        trusted = public_keys(key) if key else None
        result = _verified_here(
            target.tenant, since=since, anchors=anchors, trusted=trusted, processes=processes
        )
        show_verification(result, as_json=json)
        holds = result.holds
    if not holds:
        raise typer.Exit(FAILED)


def _verified_here(tenant: str | None, **how: Any) -> "Verification":
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT
    from app.services.audit.log_access import AuditLogService

    caller = caller_for(SYSTEM_TENANT)
    return on_host(lambda host: AuditLogService(host.audit).verify(caller, tenant, **how))


def _verify_there(target: CommandTarget, *, as_json: bool) -> bool:
    def there(service: "ServiceCalls") -> RemoteVerification:
        answered = service.ask("POST", "/api/v1/audit/verify")
        return RemoteVerification(*(answered[name] for name in (*RemoteVerification._fields[:-1], "found")))

    result = target.call(there)
    if as_json:
        shown = result._asdict()
        total = shown.pop("total")
        show_json({**shown, "found": total})
    else:
        if result.findings:
            names = ("kind", "tenant", "place", "meaning")
            show_table(
                ("FINDING", "TENANT", "PLACE", "MEANING"),
                [[each.get(name) for name in names] for each in result.findings],
            )
        _tell_open(result)
        note(
            f"{result.events} events{_pruned(result)} and {result.checkpoints} checkpoints: "
            f"{'all hold' if result.holds else f'{result.total} findings'}."
        )
    return result.holds


def checkpoint(
    target: CommandTarget,
    continues: Annotated[
        Path | None,
        typer.Option(
            help="File with an earlier checkpoint: print a proof that the log only grew since, then the newest one."
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Print the newest signed checkpoint: kept out of reach of the database's owner, it proves the past later."""
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT
    from app.services.audit.log_access import AuditLogService

    caller = caller_for(SYSTEM_TENANT)
    old = size_of(continues) if continues is not None else None

    async def here(host: "Services") -> AsyncIterator[bytes]:
        log = AuditLogService(host.audit)
        note = (await log.checkpoint(caller)).note if old is None else await log.growth(caller, old)
        return once(note.encode())

    def there(service: "ServiceCalls") -> Iterator[bytes]:
        yield service.text("/api/v1/audit/checkpoint", old=old).encode()

    write(target, here, there, output)


def prove(
    target: CommandTarget,
    events: Annotated[
        list[UUID] | None, typer.Argument(metavar="[EVENT]...", help="Ids of events [default: all].")
    ] = None,
    since: Since = None,
    until: Until = None,
    output: Output = None,
) -> None:
    """Write events with proofs that they are in the signed log; deploy/verify_audit.py checks them anywhere."""
    from app.cli.host import caller_for
    from app.services.audit.log_access import AuditLogService

    async def here(host: "Services") -> AsyncIterator[bytes]:
        caller = caller_for(target.here)
        log = AuditLogService(host.audit)
        return await log.prove(caller, target.here, events or None, since=since, until=until)

    def there(service: "ServiceCalls") -> Iterator[bytes]:
        return service.pieces("/api/v1/audit/proofs", event=events or None, since=since, until=until)

    write(target, here, there, output)


def show_keys(
    target: CommandTarget,
    *,
    renew: Annotated[
        bool, typer.Option("--renew", help="Make a new key first; it signs from the next checkpoint on.")
    ] = False,
) -> None:
    """Show the public keys that sign the log's checkpoints, oldest first: the last one signs now."""
    from app.cli.host import caller_for
    from app.core.access import SYSTEM_TENANT
    from app.services.audit.log_access import AuditLogService

    target.refuse("A key is made on the host alone: leave out --renew, or leave out --url there.", renew)
    caller = caller_for(SYSTEM_TENANT)

    async def here(host: "Services") -> list[str]:
        log = AuditLogService(host.audit)
        if renew:
            await log.renew_key(caller)
        return [str(public) for public, _made in await log.keys(caller)]

    def there(service: "ServiceCalls") -> list[str]:
        return [each["key"] for each in service.ask("GET", "/api/v1/audit/keys")["items"]]

    for public in target.do(here, there):
        print(public)


def show_verification(result: "Verification", *, as_json: bool) -> None:
    """Print what a verification on this host says."""
    from dataclasses import asdict

    if as_json:
        keys = [str(public) for public in result.keys]
        show_json({"holds": result.holds, **asdict(result), "keys": keys})
        return
    if result.findings:
        rows = [(finding.kind, finding.tenant, finding.place, finding.meaning) for finding in result.findings]
        show_table(("FINDING", "TENANT", "PLACE", "MEANING"), rows)
    _tell_open(result)
    for tenant in result.keyless:
        note(f"The tenant {tenant} is erased: the digests in its events have no key any more.")
    note(
        f"{result.events} events{_pruned(result)} of {result.tenants} tenants, {result.checkpoints} checkpoints and "
        f"{result.anchors} anchors: {'all hold' if result.holds else f'{len(result.findings)} findings'}."
    )


def _tell_open(result: "Verification | RemoteVerification") -> None:
    if result.unnumbered:
        note(f"{result.unnumbered} events are from before events were numbered; they were sealed as found.")
    if result.waiting or result.unsigned:
        waiting = f"{result.waiting} events wait for the sealer, and {result.unsigned} heads of tenants for a signature"
        note(f"{waiting}: a running service does both within ten seconds.")


def _pruned(result: "Verification | RemoteVerification") -> str:
    return f" ({result.pruned} more were pruned)" if result.pruned else ""


COMMANDS: Final[tuple[tuple[str, Callable[..., None], str], ...]] = (
    ("verify", verify, VERIFY_EPILOG),
    ("checkpoint", checkpoint, CHECKPOINT_EPILOG),
    ("prove", prove, PROVE_EPILOG),
)
"""Name, command and examples of each that stands together."""
