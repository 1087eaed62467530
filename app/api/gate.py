"""Who may send a body: asked by the edge before it reads one, for the routes and the MCP endpoints alike."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from app.api.auth import RouteServices
from app.edge.facts import RequestFacts
from app.edge.limits import Needs


@dataclass(frozen=True, slots=True)
class ServiceGate:
    """Authenticates callers, and refuses on record those without a role that the route declares.

    ``services`` returns what the application was built with, which is there once it has started.
    """

    services: Callable[[], RouteServices]

    async def __call__(self, facts: RequestFacts, bearer: str | None, needed: Needs | None) -> None:
        """Admit the caller, or raise what refuses the request."""
        services = self.services()
        caller = services.anonymous or await services.access.authenticate(bearer, facts.address)
        facts.admit(caller)
        if needed is not None and caller.roles.isdisjoint(needed.roles):
            async with services.audit.refusals(caller, needed.action, facts.info(math.inf)):
                caller.require(*needed.roles)
