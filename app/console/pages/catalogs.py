"""What a client sees of the servers: for any key, group and concern, with what keeps the rest from it."""

from typing import Annotated, Final

from fastapi import Query
from starlette.responses import Response

from app.console.visits import VisitDep, new_pages
from app.core.access import Role
from app.core.errors import InvalidArgumentsError, NotFoundError
from app.services.previews.catalogs import concern_values
from app.services.previews.client_keys import list_clients

PAGE: Final = "/console/servers/clients/catalog"

router = new_pages()


@router.get(PAGE)
async def show_catalog(
    visit: VisitDep,
    key: Annotated[str, Query(max_length=64)] = "",
    group: Annotated[str, Query(max_length=64)] = "",
    concerns: Annotated[str, Query(max_length=4000)] = "",
) -> Response:
    """Show the form, and what the key of the address sees."""
    visit.caller.require(Role.OPERATOR)
    catalogs = visit.services.client_catalogs
    clients = await list_clients(visit.services.access, visit.caller, visit.info)
    seen, fault = None, None
    try:
        if key:
            values = concern_values([line for line in concerns.splitlines() if line.strip()])
            seen = await catalogs.seen(visit.caller, key, visit.info, group=group or None, concerns=values)
    except (InvalidArgumentsError, NotFoundError) as error:
        fault = error.message
    return visit.page(
        "client_catalog.html",
        {
            "asked": {"key": key, "group": group, "concerns": concerns},
            "clients": clients,
            "groups": await catalogs.groups(visit.caller),
            "seen": seen,
            "fault": fault,
        },
        status=200 if fault is None else 422,
    )
