"""The ways in: ``/`` for browsers, the API's reference, the files of the pages, and what is not there."""

from typing import Final

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from app.console.assets import ASSETS_PATH, send_asset
from app.console.rendering import page
from app.console.visits import HOME, console_services, failed, new_pages, see
from app.core.errors import NotFoundError

_DOORS: Final = """Sluice, context middleware for MCP.

/mcp                   MCP over streamable HTTP
/api/v1                REST; /api/v1/openapi.json describes it, /docs shows it
/openai, /anthropic    model providers, in their own forms
/console/              pages, for a browser
/livez, /readyz        whether it lives, and serves
"""

router = new_pages()
rest = new_pages()
"""What no other route of the console has; comes after all of them."""


@router.get("/")
async def lead_on(request: Request) -> Response:
    """Lead browsers to the console, and tell programs where the doors are."""
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse(_DOORS)
    return see(HOME)


@router.get("/console")
async def lead_home() -> Response:
    """Lead to the first page."""
    return see(HOME)


@router.get("/docs")
async def show_reference(request: Request) -> Response:
    """Show the reference of the API; what it tries out needs a key, as any call."""
    values = {"version": console_services(request).version}
    return page(request, "reference.html", values, images="data:")


@router.get(ASSETS_PATH + "/{digest}/{name}")
async def get_asset(request: Request, digest: str, name: str) -> Response:
    """Send a style sheet or a script; they are the same for everybody."""
    return await send_asset(request, digest, name)


@rest.get("/console/{path:path}")
async def miss(request: Request, path: str) -> Response:  # noqa: ARG001 - any path
    """Say that there is no such page."""
    return failed(
        request, NotFoundError("There is no such page. The navigation leads to those that there are.")
    )
