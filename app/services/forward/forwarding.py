"""Forward calls and reads to a server: policy, audit record, time limit, and the result on its way back."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
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
from app.core.upstream import NO_HOOKS, Hooks, OwnLinks, UpstreamError
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditService
from app.services.catalog.listing import CallerView, ListingService
from app.services.forward.forward_record import ForwardRecord, PrimitiveRequest
from app.services.forward.grant_asking import AskedFirstError
from app.services.forward.request_states import RequestStates
from app.services.forward.seen_uris import SeenUris
from app.services.forward.tool_hooks import HookedCall
from app.services.invoke.invoke import InvokeService

METHOD_NOT_FOUND: Final = -32601
_CONNECTION_ERRORS: Final = frozenset({-32020, -32022})
"""A server's errors about headers and revision: a client would take them for ours and change its own headers."""

_OUR_PREFIX: Final = "dev.sluice/"
_CONNECTION_META: Final = frozenset(
    {
        "progressToken",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientInfo",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/logLevel",
        "io.modelcontextprotocol/subscriptionId",
    }
)
"""Members of a request's ``_meta`` about the client's connection to us, which are not forwarded."""

_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_OUR_RESULT_META: Final = frozenset({_SERVER_INFO, GROUPS_META, "io.modelcontextprotocol/subscriptionId"})
"""Members of a result's ``_meta`` that only we set, beside those with our own prefix."""

Gate = Callable[[CallerView, Primitive], Awaitable[Mapping[str, Any] | None]]
"""Returns a tool result to answer with instead of calling, or None if the call may go on."""


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
    """Where a URI is read: the server, its own URI, and the listed resource or template that covers it, if any."""

    server: str
    uri: str
    primitive: Primitive | None


@dataclass(frozen=True, slots=True)
class ForwardService:
    """The use cases of primitives: call, get, read, complete; ``channel`` finds a tenant's connection to a server.

    ``user_links`` are the connections of a caller to a server that is called with the tokens of users.
    """

    listing: ListingService
    invoke: InvokeService
    traffic: Traffic
    audit: AuditService
    channel: Callable[[str, str], ServerChannel | None]
    seen: SeenUris = field(default_factory=SeenUris)
    user_links: Callable[[Caller, str, Mapping[str, Any], Hooks], Awaitable[OwnLinks]] | None = None

    async def call_tool(self, incoming: PrimitiveRequest, gate: Gate | None = None) -> dict[str, Any]:
        """Call a tool; the call is recorded before it is sent, and its result before it is answered."""
        record = self._new_record(incoming, "tool.call")
        view = await self.listing.view(incoming.caller, incoming.request, incoming.group, record.action)
        tool = view.find(PrimitiveKind.TOOL, incoming.params["name"])
        if tool is None:
            await self._refuse_unknown(
                record, view, "There is no such tool; tools/list has those that you may call."
            )
        record.primitive = tool
        async with record.refusals():
            if gate is not None and (instead := await gate(view, tool)) is not None:
                self.traffic.spend(incoming.caller.tenant, view.policy.limits)
                await record.refused("description_required")
                return dict(instead)
            await record.note_arguments(incoming.params.get("arguments") or {})
            _check_depth(record.sent_json, view.policy.limits.max_depth)
        own = {**incoming.params, "name": tool.own_name}
        return await self._forward(record, view, tool, "tools/call", own)

    async def get_prompt(self, incoming: PrimitiveRequest) -> dict[str, Any]:
        """Return a prompt filled in by its server."""
        record = self._new_record(incoming, "prompt.get")
        view = await self.listing.view(incoming.caller, incoming.request, incoming.group, record.action)
        prompt = view.find(PrimitiveKind.PROMPT, incoming.params["name"])
        if prompt is None:
            await self._refuse_unknown(
                record, view, "There is no such prompt; prompts/list has those that you may use."
            )
        record.primitive = prompt
        await record.note_arguments(incoming.params.get("arguments") or {})
        own = {**incoming.params, "name": prompt.own_name}
        return await self._forward(record, view, prompt, "prompts/get", own)

    async def read_resource(self, incoming: PrimitiveRequest) -> dict[str, Any]:
        """Read a URI that a list has, a template covers, or a result gave to this caller."""
        record = self._new_record(incoming, "resource.read")
        view = await self.listing.view(incoming.caller, incoming.request, incoming.group, record.action)
        uri = incoming.params["uri"]
        location = self.located(view, incoming.caller, uri)
        if location is None:
            message = "There is no such resource that you may read."
            await self._refuse_unknown(record, view, message, pointer="/uri", uri=uri)
        record.primitive, record.server = location.primitive, location.server
        record.sent_json = uri.encode()
        covering = location.primitive or _linked_resource(location)
        result = await self._forward(
            record, view, covering, "resources/read", {**incoming.params, "uri": location.uri}
        )
        return result if location.uri == uri else _with_exposed_uri(result, location.uri, uri)

    async def complete(self, incoming: PrimitiveRequest) -> dict[str, Any]:
        """Suggest values for an argument of a prompt or a template; none where the server has no completion."""
        record = self._new_record(incoming, "completion.complete")
        view = await self.listing.view(incoming.caller, incoming.request, incoming.group, record.action)
        ref = incoming.params["ref"]
        field_name = "name" if ref.get("type") == "ref/prompt" else "uri"
        primitive = _find_reference(view, ref)
        if primitive is None:
            message = "There is no such prompt or template; the lists have those that you may use."
            await self._refuse_unknown(record, view, message, pointer=f"/ref/{field_name}")
        record.primitive = primitive
        await record.note_arguments(incoming.params.get("argument") or {})
        own = {**incoming.params, "ref": {**ref, field_name: primitive.own_name}}
        try:
            return await self._forward(record, view, primitive, "completion/complete", own)
        except UpstreamError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return {"completion": {"values": [], "hasMore": False}}

    async def task(self, incoming: PrimitiveRequest, method: str, tool: str, server: str) -> dict[str, Any]:
        """Send a request about a task that a call of ``tool`` began; the rules of the tool apply to it."""
        record = self._new_record(incoming, method.replace("/", "."))
        view = await self.listing.view(incoming.caller, incoming.request, incoming.group)
        primitive = view.find(PrimitiveKind.TOOL, tool)
        if primitive is None or primitive.server != server:
            await self._refuse_unknown(record, view, "There is no such task.", pointer="/taskId")
        record.primitive = primitive
        return await self._forward(record, view, primitive, method, incoming.params)

    def located(self, view: CallerView, caller: Caller, uri: str) -> Located | None:
        """Return where this caller reads a URI, None if the URI is unknown or forbidden.

        A link never opens what a list or a template of the tenant covers and this caller may not see.
        """
        reading = resolve_uri(uri, view.of(PrimitiveKind.RESOURCE), view.of(PrimitiveKind.TEMPLATE))
        if reading is not None:
            return Located(reading.server, reading.uri, reading.primitive)
        seen = self.seen.find(caller, uri)
        # A link is valid as long as the caller may use anything of the server that gave it.
        if seen is None or seen[0] not in view.servers:
            return None
        return None if _is_listed(view, *seen) else Located(*seen, None)

    async def _forward(
        self,
        record: ForwardRecord,
        view: CallerView,
        primitive: Primitive,
        method: str,
        params: Mapping[str, Any],
    ) -> dict[str, Any]:
        incoming, limits = record.incoming, view.policy.limits
        record.policy_version = view.policy_version
        kind = PrimitiveKind.RESOURCE if primitive.kind is PrimitiveKind.TEMPLATE else primitive.kind
        tool_hook = _hook_for(view.policy, kind, primitive, params.get("uri"))
        states, about = RequestStates(self.audit.keys), (method, primitive.server, primitive.name)
        with self.traffic.forwarded(incoming.caller.tenant, primitive.server, limits):
            async with record.recorded():
                hooked = None
                hooks = incoming.hooks
                params = states.opened(incoming.caller, about, params)
                if tool_hook is not None:
                    limit_s = limits.deadline_ms / 1000
                    hooked = HookedCall(
                        self.invoke, tool_hook, incoming.caller, incoming.request, limit_s, incoming.scope
                    )
                    hooks = hooked.hooks(hooks)
                    if method == "tools/call":
                        arguments = params.get("arguments") or {}
                        params = {
                            **params,
                            "arguments": await hooked.arguments(primitive, arguments),
                        }
                try:
                    raw_result = await self._exchange(
                        record, primitive.server, method, _params_for_server(params), hooks, hooked
                    )
                except UpstreamError:
                    # An error's message is content like any other.
                    if incoming.arrived is not None:
                        await incoming.arrived(view.policy, primitive.server, _is_suspected(hooked))
                    raise
                result = _without_own_members(raw_result)
                if hooked is not None:
                    result = await hooked.result(kind.value, result)
                # The server cannot tell our callers apart, so it would accept another caller's state.
                result = states.sealed(incoming.caller, about, incoming.params, result)
                if incoming.arrived is not None:
                    meta = await incoming.arrived(view.policy, primitive.server, _is_suspected(hooked))
                    result = {**result, "_meta": {**(result.get("_meta") or {}), **meta}} if meta else result
                await record.note_answer(result)
        self.seen.note(incoming.caller, primitive.server, result)
        return result

    async def _exchange(
        self,
        record: ForwardRecord,
        server: str,
        method: str,
        params: Mapping[str, Any],
        hooks: Hooks,
        hooked: HookedCall | None,
    ) -> dict[str, Any]:
        channel = self.channel(record.incoming.caller.tenant, server)
        if channel is None:
            raise UpstreamUnavailableError(
                f"The server {server!r} is not served now; try again later.", details={"server": server}
            )
        auth = channel.settings.auth
        if auth is not None and auth.of_users and self.user_links is not None:
            try:
                links = await self.user_links(record.incoming.caller, server, params, hooks)
            except AskedFirstError as asked:
                return asked.result
            hooks = replace(hooks, links=links)
        left = record.incoming.request.deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise DeadlineExceededError("The request's time was over before it could be forwarded.")
        timeout_s = min(left, channel.settings.timeout_s)
        await record.sending()
        try:
            if hooks.links is not None:
                return await hooks.links.request(server, method, params, hooks=hooks, timeout_s=timeout_s)
            return await channel.request(method, params, hooks=hooks, timeout_s=timeout_s)
        except UpstreamError as error:
            if error.code in _CONNECTION_ERRORS:
                raise UpstreamUnavailableError(
                    f"The server {server!r} does not take requests in the form it agreed to.",
                    details={"server": server},
                ) from None
            if hooked is None:
                raise
            cleaned = await hooked.error(error)
        raise cleaned

    def _new_record(self, incoming: PrimitiveRequest, action: str) -> ForwardRecord:
        return ForwardRecord(self.audit, incoming, action)

    async def _refuse_unknown(
        self, record: ForwardRecord, view: CallerView, message: str, *, pointer: str = "/name", **named: str
    ) -> NoReturn:
        """Refuse what is unknown or forbidden alike; record it, except beyond the rate limit."""
        record.policy_version = view.policy_version
        error = InvalidArgumentsError(message, details={"pointer": pointer, **named})
        try:
            self.traffic.spend(record.incoming.caller.tenant, view.policy.limits)
        except RateLimitedError:
            raise error from None
        await record.refused(error.code)
        raise error


def _hook_for(policy: Policy, kind: PrimitiveKind, primitive: Primitive, uri: str | None) -> ToolHook | None:
    """Return the first tool hook that names the primitive, or any spelling of the URI that is read through it."""
    names = {primitive.name}
    if uri is not None:
        names |= {
            uri,
            unquote(uri),
            qualified(primitive.server, uri),
            qualified(primitive.server, unquote(uri)),
        }
    hooks = [
        hook for name in names if (hook := policy.tool_hook_of(kind, name, primitive.server)) is not None
    ]
    return min(hooks, key=policy.passages.index) if hooks else None


def _is_suspected(hooked: HookedCall | None) -> bool:
    return hooked is not None and bool(hooked.suspicions)


def _check_depth(arguments_json: bytes, maximum: int) -> None:
    if depth_exceeds(arguments_json, maximum):
        raise TooLargeError(
            f"The arguments nest deeper than {maximum} levels.",
            details={"limit": "max_depth", "value": maximum, "pointer": "/arguments"},
        )


def _params_for_server(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params for the server, without what concerns only the client and us."""
    meta = params.get("_meta")
    if meta is None:
        return dict(params)
    kept = {key: meta[key] for key in meta if key not in _CONNECTION_META and not key.startswith(_OUR_PREFIX)}
    rest = {key: value for key, value in params.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept else rest


def _without_own_members(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without members about the server's connection to us, and without members that only we set."""
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
    return key in _OUR_RESULT_META or key.startswith(_OUR_PREFIX)


def _is_listed(view: CallerView, server: str, uri: str) -> bool:
    """Return whether the tenant's lists have a URI; if so, they decide who may read it."""
    if not view.restricted:
        return False
    lists = view.catalog.of(PrimitiveKind.RESOURCE), view.catalog.of(PrimitiveKind.TEMPLATE)
    return resolve_uri(qualified(server, uri), *lists) is not None


def _linked_resource(location: Located) -> Primitive:
    """Return the primitive that stands for a link in the policy: an unlisted resource of its server."""
    return Primitive(
        PrimitiveKind.RESOURCE,
        location.server,
        location.uri,
        location.uri,
        definition={"uri": location.uri},
        digest="",
    )


def _with_exposed_uri(result: dict[str, Any], own: str, exposed: str) -> dict[str, Any]:
    """Return the result with the URI that the client requested in place of the server's own."""
    contents = result.get("contents")
    if not isinstance(contents, list):
        return result
    renamed = [
        {**content, "uri": exposed} if isinstance(content, dict) and content.get("uri") == own else content
        for content in contents
    ]
    return {**result, "contents": renamed}


def _find_reference(view: CallerView, ref: Mapping[str, Any]) -> Primitive | None:
    if ref.get("type") == "ref/prompt":
        return view.find(PrimitiveKind.PROMPT, ref["name"])
    uri = ref["uri"]
    listed = view.find(PrimitiveKind.TEMPLATE, uri) or view.find(PrimitiveKind.RESOURCE, uri)
    if listed is not None:
        return listed
    bare = [template for template in view.of(PrimitiveKind.TEMPLATE).values() if template.own_name == uri]
    return bare[0] if len(bare) == 1 else None
