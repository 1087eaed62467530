"""Where authorization servers send people back to, who granted something for a server behind this service."""

from fastapi import Request
from starlette.responses import Response

from app.console.rendering import page
from app.console.visits import console_services, failed, new_pages
from app.core.errors import InvalidRequestError, ServiceError
from app.services.servers.grant_starts import GRANT_CALLBACK

_LONGEST = 4096

router = new_pages()


@router.get(GRANT_CALLBACK)
async def show_code(request: Request) -> Response:
    """Show the code with which the person confirms the grant where it was begun; nobody is signed in here."""
    answer: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in answer or len(value) > _LONGEST:
            return failed(
                request, InvalidRequestError("The address has a part twice, or one that is too long.")
            )
        answer[name] = value
    try:
        server, code = await console_services(request).grants.came_back(answer)
    except ServiceError as error:
        return failed(request, error)
    return page(request, "grant.html", {"server": server, "code": code})
