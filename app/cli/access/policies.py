"""``sluice policies``: read, change, compare and explain the policy of a tenant on the host."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from app.cli.terminal import fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.core.access import Caller
    from app.core.contracts.policy import Policy
    from app.core.contracts.widening.policies import Widening
    from app.services.access.policies import PolicyService

T = TypeVar("T")

commands = typer.Typer(
    help="Show, store, compare and explain the policy of a tenant. Every change is recorded in the audit log.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
File = Annotated[
    Path, typer.Argument(help="File with a policy, JSON or YAML; - is standard input.", show_default=False)
]


@commands.command(
    epilog="Examples:\n\n\b\n  sluice policies get\n  sluice policies get --tenant acme > policy.json"
)
def get(tenant: Tenant = "default") -> None:
    """Print the policy of a tenant as JSON; its version goes to standard error."""
    current = _in_tenant(tenant, lambda policies, caller: policies.current(caller))
    note(f"Version {current.version} of tenant {tenant}.")
    show_json(current.policy.model_dump(mode="json"))


@commands.command(
    epilog="""Examples:

\b
  sluice policies put policy.json --expected-version 3
  echo '{}' | sluice policies put -                     back to the defaults"""
)
def put(
    file: File,
    tenant: Tenant = "default",
    expected_version: Annotated[
        int | None, typer.Option(min=0, help="Refuse the change unless this is the current version.")
    ] = None,
) -> None:
    """Replace the policy of a tenant, and say what the change allows beyond the version before."""
    from app.services.access.policies import ANY_VERSION

    policy = _read(file)
    expected = ANY_VERSION if expected_version is None else expected_version
    stored = _in_tenant(
        tenant, lambda policies, caller: policies.put(caller, None, policy, expected_version=expected)
    )
    print(f"Version {stored.version} of tenant {tenant} holds now.")
    _tell(stored.widened)


@commands.command(epilog="Example:\n\n\b\n  sluice policies diff policy.json --tenant acme")
def diff(file: File, tenant: Tenant = "default", *, json: Json = False) -> None:
    """Show what storing a file would change, and what that would allow; nothing is changed."""
    from app.core.contracts.widening.policies import widenings
    from app.services.access.policy_documents import differences

    policy = _read(file)
    current = _in_tenant(tenant, lambda policies, caller: policies.current(caller))
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
        print(f"Nothing would change: version {current.version} is the same.")
    else:
        rows = [(change.pointer, _spelled(change.before), _spelled(change.after)) for change in changes]
        show_table(("MEMBER", "NOW", "IN THE FILE"), rows)
        _tell(widened)


@commands.command(
    epilog="Examples:\n\n\b\n  sluice policies explain limits.burst\n  sluice policies explain --tenant acme"
)
def explain(
    member: Annotated[
        str | None,
        typer.Argument(help="Member, such as limits or limits.burst; without: all.", show_default=False),
    ] = None,
    tenant: Tenant = "default",
) -> None:
    """Say what the members of a policy mean, and which values a tenant has."""
    from app.core.contracts.policy_members import members

    current = _in_tenant(tenant, lambda policies, caller: policies.current(caller))
    chosen = [entry for entry in members() if member is None or f"{entry.path}.".startswith(f"{member}.")]
    if not chosen:
        fail(f"A policy has no member {member}; `sluice policies explain` lists all of them.")
    document, defaults = (
        current.policy.model_dump(mode="json"),
        type(current.policy)().model_dump(mode="json"),
    )
    note(f"Version {current.version} of tenant {tenant}.")
    for entry in chosen:
        print(f"{entry.path}: {entry.takes}. {entry.meaning}".rstrip())
        if "[]" not in entry.path:
            value, default = _at(document, entry.path), _at(defaults, entry.path)
            is_default = " (the default)" if value == default else f" (default: {_spelled(default)})"
            print(f"    now: {_spelled(value)}{is_default}")


def _in_tenant(tenant: str, work: Callable[["PolicyService", "Caller"], Awaitable[T]]) -> T:
    """Run ``work`` as the host's caller in ``tenant``, which must exist."""
    from app.cli.host import caller_for, on_host

    return on_host(lambda host: work(host.policies, caller_for(tenant)))


def _read(file: Path) -> "Policy":
    from app.services.access.policy_documents import policy_of
    from app.services.data_files import read_document

    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    return policy_of(read_document(body, "json" if file.suffix == ".json" else "yaml"))


def _at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document[step]
    return document


def _spelled(value: Any) -> str:
    from app.core.strictjson import dumps

    return dumps(value).decode()


def _tell(widened: "list[Widening] | tuple[Widening, ...] | Any") -> None:
    if not widened:
        print("It widens no right.")
    for entry in widened:
        print(f"It widens {entry.pointer}: {entry.reason}.")
