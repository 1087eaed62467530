"""List everything that a server offers, page by page and within bounds."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Final

from app.core.catalog.primitives import INSTRUCTIONS_NAME, NAME_FIELD, Offer, PrimitiveKind
from app.core.errors import TooLargeError, UpstreamUnavailableError
from app.core.strictjson import dumps
from app.core.upstream import NO_HOOKS, Hooks, UpstreamError
from app.upstream.transport.options import ServerLink

CHANGES: Final[Mapping[str, frozenset[PrimitiveKind]]] = MappingProxyType(
    {
        "notifications/tools/list_changed": frozenset({PrimitiveKind.TOOL}),
        "notifications/prompts/list_changed": frozenset({PrimitiveKind.PROMPT}),
        "notifications/resources/list_changed": frozenset({PrimitiveKind.RESOURCE, PrimitiveKind.TEMPLATE}),
    }
)
"""The lists that a notification announces as changed."""

LONGEST_NAME: Final = 2048
MOST_PAGES: Final = 1000

_LISTS: Final[Mapping[PrimitiveKind, tuple[str, str, str]]] = MappingProxyType(
    {
        PrimitiveKind.TOOL: ("tools", "tools/list", "tools"),
        PrimitiveKind.PROMPT: ("prompts", "prompts/list", "prompts"),
        PrimitiveKind.RESOURCE: ("resources", "resources/list", "resources"),
        PrimitiveKind.TEMPLATE: ("resources", "resources/templates/list", "resourceTemplates"),
    }
)
"""The capability that declares a list, the method that requests it, the member of the result that carries it."""

_METHOD_NOT_FOUND: Final = -32601
_TURN: Final = 32

log = logging.getLogger("sluice.upstream")


def declared(capabilities: Mapping[str, Any]) -> list[PrimitiveKind]:
    """Return the kinds that a server declares."""
    return [kind for kind, (capability, _, _) in _LISTS.items() if capabilities.get(capability) is not None]


async def listed(
    link: ServerLink,
    server: str,
    kind: PrimitiveKind,
    *,
    timeout_s: float,
    most_bytes: int,
    hooks: Hooks = NO_HOOKS,
) -> tuple[Offer, ...]:
    """Return all that the server offers of a kind, in its own order, each name once.

    Entries that are not definitions are left out and counted in the log. A server that does not know the method
    offers none; any other fault is raised, so that a partial list never passes for the whole one.
    """
    offers: dict[str, Offer] = {}
    entries = size = 0
    async with aclosing(_rows(link, server, kind, timeout_s, hooks)) as rows:
        async for row in rows:
            entries += 1
            size += len(dumps(row))
            if size > most_bytes:
                raise _too_much(server, kind, "max_result_bytes", most_bytes)
            offer = _offer(kind, server, row)
            if offer is not None:
                offers.setdefault(offer.own_name, offer)
            if entries % _TURN == 0:
                await asyncio.sleep(0)  # a long list must not hold up other servers' calls
    if entries > len(offers):
        log.warning("%ss of server %s: %d entries left out", kind.value, server, entries - len(offers))
    return tuple(offers.values())


async def _rows(
    link: ServerLink, server: str, kind: PrimitiveKind, timeout_s: float, hooks: Hooks
) -> AsyncGenerator[Any, None]:
    """Yield the entries of all pages."""
    _, method, member = _LISTS[kind]
    cursor: str | None = None
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout_s
    for _ in range(MOST_PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        try:
            page = await link.request(method, params, hooks=hooks, timeout_s=max(0.01, deadline - clock()))
        except UpstreamError as error:
            if error.code == _METHOD_NOT_FOUND:
                return
            raise
        rows = page.get(member)
        following = page.get("nextCursor")
        if (
            not isinstance(rows, list)
            or not isinstance(following, str | None)
            or (following and following == cursor)
        ):
            raise UpstreamUnavailableError(
                f"Server {server!r} broke the protocol in its answer to {method}.", details={"server": server}
            )
        for row in rows:
            yield row
        if not following:
            return
        cursor = following
    raise _too_much(server, kind, "pages", MOST_PAGES)


def _too_much(server: str, kind: PrimitiveKind, limit: str, maximum: int) -> TooLargeError:
    unit = "pages" if limit == "pages" else "bytes"
    return TooLargeError(
        f"Server {server!r} lists more than {maximum} {unit} of {kind.value}s.",
        details={"server": server, "limit": limit, "maximum": maximum},
    )


class Inventory:
    """What a server offered when it was last listed, by kind."""

    def __init__(self, server: str, *, timeout_s: float, most_bytes: int) -> None:
        self.missing: set[PrimitiveKind] = set()
        """Lists that could not be read at the last attempt; their former content is kept."""

        self._server, self._timeout_s, self._most_bytes = server, timeout_s, most_bytes
        self._lists: dict[PrimitiveKind, tuple[Offer, ...]] = {}
        self._schemas: dict[str, Mapping[str, Any]] = {}

    async def read(self, link: ServerLink, kinds: Collection[PrimitiveKind]) -> BaseException | None:
        """Read these lists, and drop those that the server no longer declares.

        A list that fails does not affect the others. Returns the fault where no declared list could be read.
        """
        wanted, has = sorted(kinds), declared(link.capabilities)
        requests = (
            listed(link, self._server, kind, timeout_s=self._timeout_s, most_bytes=self._most_bytes)
            for kind in wanted
        )
        results = await asyncio.gather(*requests, return_exceptions=True)
        fault: BaseException | None = None
        for kind, result in zip(wanted, results, strict=True):
            if isinstance(result, BaseException):
                fault = result
                self.missing.add(kind)
            else:
                self._lists[kind] = result
                self.missing.discard(kind)
        self.missing &= set(has)
        self._lists = {kind: self._lists[kind] for kind in _LISTS if kind in self._lists and kind in has}
        self._schemas = {
            offer.own_name: offer.definition["inputSchema"]
            for offer in self._lists.get(PrimitiveKind.TOOL, ())
        }
        return fault if self.missing.issuperset(has) else None

    def offers(self) -> tuple[Offer, ...]:
        """Return all offers: tools, prompts, resources, templates, each in the server's own order."""
        return tuple(offer for offers in self._lists.values() for offer in offers)

    def counts(self) -> dict[PrimitiveKind, int]:
        """Return the number of offers by kind."""
        return {kind: len(offers) for kind, offers in self._lists.items()}

    def schema_of(self, tool: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool by the server's own name."""
        return self._schemas.get(tool)

    def fault(self) -> str | None:
        """Return a sentence that names the missing lists, or None."""
        if not self.missing:
            return None
        kinds = " and ".join(f"{kind.value}s" for kind in sorted(self.missing))
        return f"Server {self._server!r} did not list its {kinds}; what it offered before is kept."


def advice(server: str, text: str | None) -> list[Offer]:
    """Return a server's instructions for models, if it has any, in the form in which they are approved."""
    return [Offer(PrimitiveKind.INSTRUCTIONS, server, INSTRUCTIONS_NAME, {"text": text})] if text else []


def _offer(kind: PrimitiveKind, server: str, row: Any) -> Offer | None:
    if not isinstance(row, dict):
        return None
    name = row.get(NAME_FIELD[kind])
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        return None
    if kind is PrimitiveKind.TOOL and not isinstance(row.get("inputSchema"), dict):
        return None
    return Offer(kind, server, name, row)
