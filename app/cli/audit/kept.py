"""``sluice audit content`` and ``end-user``: what an event keeps sealed."""

from typing import Annotated, Final
from uuid import UUID

import typer

CONTENT_EPILOG: Final = """Example:

\b
  sluice audit content 0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11 --reason "Complaint 2026-114\""""
END_USER_EPILOG: Final = """Example:

\b
  sluice audit end-user 0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11 --reason "Complaint 2026-114\""""

Reason = Annotated[str, typer.Option(help="Why; it is on record.")]
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]


def show_content(
    event: Annotated[UUID, typer.Argument(help="Id of an event that keeps content.")],
    reason: Reason,
    tenant: Tenant = "default",
) -> None:
    """Print the content that an event keeps sealed, as JSON. It is on record with the reason."""
    from app.cli.host import caller_for, on_host
    from app.services.audit.keeping import KeptContent

    kept = on_host(lambda host: KeptContent(host.audit).open(caller_for(tenant), event, reason))
    print(kept.decode())


def show_end_user(
    event: Annotated[UUID, typer.Argument(help="Id of an event that keeps the name of an end user.")],
    reason: Reason,
    tenant: Tenant = "default",
) -> None:
    """Print for whom the actor of an event asked. It is on record with the reason."""
    from app.cli.host import caller_for, on_host
    from app.services.audit.keeping import KeptContent

    print(on_host(lambda host: KeptContent(host.audit).end_user(caller_for(tenant), event, reason)))
