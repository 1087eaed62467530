"""Tell clients where tokens for this service come from: metadata (RFC 9728), and challenges that point to it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.core.access import Role
from app.core.errors import ForbiddenError, NotFoundError, UnauthenticatedError
from app.core.identities import TrustedIssuer
from app.core.strictjson import dumps
from app.edge.facts import RequestFacts
from app.edge.lifespan_state import ToldResources
from app.edge.surfaces import RawHeaders

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
_DOORS: Final = ("/mcp", "/api/v1", "/openai", "/anthropic", "/integrations/litellm")
_OWN_CHALLENGE: Final = b'Bearer realm="sluice"'
"""How every surface asks for a credential; a challenge of a provider, which passes as it came, looks different."""
_NAME: Final = b"www-authenticate"
_MOST: Final = "public, max-age=300"
_LEAST_FIRST: Final = (
    Role.INVOKER,
    Role.RESTORER,
    Role.AUDITOR,
    Role.ERASER,
    Role.OPERATOR,
    Role.KEY_CUSTODIAN,
)
"""Which role a client is told to ask for, where several would do: the first."""


@dataclass(frozen=True, slots=True)
class ProtectedResources:
    """What of this service is protected by which issuers.

    ``address`` is where clients reach the service, None: the audiences of the issuers say it, or nobody is told.
    """

    issuers: Sequence[TrustedIssuer] = ()
    address: str | None = None

    def metadata(self, path: str) -> dict[str, Any] | None:
        """Return the metadata of the resource that has a path ("" for the service), None where there is none."""
        resource = self._resource(path)
        if resource is None:
            return None
        scopes = [
            scope
            for issuer in self.issuers
            for scope in (*issuer.scopes, *(text for rule in issuer.rules for text in rule.scopes))
        ]
        return {
            "resource": resource,
            "authorization_servers": [issuer.issuer for issuer in self.issuers],
            "bearer_methods_supported": ["header"],
            "scopes_supported": [*dict.fromkeys(scopes)],
            "resource_name": "Sluice",
        }

    def challenged(
        self, status: int, headers: RawHeaders, facts: RequestFacts, sent: RawHeaders
    ) -> list[tuple[bytes, bytes]]:
        """Return the headers of an answer, with the challenge that tells a client which token to get.

        ``sent`` are the headers of the request.
        """
        own = [*headers]
        if status == HTTPStatus.UNAUTHORIZED and (_NAME, _OWN_CHALLENGE) in own:
            own.remove((_NAME, _OWN_CHALLENGE))
            presented = any(name == b"authorization" for name, _ in sent)
            return [*own, (_NAME, self._unauthenticated(facts, presented=presented))]
        insufficient = self._insufficient(facts) if status == HTTPStatus.FORBIDDEN else None
        return own if insufficient is None else [*own, (_NAME, insufficient)]

    def _unauthenticated(self, facts: RequestFacts, *, presented: bool) -> bytes:
        role = _least(facts.required) or Role.INVOKER
        scopes = [scope for issuer in self.issuers for scope in issuer.scopes_for({role})]
        error = (
            {"error": "invalid_token"} if presented and facts.error_code == UnauthenticatedError.code else {}
        )
        return self._challenge(facts.path, error, scopes)

    def _insufficient(self, facts: RequestFacts) -> bytes | None:
        """Return the challenge for a token that is valid but gives too little, None where no scope would help."""
        caller, role = facts.caller, _least(facts.required)
        if facts.error_code != ForbiddenError.code or role is None or (caller and caller.issuer is None):
            return None
        scopes: list[str] = []
        for issuer in self.issuers:
            if caller is None:
                scopes += issuer.scopes_for({role})
            elif issuer.issuer == caller.issuer:
                scopes += issuer.scopes_for(caller.roles | {role}) or issuer.scopes_for({role})
        return self._challenge(facts.path, {"error": "insufficient_scope"}, scopes) if scopes else None

    def _challenge(self, path: str, error: dict[str, str], scopes: Sequence[str]) -> bytes:
        parts = {"realm": "sluice", **error}
        if scopes:
            parts["scope"] = " ".join(dict.fromkeys(scopes))
        if (origin := self.origin) is not None:
            door = _door_of(path)
            parts["resource_metadata"] = origin + WELL_KNOWN + (door if self._resource(door) else "")
        return ("Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items())).encode()

    def _resource(self, path: str) -> str | None:
        """Return the resource that has a path: the longest audience that covers it, else the door itself."""
        origin = self.origin
        if origin is None:
            return None
        audiences = self._audiences()
        covering = [audience for audience in audiences if _covers(audience, origin + path)]
        if covering:
            return max(covering, key=len)
        if self.address is not None:
            return origin + _door_of(path)
        return audiences[0] if path == "" else None

    @property
    def origin(self) -> str | None:
        """Return the origin at which clients reach the service, None where nothing says it."""
        address = self.address or next(iter(self._audiences()), None)
        if address is None:
            return None
        parts = urlsplit(address)
        return f"{parts.scheme}://{parts.netloc}"

    def _audiences(self) -> list[str]:
        """Return the audiences that are addresses, and so may be told as resources."""
        listed = [audience for issuer in self.issuers for audience in sorted(issuer.audience)]
        return [audience for audience in listed if urlsplit(audience).scheme in {"http", "https"}]


def resource_router(resources_of: Callable[[Request], ToldResources | None]) -> APIRouter:
    """Return the routes of the metadata, which anybody may read; there is none while no issuer is trusted."""
    router = APIRouter()

    async def answer(request: Request) -> Response:
        path, resources = request.path_params.get("path", ""), resources_of(request)
        document = resources.metadata(f"/{path}" if path else "") if resources is not None else None
        if document is None:
            raise NotFoundError(
                "No tokens are issued for this path; ask for the metadata of the whole service."
            )
        return Response(dumps(document), media_type="application/json", headers={"cache-control": _MOST})

    for template in (WELL_KNOWN, WELL_KNOWN + "/{path:path}"):
        router.add_api_route(template, answer, methods=["GET"], include_in_schema=False)
    return router


def _least(roles: Collection[str]) -> Role | None:
    return next((role for role in _LEAST_FIRST if role in roles), None)


def _door_of(path: str) -> str:
    return next((door for door in _DOORS if path == door or path.startswith(door + "/")), "")


def _covers(audience: str, address: str) -> bool:
    base = audience.rstrip("/")
    return address in {audience, base} or address.startswith(base + "/")
