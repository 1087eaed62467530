"""Say what a client sees: which tools, prompts and resources, in which form, and what keeps the others from it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from app.core.access import Caller
from app.core.catalog.concern_configuration import Effective, requested_layer
from app.core.catalog.primitives import Primitive, PrimitiveKind
from app.core.errors import InvalidArgumentsError
from app.core.request import RequestInfo
from app.core.tools.disclosure import staged_for
from app.services.access.access import AccessService
from app.services.catalog.concerns import ConcernService
from app.services.catalog.listing import USERS, CallerView, ListingService
from app.services.previews.client_keys import caller_of, find_client
from app.store.access.access import KeyInfo

MOST_SHOWN: Final = 500


class SeenPrimitive(NamedTuple):
    """A primitive that a client may use.

    ``staged``: it comes in short form first. ``listed``: False where a concern keeps it out of lists.
    """

    kind: PrimitiveKind
    name: str
    server: str
    staged: bool
    listed: bool
    groups: Sequence[str]
    concerns: Mapping[str, Any]


class ClientCatalog(NamedTuple):
    """What a client sees: the first primitives, how many there are, and how many the policy does not grant it."""

    client: KeyInfo
    policy_version: int
    restricted: bool
    configuration: Mapping[str, Any]
    warnings: Sequence[Mapping[str, str]]
    primitives: Sequence[SeenPrimitive]
    listed: int
    filtered: int
    withheld: int
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class ClientCatalogs:
    """Answers operators about what single clients see."""

    access: AccessService
    listing: ListingService
    concerns: ConcernService

    async def seen(
        self,
        caller: Caller,
        key_id: str,
        request: RequestInfo,
        *,
        group: str | None = None,
        concerns: Mapping[str, Any] | None = None,
    ) -> ClientCatalog:
        """Return what a key sees, at the endpoint of ``group`` and with ``concerns`` in its request, where given."""
        info = await find_client(self.access, caller, key_id, request)
        client = caller_of(info)
        effective = await self._effective(client, concerns)
        if client.roles.isdisjoint(USERS):
            refused = "The key has neither the role invoker nor restorer: lists are refused."
            return ClientCatalog(
                client=info,
                policy_version=0,
                restricted=True,
                configuration=effective.configuration,
                warnings=effective.warnings,
                primitives=(),
                listed=0,
                filtered=0,
                withheld=0,
                refused=refused,
            )
        view = await self.listing.view(client, None, group)
        seen = [_seen(view, client, effective, primitive) for primitive in view.all]
        listed = sum(primitive.listed for primitive in seen)
        everything = sum(len(by_name) for by_name in view.catalog.primitives.values())
        return ClientCatalog(
            client=info,
            policy_version=view.policy_version,
            restricted=view.restricted,
            configuration=effective.configuration,
            warnings=effective.warnings,
            primitives=sorted(seen, key=lambda primitive: not primitive.listed)[:MOST_SHOWN],
            listed=listed,
            filtered=len(seen) - listed,
            withheld=everything - len(seen),
        )

    async def groups(self, caller: Caller) -> Sequence[str]:
        """Return the names of the groups of the caller's tenant that have members, in alphabetical order."""
        catalog = await self.listing.catalogs.get(caller.tenant)
        return sorted(catalog.groups)

    async def _effective(self, client: Caller, concerns: Mapping[str, Any] | None) -> Effective:
        layer = requested_layer(concerns, "/concerns") if concerns else None
        return await self.concerns.effective(client, {}, layer)


def concern_values(lines: Sequence[str]) -> dict[str, Any]:
    """Return the values of lines like ``region=eu``; numbers, true, false and null are what JSON takes them for."""
    values: dict[str, Any] = {}
    for line in lines:
        name, separator, text = line.partition("=")
        if not separator or not name.strip():
            raise InvalidArgumentsError("Write each concern as name=value.", details={"pointer": "/concern"})
        values[name.strip()] = _value(text.strip())
    return values


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if value is None or isinstance(value, bool | int | float) else text


def _seen(view: CallerView, client: Caller, effective: Effective, primitive: Primitive) -> SeenPrimitive:
    return SeenPrimitive(
        kind=primitive.kind,
        name=primitive.name,
        server=primitive.server,
        staged=staged_for(view.policy, client, primitive),
        listed=effective.lists(primitive.concerns),
        groups=primitive.groups,
        concerns=primitive.concerns,
    )
