"""Calls and reads on their way to a server: what is allowed, what is recorded, how long it may take, what returns."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, Protocol
from urllib.parse import unquote

from app.core.access import Caller
from app.core.catalog.naming import qualified, resolve_uri
from app.core.catalog.primitives import GROUPS_META, Primitive, PrimitiveKind
from app.core.catalog.servers import MCPServerSettings
from app.core.contracts.policy import Policy, ToolHook
from app.core.errors import (
    DeadlineExceededError,
    InvalidArgumentsError,
    RateLimitedError,
    TooLargeError,
    UpstreamUnavailableError,
)
from app.core.strictjson import depth_exceeds
from app.core.upstream import NO_HOOKS, Hooks, UpstreamError
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditService
from app.services.catalog.listing import CallerView, ListingService
from app.services.forward.forward_record import Asked, ForwardRecord
from app.services.forward.request_states import RequestStates
from app.services.forward.seen_uris import SeenUris
from app.services.forward.tool_hooks import HookedCall
from app.services.invoke.invoke import InvokeService

METHOD_NOT_FOUND: Final = -32601
_ABOUT_THE_CONNECTION: Final = frozenset({-32020, -32022})
"""Errors of a server about headers and revision: the client would take them for ours, and change its own."""

_OURS: Final = "dev.sluice/"
_ENVELOPE: Final = frozenset(
    {
        "progressToken",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientInfo",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/logLevel",
        "io.modelcontextprotocol/subscriptionId",
    }
)
"""Members of a request's ``_meta`` that belong to the connection with the client, not to the server behind."""

_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_NOT_THEIRS: Final = frozenset({_SERVER_INFO, GROUPS_META, "io.modelcontextprotocol/subscriptionId"})
"""Members of a result's ``_meta`` by which this server speaks to its clients, beside those of our own prefix."""

Gate = Callable[[CallerView, Primitive], Awaitable[Mapping[str, Any] | None]]
"""Returns the tool result that takes the place of a call, or None where the call may go on."""


class ServerChannel(Protocol):
    """A connection to one server."""

    @property
    def settings(self) -> MCPServerSettings:
        """Return how the server is reached and how long a call may take."""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        hooks: Hooks = NO_HOOKS,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return the server's raw result."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where a URI is read: the server, the URI as the server knows it, and what covers it where a list does."""

    server: str
    uri: str
    primitive: Primitive | None


@dataclass(frozen=True, slots=True)
class ForwardService:
    """The use cases of primitives: call, get, read, complete; ``channel`` finds a tenant's connection to a server."""

    listing: ListingService
    invoke: InvokeService
    traffic: Traffic
    audit: AuditService
    channel: Callable[[str, str], ServerChannel | None]
    seen: SeenUris = field(default_factory=SeenUris)

    async def call_tool(self, asked: Asked, gate: Gate | None = None) -> dict[str, Any]:
        """Call a tool; what is sent is on record before it leaves, and what came of it before it is answered."""
        journey = self._journey(asked, "tool.call")
        view = await self.listing.view(asked.caller, asked.request, asked.group, journey.action)
        tool = view.find(PrimitiveKind.TOOL, asked.params["name"])
        if tool is None:
            await self._unknown(
                journey, view, "There is no such tool; tools/list has those that you may call."
            )
        journey.primitive = tool
        async with journey.refusals():
            if gate is not None and (instead := await gate(view, tool)) is not None:
                self.traffic.spend(asked.caller.tenant, view.policy.limits)
                await journey.refused("description_required")
                return dict(instead)
            await journey.takes(asked.params.get("arguments") or {})
            _check_depth(journey.given, view.policy.limits.max_depth)
        own = {**asked.params, "name": tool.own_name}
        return await self._forwarded(journey, view, tool, "tools/call", own)

    async def get_prompt(self, asked: Asked) -> dict[str, Any]:
        """Return a prompt filled in by its server."""
        journey = self._journey(asked, "prompt.get")
        view = await self.listing.view(asked.caller, asked.request, asked.group, journey.action)
        prompt = view.find(PrimitiveKind.PROMPT, asked.params["name"])
        if prompt is None:
            await self._unknown(
                journey, view, "There is no such prompt; prompts/list has those that you may use."
            )
        journey.primitive = prompt
        await journey.takes(asked.params.get("arguments") or {})
        own = {**asked.params, "name": prompt.own_name}
        return await self._forwarded(journey, view, prompt, "prompts/get", own)

    async def read_resource(self, asked: Asked) -> dict[str, Any]:
        """Read a URI that a list holds, that a template covers, or that a result gave to this caller."""
        journey = self._journey(asked, "resource.read")
        view = await self.listing.view(asked.caller, asked.request, asked.group, journey.action)
        uri = asked.params["uri"]
        found = self.located(view, asked.caller, uri)
        if found is None:
            message = "There is no such resource that you may read."
            await self._unknown(journey, view, message, pointer="/uri", uri=uri)
        journey.primitive, journey.server = found.primitive, found.server
        journey.given = uri.encode()
        covering = found.primitive or _linked(found)
        result = await self._forwarded(
            journey, view, covering, "resources/read", {**asked.params, "uri": found.uri}
        )
        return result if found.uri == uri else _renamed(result, found.uri, uri)

    async def complete(self, asked: Asked) -> dict[str, Any]:
        """Suggest values for an argument of a prompt or a template; none where the server does not suggest any."""
        journey = self._journey(asked, "completion.complete")
        view = await self.listing.view(asked.caller, asked.request, asked.group, journey.action)
        ref = asked.params["ref"]
        field_name = "name" if ref.get("type") == "ref/prompt" else "uri"
        found = _referred(view, ref)
        if found is None:
            message = "There is no such prompt or template; the lists have those that you may use."
            await self._unknown(journey, view, message, pointer=f"/ref/{field_name}")
        journey.primitive = found
        await journey.takes(asked.params.get("argument") or {})
        own = {**asked.params, "ref": {**ref, field_name: found.own_name}}
        try:
            return await self._forwarded(journey, view, found, "completion/complete", own)
        except UpstreamError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return {"completion": {"values": [], "hasMore": False}}

    async def task(self, asked: Asked, method: str, tool: str, server: str) -> dict[str, Any]:
        """Ask a server about a task that a call of ``tool`` began; what holds for the tool holds for that."""
        journey = self._journey(asked, method.replace("/", "."))
        view = await self.listing.view(asked.caller, asked.request, asked.group)
        found = view.find(PrimitiveKind.TOOL, tool)
        if found is None or found.server != server:
            await self._unknown(journey, view, "There is no such task.", pointer="/taskId")
        journey.primitive = found
        return await self._forwarded(journey, view, found, method, asked.params)

    def located(self, view: CallerView, caller: Caller, uri: str) -> Located | None:
        """Return where a URI is read by this caller, None where it may not be or is not known.

        No link opens what a list of the tenant has, or a template covers, and this caller may not see.
        """
        reading = resolve_uri(uri, view.of(PrimitiveKind.RESOURCE), view.of(PrimitiveKind.TEMPLATE))
        if reading is not None:
            return Located(reading.server, reading.uri, reading.primitive)
        seen = self.seen.find(caller, uri)
        # A link holds as long as the caller may use anything of the server that gave it.
        if seen is None or seen[0] not in view.servers:
            return None
        return None if _is_listed(view, *seen) else Located(*seen, None)

    async def _forwarded(
        self,
        journey: ForwardRecord,
        view: CallerView,
        primitive: Primitive,
        method: str,
        params: Mapping[str, Any],
    ) -> dict[str, Any]:
        asked, limits = journey.asked, view.policy.limits
        journey.policy_version = view.policy_version
        kind = PrimitiveKind.RESOURCE if primitive.kind is PrimitiveKind.TEMPLATE else primitive.kind
        passage = _passage(view.policy, kind, primitive, params.get("uri"))
        states, about = RequestStates(self.audit.keys), (method, primitive.server, primitive.name)
        with self.traffic.forwarded(asked.caller.tenant, primitive.server, limits):
            async with journey.recorded():
                crossing = None
                hooks = asked.hooks
                params = states.opened(asked.caller, about, params)
                if passage is not None:
                    limit_s = limits.deadline_ms / 1000
                    crossing = HookedCall(
                        self.invoke, passage, asked.caller, asked.request, limit_s, asked.scope
                    )
                    hooks = crossing.hooks(hooks)
                    if method == "tools/call":
                        given = params.get("arguments") or {}
                        params = {**params, "arguments": await crossing.arguments(primitive.name, given)}
                try:
                    exchanged = await self._exchanged(
                        journey, primitive.server, method, _upward(params), hooks, crossing
                    )
                except UpstreamError:
                    # The words of an error are content like any other.
                    if asked.arrived is not None:
                        await asked.arrived(view.policy, primitive.server, _is_suspected(crossing))
                    raise
                result = _unmarked(exchanged)
                if crossing is not None:
                    result = await crossing.result(kind.value, result)
                # The server knows no callers behind this connection, so a state of another one would do for it.
                result = states.sealed(asked.caller, about, asked.params, result)
                if asked.arrived is not None:
                    told = await asked.arrived(view.policy, primitive.server, _is_suspected(crossing))
                    result = {**result, "_meta": {**(result.get("_meta") or {}), **told}} if told else result
                await journey.answered(result)
        self.seen.note(asked.caller, primitive.server, result)
        return result

    async def _exchanged(
        self,
        journey: ForwardRecord,
        server: str,
        method: str,
        params: Mapping[str, Any],
        hooks: Hooks,
        crossing: HookedCall | None,
    ) -> dict[str, Any]:
        channel = self.channel(journey.asked.caller.tenant, server)
        if channel is None:
            raise UpstreamUnavailableError(
                f"The server {server!r} is not served now; try again later.", details={"server": server}
            )
        left = journey.asked.request.deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise DeadlineExceededError("The request's time was over before it could be passed on.")
        timeout_s = min(left, channel.settings.timeout_s)
        await journey.leaves()
        try:
            if hooks.links is not None:
                return await hooks.links.request(server, method, params, hooks=hooks, timeout_s=timeout_s)
            return await channel.request(method, params, hooks=hooks, timeout_s=timeout_s)
        except UpstreamError as error:
            if error.code in _ABOUT_THE_CONNECTION:
                raise UpstreamUnavailableError(
                    f"The server {server!r} does not take requests in the form it agreed to.",
                    details={"server": server},
                ) from None
            if crossing is None:
                raise
            cleaned = await crossing.error(error)
        raise cleaned

    def _journey(self, asked: Asked, action: str) -> ForwardRecord:
        return ForwardRecord(self.audit, asked, action)

    async def _unknown(
        self, journey: ForwardRecord, view: CallerView, message: str, *, pointer: str = "/name", **named: str
    ) -> NoReturn:
        """Refuse what is unknown or forbidden, which look the same; on record unless it is a flood of them."""
        journey.policy_version = view.policy_version
        error = InvalidArgumentsError(message, details={"pointer": pointer, **named})
        try:
            self.traffic.spend(journey.asked.caller.tenant, view.policy.limits)
        except RateLimitedError:
            raise error from None
        await journey.refused(error.code)
        raise error


def _passage(policy: Policy, kind: PrimitiveKind, primitive: Primitive, uri: str | None) -> ToolHook | None:
    """Return the first passage that names the primitive, or the URI that is read through it in any spelling."""
    names = {primitive.name}
    if uri is not None:
        names |= {
            uri,
            unquote(uri),
            qualified(primitive.server, uri),
            qualified(primitive.server, unquote(uri)),
        }
    found = [one for name in names if (one := policy.passage_of(kind, name, primitive.server)) is not None]
    return min(found, key=policy.passages.index) if found else None


def _is_suspected(crossing: HookedCall | None) -> bool:
    return crossing is not None and bool(crossing.suspicions)


def _check_depth(given: bytes, maximum: int) -> None:
    if depth_exceeds(given, maximum):
        raise TooLargeError(
            f"The arguments nest deeper than {maximum} levels.",
            details={"limit": "max_depth", "value": maximum, "pointer": "/arguments"},
        )


def _upward(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params for the server: what the client said, less what concerns only the client and us."""
    meta = params.get("_meta")
    if meta is None:
        return dict(params)
    kept = {key: meta[key] for key in meta if key not in _ENVELOPE and not key.startswith(_OURS)}
    rest = {key: value for key, value in params.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept else rest


def _unmarked(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what a server says of how it is connected to us, and what only we say to clients."""
    meta = result.get("_meta")
    if isinstance(meta, Mapping) and any(map(_is_ours, meta)):
        rest = {key: value for key, value in meta.items() if not _is_ours(key)}
        result = {key: value for key, value in result.items() if key != "_meta" or rest}
        if rest:
            result["_meta"] = rest
    if result.get("resultType") == "complete":
        result = {key: value for key, value in result.items() if key != "resultType"}
    return result


def _is_ours(key: str) -> bool:
    return key in _NOT_THEIRS or key.startswith(_OURS)


def _is_listed(view: CallerView, server: str, uri: str) -> bool:
    """Return whether the tenant's lists have a URI, so that who may read it is decided there."""
    if not view.restricted:
        return False
    lists = view.catalog.of(PrimitiveKind.RESOURCE), view.catalog.of(PrimitiveKind.TEMPLATE)
    return resolve_uri(qualified(server, uri), *lists) is not None


def _linked(found: Located) -> Primitive:
    """Return what stands for a link in the policy: a resource of its server that no list holds."""
    return Primitive(
        PrimitiveKind.RESOURCE, found.server, found.uri, found.uri, definition={"uri": found.uri}, digest=""
    )


def _renamed(result: dict[str, Any], own: str, exposed: str) -> dict[str, Any]:
    """Return what was read under the URI that the client asked for."""
    contents = result.get("contents")
    if not isinstance(contents, list):
        return result
    renamed = [
        {**one, "uri": exposed} if isinstance(one, dict) and one.get("uri") == own else one
        for one in contents
    ]
    return {**result, "contents": renamed}


def _referred(view: CallerView, ref: Mapping[str, Any]) -> Primitive | None:
    if ref.get("type") == "ref/prompt":
        return view.find(PrimitiveKind.PROMPT, ref["name"])
    uri = ref["uri"]
    listed = view.find(PrimitiveKind.TEMPLATE, uri) or view.find(PrimitiveKind.RESOURCE, uri)
    if listed is not None:
        return listed
    bare = [one for one in view.of(PrimitiveKind.TEMPLATE).values() if one.own_name == uri]
    return bare[0] if len(bare) == 1 else None
