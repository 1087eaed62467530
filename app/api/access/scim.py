"""SCIM 2.0 (RFC 7644) at /scim/v2: an identity provider keeps a mirror of its people and groups here."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response

from app.api.auth import admitted, info_of, services_of
from app.core.access import Caller, Role
from app.core.errors import InvalidRequestError, NotFoundError, ServiceError
from app.core.strictjson import dumps, loads
from app.edge.facts import facts_of
from app.edge.limits import Headers, RouteLimits, needs, takes
from app.edge.problems import error_headers, log_cause, status_of
from app.edge.surfaces import ForeignRefusal, ForeignSurface, RawHeaders
from app.services.access.identity.entries import CORE, MESSAGES, Kind, filtered
from app.services.access.identity.mirror import PAGE, MirrorService

PREFIX: Final = "/scim/v2"
_TYPE: Final = "application/scim+json"
_BODY: Final = RouteLimits(streamed=frozenset({_TYPE}), json=True, whole=True, most=2 * 1024 * 1024)
_KINDS: Final[Mapping[str, Kind]] = {"Users": "User", "Groups": "Group"}
_DEEPEST: Final = 16
_LAST: Final = 2**31

EntryPath = Annotated[str, Path(max_length=64)]


class ScimRoute(APIRoute):
    """A route whose errors are those of SCIM."""

    def get_route_handler(self) -> Any:
        """Return the handler, whose errors are answered here."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            facts = facts_of(request.scope)
            try:
                answer: Response = await handle(request)
            except RequestValidationError:
                return _failed(InvalidRequestError("A parameter of the address is not valid."))
            except ServiceError as error:
                facts.fail(error)
                log_cause(error, facts.request_id)
                return _failed(error)
            return answer

        return answered


router = APIRouter(prefix=PREFIX, route_class=ScimRoute, include_in_schema=False)


@router.get("/ServiceProviderConfig")
async def describe_service(request: Request) -> Response:
    """Say what is supported (RFC 7643, section 5)."""
    await _caller(request)
    unsupported: dict[str, Any] = {"supported": False}
    return _answer(
        {
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
            "patch": {"supported": True},
            "bulk": {**unsupported, "maxOperations": 0, "maxPayloadSize": 0},
            "filter": {"supported": True, "maxResults": PAGE},
            "changePassword": unsupported,
            "sort": unsupported,
            "etag": unsupported,
            "authenticationSchemes": [
                {
                    "type": "oauthbearertoken",
                    "name": "API key",
                    "description": "A key with the role provisioner.",
                }
            ],
            "meta": {
                "resourceType": "ServiceProviderConfig",
                "location": f"{_base(request)}/ServiceProviderConfig",
            },
        }
    )


@router.get("/ResourceTypes")
async def describe_types(request: Request) -> Response:
    """Say which resources there are."""
    await _caller(request)
    types = [
        {
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
            "id": kind,
            "name": kind,
            "endpoint": f"/{plural}",
            "schema": CORE + kind,
            "meta": {"resourceType": "ResourceType", "location": f"{_base(request)}/ResourceTypes/{kind}"},
        }
        for plural, kind in _KINDS.items()
    ]
    return _listed(types, len(types))


@router.get("/{plural}")
async def list_entries(
    request: Request,
    plural: str,
    filter_: Annotated[str | None, Query(alias="filter", max_length=1100)] = None,
    start: Annotated[int, Query(alias="startIndex", le=_LAST)] = 1,
    count: Annotated[int, Query()] = PAGE,
    excluded: Annotated[str, Query(alias="excludedAttributes", max_length=200)] = "",
) -> Response:
    """List entries, or those that a filter names."""
    caller, first = await _caller(request), max(1, start)
    page = await _mirror(request).page(
        caller,
        _kind(plural),
        info_of(request),
        filter_=filtered(filter_) if filter_ is not None else None,
        start=first,
        count=max(0, count),
    )
    members = "members" not in excluded.lower()
    listed = [entry.rendered(_base(request), members=members) for entry in page.entries]
    return _listed(listed, page.total, first)


@router.post("/{plural}")
@takes(_BODY)
@needs(Role.PROVISIONER, action="directory.access")
async def create_entry(request: Request, plural: str) -> Response:
    """Store a new entry."""
    caller = await _caller(request)
    entry = await _mirror(request).create(caller, _kind(plural), await _body(request), info_of(request))
    shown = entry.rendered(_base(request))
    return _answer(shown, 201, {"location": shown["meta"]["location"]})


@router.get("/{plural}/{entry_id}")
async def get_entry(
    request: Request,
    plural: str,
    entry_id: EntryPath,
    excluded: Annotated[str, Query(alias="excludedAttributes", max_length=200)] = "",
) -> Response:
    """Return one entry."""
    entry = await _mirror(request).get(await _caller(request), _kind(plural), entry_id, info_of(request))
    return _answer(entry.rendered(_base(request), members="members" not in excluded.lower()))


@router.put("/{plural}/{entry_id}")
@takes(_BODY)
@needs(Role.PROVISIONER, action="directory.access")
async def replace_entry(request: Request, plural: str, entry_id: EntryPath) -> Response:
    """Replace an entry."""
    return await _changed(request, plural, entry_id, whole=True)


@router.patch("/{plural}/{entry_id}")
@takes(_BODY)
@needs(Role.PROVISIONER, action="directory.access")
async def patch_entry(request: Request, plural: str, entry_id: EntryPath) -> Response:
    """Change parts of an entry."""
    return await _changed(request, plural, entry_id, whole=False)


@router.delete("/{plural}/{entry_id}")
async def delete_entry(request: Request, plural: str, entry_id: EntryPath) -> Response:
    """Delete an entry: a person is out at once."""
    await _mirror(request).remove(await _caller(request), _kind(plural), entry_id, info_of(request))
    return Response(status_code=204)


def scim_refusal(error: ServiceError, status: int | None) -> ForeignRefusal:
    """Return an error of the edge as SCIM has it."""
    number = status or status_of(error)
    headers = [(name.encode(), value.encode()) for name, value in error_headers(error, number).items()]
    return ForeignRefusal(number, _error(error, number), _TYPE.encode(), headers)


def bearer_of(headers: RawHeaders) -> str | None:
    """Return the key that a provider presents."""
    return Headers(list(headers)).bearer


SURFACE: Final = ForeignSurface(PREFIX + "/", bearer_of, scim_refusal)


async def _changed(request: Request, plural: str, entry_id: str, *, whole: bool) -> Response:
    caller, body = await _caller(request), await _body(request)
    entry = await _mirror(request).change(
        caller, _kind(plural), entry_id, body, info_of(request), whole=whole
    )
    return _answer(entry.rendered(_base(request)))


async def _caller(request: Request) -> Caller:
    services, facts = services_of(request), facts_of(request.scope)
    caller = facts.caller or await admitted(services, facts, bearer_of(request.headers.raw))
    await services.requests.count(caller.tenant)
    return caller


async def _body(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == _TYPE:
        return loads(await request.body(), max_depth=_DEEPEST)
    return facts_of(request.scope).json


def _kind(plural: str) -> Kind:
    if plural not in _KINDS:
        raise NotFoundError("There is no such endpoint: /Users and /Groups are.")
    return _KINDS[plural]


def _mirror(request: Request) -> MirrorService:
    return MirrorService(services_of(request).audit)


def _base(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}{PREFIX}"


def _listed(resources: list[dict[str, Any]], total: int, start: int = 1) -> Response:
    return _answer(
        {
            "schemas": [MESSAGES + "ListResponse"],
            "totalResults": total,
            "startIndex": start,
            "itemsPerPage": len(resources),
            "Resources": resources,
        }
    )


def _answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dumps(body), status, headers=headers, media_type=_TYPE)


def _failed(error: ServiceError) -> Response:
    status = status_of(error)
    return Response(_error(error, status), status, headers=error_headers(error, status), media_type=_TYPE)


def _error(error: ServiceError, status: int) -> bytes:
    kind = error.details.get("scimType")
    return dumps(
        {
            "schemas": [MESSAGES + "Error"],
            "status": str(status),
            **({"scimType": kind} if isinstance(kind, str) else {}),
            "detail": error.message,
        }
    )
