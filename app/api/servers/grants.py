"""What people granted for servers that are called with their rights: begin, confirm, list and take back."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Path, Query
from pydantic import ConfigDict, Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import AnswerBody, Body, Page
from app.core.access import Role
from app.core.catalog.servers import SERVER_NAME, ServerName
from app.edge.limits import needs
from app.services.access.sessions import SESSION_ID

router = new_router("/server-grants", "servers")

GrantedServer = Annotated[
    str, Path(pattern=rf"^{SERVER_NAME.pattern}$", description="Name of a server.", examples=["tickets"])
]
Holder = Annotated[
    str | None,
    Query(
        max_length=64,
        description="The person, as `actor` in the record. For operators; without it, your own grants are meant.",
    ),
]


class GrantBody(Body):
    """For which server something is to be granted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"server": "tickets"}]})

    server: ServerName = Field(description="A server whose `auth` has the mode `user_grant`.")


class GrantStartAnswer(AnswerBody):
    """Where to go in a browser."""

    server: str
    authorize: str = Field(description="Address of the authorization server, for this grant alone.")
    expires: datetime = Field(description="Until when one can come back from there.")


class ConfirmationBody(Body):
    """The code that the page showed in the end."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"code": "mZ1yGf4bTq0cVn2sXr8dLk6hJw3pEa9uQi5oYt7zRxA"}]}
    )

    code: str = Field(pattern=rf"^{SESSION_ID.pattern}$", repr=False)


class GrantAnswer(AnswerBody):
    """A grant, without its tokens."""

    server: str
    holder: str = Field(description="Whose it is, as `actor` in the record.")
    issuer: str = Field(description="The authorization server.")
    created: datetime
    updated: datetime = Field(description="When its tokens were last renewed.")


class ConfirmationAnswer(AnswerBody):
    """For which server the grant counts from now on."""

    server: str


@router.get("", summary="List grants for servers")
async def list_grants(
    caller: CallerDep, services: ServicesDep, info: InfoDep, holder: Holder = None
) -> Page[GrantAnswer]:
    """Return your grants; with the role operator, those of all people of the tenant, or of one `holder`.

    Needs the role invoker or operator.
    """
    grants = await services.grants.list(caller, holder, info)
    items = [
        GrantAnswer(
            server=grant.server,
            holder=grant.holder,
            issuer=grant.issuer,
            created=grant.created,
            updated=grant.updated,
        )
        for grant in grants
    ]
    return Page[GrantAnswer](items=items, next=None)


@router.post("", status_code=201, summary="Begin to grant something")
@needs(Role.INVOKER, action="grants.begin")
async def begin_grant(
    body: GrantBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> GrantStartAnswer:
    """Return an address to open in a browser. The page there ends with a code to confirm. Needs the role invoker.

    For callers with a token of an identity provider; an API key is of no person.
    """
    start = await services.grants.begin(caller, body.server, info)
    expires = datetime.fromtimestamp(start.until, UTC)
    return GrantStartAnswer(server=body.server, authorize=start.url, expires=expires)


@router.post("/confirm", summary="Confirm a grant")
@needs(Role.INVOKER, action="grants.confirm")
async def confirm_grant(
    body: ConfirmationBody, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> ConfirmationAnswer:
    """Use what was granted from now on. The code counts once, for the person who began. Needs the role invoker."""
    return ConfirmationAnswer(server=await services.grants.confirm(caller, body.code, info))


@router.delete("/{server}", status_code=204, summary="Take back a grant")
@needs(Role.INVOKER, Role.OPERATOR, action="grants.revoke")
async def revoke_grant(
    server: GrantedServer, caller: CallerDep, services: ServicesDep, info: InfoDep, holder: Holder = None
) -> None:
    """Forget a grant, and tell its authorization server (RFC 7009). Needs the role invoker; another one's, operator."""
    await services.grants.revoke(caller, server, holder, info)
