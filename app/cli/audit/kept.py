"""``sluice audit content`` and ``end-user``: what an event keeps sealed."""

from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer

from app.cli.target import CommandTarget

if TYPE_CHECKING:
    from app.assembly import Services
    from app.cli.calls import ServiceCalls

CONTENT_EPILOG: Final = """Example:

\b
  sluice audit content 0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11 --reason "Complaint 2026-114\""""
END_USER_EPILOG: Final = """Example:

\b
  sluice audit end-user 0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11 --reason "Complaint 2026-114\""""

Reason = Annotated[str, typer.Option(help="Why; it is on record.")]
_EVENTS: Final = "/api/v1/audit/events"


def show_content(
    target: CommandTarget,
    event: Annotated[UUID, typer.Argument(help="Id of an event that keeps content.")],
    reason: Reason,
) -> None:
    """Print the content that an event keeps sealed, as JSON. It is on record with the reason."""
    from app.cli.host import caller_for
    from app.core.strictjson import dumps
    from app.services.audit.keeping import KeptContent

    async def here(host: "Services") -> str:
        return (await KeptContent(host.audit).open(caller_for(target.here), event, reason)).decode()

    def there(service: "ServiceCalls") -> str:
        opened = service.ask("POST", f"{_EVENTS}/{event}/content", {"reason": reason})
        return dumps(opened["content"]).decode()

    print(target.do(here, there))


def show_end_user(
    target: CommandTarget,
    event: Annotated[UUID, typer.Argument(help="Id of an event that keeps the name of an end user.")],
    reason: Reason,
) -> None:
    """Print for whom the actor of an event asked. It is on record with the reason."""
    from app.cli.host import caller_for
    from app.services.audit.keeping import KeptContent

    async def here(host: "Services") -> str:
        return await KeptContent(host.audit).end_user(caller_for(target.here), event, reason)

    def there(service: "ServiceCalls") -> str:
        opened = service.ask("POST", f"{_EVENTS}/{event}/end-user", {"reason": reason})
        return str(opened["end_user"])

    print(target.do(here, there))
