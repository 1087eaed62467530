"""``sluice policies``: read, change, compare and explain the policy of a tenant, on the host or at a service."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import fail, note, show_json, show_table, show_text

if TYPE_CHECKING:
    from app.api.access.policies import PolicyAnswer, PolicyChangeAnswer, WideningAnswer
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.core.contracts.policy import Policy
    from app.core.contracts.widening.policies import Widening

commands = typer.Typer(
    help="Show, store, compare and explain the policy of a tenant. Every change is recorded in the audit log.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_PATH = "/api/v1/policies"
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
File = Annotated[
    Path, typer.Argument(help="File with a policy, JSON or YAML; - is standard input.", show_default=False)
]


@commands.command(
    epilog="Examples:\n\n\b\n  sluice policies get\n  sluice policies get --tenant acme > policy.json"
)
@placed("named")
def get(target: CommandTarget) -> None:
    """Print the policy of a tenant as JSON; its version goes to standard error."""
    current = _current(target)
    note(f"Version {current.version}{target.of_tenant}.")
    show_json(current.policy.model_dump(mode="json"))


@commands.command(
    epilog="""Examples:

\b
  sluice policies put policy.json --expected-version 3
  echo '{}' | sluice policies put -                     back to the defaults"""
)
@placed("named")
def put(
    target: CommandTarget,
    file: File,
    expected_version: Annotated[
        int | None, typer.Option(min=0, help="Refuse the change unless this is the current version.")
    ] = None,
) -> None:
    """Replace the policy of a tenant, and say what the change allows beyond the version before."""
    from app.api.access.policies import PolicyChangeAnswer
    from app.cli.host import caller_for
    from app.services.access.policies import ANY_VERSION

    document, policy = _read(file)
    expected = ANY_VERSION if expected_version is None else expected_version

    async def here(host: "Services") -> "PolicyChangeAnswer":
        caller = caller_for(target.here)
        stored = await host.policies.put(caller, None, policy, expected_version=expected)
        return PolicyChangeAnswer.model_validate(stored)

    def there(service: "ServiceCalls") -> "PolicyChangeAnswer":
        version = expected_version
        if version is None:
            version = _get(service, target.tenant).version
        stored = service.ask("PUT", _PATH, document, tenant=target.tenant, expected_version=version)
        return PolicyChangeAnswer.model_validate(stored)

    stored = target.do(here, there)
    show_text(f"Version {stored.version}{target.of_tenant} holds now.")
    _tell(stored.widened)


@commands.command(epilog="Example:\n\n\b\n  sluice policies diff policy.json --tenant acme")
@placed("named")
def diff(target: CommandTarget, file: File, *, json: Json = False) -> None:
    """Show what storing a file would change, and what that would allow; nothing is changed."""
    from app.core.contracts.widening.policies import widenings
    from app.services.access.policy_documents import differences

    _, policy = _read(file)
    current = _current(target)
    changes = differences(current.policy, policy)
    widened = widenings(current.policy, policy)
    if json:
        show_json(
            {
                "version": current.version,
                "changes": [change._asdict() for change in changes],
                "widened": [entry._asdict() for entry in widened],
            }
        )
    elif not changes:
        show_text(f"Nothing would change: version {current.version} is the same.")
    else:
        rows = [(change.pointer, _spelled(change.before), _spelled(change.after)) for change in changes]
        show_table(("MEMBER", "NOW", "IN THE FILE"), rows)
        _tell(widened)


@commands.command(
    epilog="Examples:\n\n\b\n  sluice policies explain limits.burst\n  sluice policies explain --tenant acme"
)
@placed("named")
def explain(
    target: CommandTarget,
    member: Annotated[
        str | None,
        typer.Argument(help="Member, such as limits or limits.burst; without: all.", show_default=False),
    ] = None,
) -> None:
    """Say what the members of a policy mean, and which values a tenant has."""
    from app.core.contracts.policy_members import members

    current = _current(target)
    chosen = [entry for entry in members() if member is None or f"{entry.path}.".startswith(f"{member}.")]
    if not chosen:
        fail(f"A policy has no member {member}; `sluice policies explain` lists all of them.")
    document, defaults = (
        current.policy.model_dump(mode="json"),
        type(current.policy)().model_dump(mode="json"),
    )
    note(f"Version {current.version}{target.of_tenant}.")
    for entry in chosen:
        show_text(f"{entry.path}: {entry.takes}. {entry.meaning}".rstrip())
        if "[]" not in entry.path:
            value, default = _at(document, entry.path), _at(defaults, entry.path)
            is_default = " (the default)" if value == default else f" (default: {_spelled(default)})"
            show_text(f"    now: {_spelled(value)}{is_default}")


def _current(target: CommandTarget) -> "PolicyAnswer":
    """Return the policy that holds now."""
    from app.api.access.policies import PolicyAnswer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "PolicyAnswer":
        return PolicyAnswer.model_validate(await host.policies.current(caller_for(target.here)))

    return target.do(here, lambda service: _get(service, target.tenant))


def _get(service: "ServiceCalls", tenant: str | None) -> "PolicyAnswer":
    from app.api.access.policies import PolicyAnswer

    return PolicyAnswer.model_validate(service.ask("GET", _PATH, tenant=tenant))


def _read(file: Path) -> "tuple[Any, Policy]":
    """Return the policy in a file, as it stands there and as this release reads it."""
    from app.services.access.policy_documents import policy_of
    from app.services.data_files import read_document

    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    document = read_document(body, "json" if file.suffix == ".json" else "yaml")
    return document, policy_of(document)


def _at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document[step]
    return document


def _spelled(value: Any) -> str:
    from app.core.strictjson import dumps

    return dumps(value).decode()


def _tell(widened: "Sequence[Widening | WideningAnswer]") -> None:
    if not widened:
        show_text("It widens no right.")
    for entry in widened:
        show_text(f"It widens {entry.pointer}: {entry.reason}.")
