"""Tool hooks (policy member `passages`): restore a call's arguments, clean its results; on failure nothing passes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from app.core.access import Caller
from app.core.catalog.header_parameters import declared_headers, value_at
from app.core.catalog.primitives import Primitive
from app.core.content.handles import Handle, Original, find_handles
from app.core.content.hook_items import Items, ResultParts, free_items, free_value
from app.core.contracts.policy import ToolHook
from app.core.contracts.policy_steps import Step
from app.core.errors import BlockedByPolicyError, InternalError, ServiceError
from app.core.offload import off_loop
from app.core.redaction.rehiding import Restored, texts_of, with_names
from app.core.request import RequestInfo
from app.core.upstream import Hooks, UpstreamError
from app.middlewares.pii_restoration import PiiRestoration
from app.services.invoke.invoke import InvokeService

SCOPE_META: Final = "dev.sluice/scope"
_EVERYWHERE: Final[Mapping[str, Any]] = {"uris": "change", "member_names": "change"}
"""Nobody reads a tool's result before the model does, so its links and names are redacted like its texts."""

_INTERNAL: Final = -32603


@dataclass(slots=True)
class HookScope:
    """The vault scope of one call; ``from_caller`` if the caller named it. A redaction without a scope begins one."""

    name: str | None = None
    from_caller: bool = False


@dataclass(frozen=True, slots=True)
class HookedCall:
    """One call under one tool hook; ``limit_s`` is how long its middlewares may take each time it needs them.

    That time does not count the rest of the call, which may have waited long for its server or for a person.
    """

    invoke: InvokeService
    tool_hook: ToolHook
    caller: Caller
    request: RequestInfo
    limit_s: float
    scope: HookScope
    restored: dict[str, str] = field(default_factory=dict)
    """The originals that went to the tool, each with its handle."""
    suspicions: list[str] = field(default_factory=list)
    """The middlewares that suspect an attack in the result."""

    async def arguments(self, tool: Primitive, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a tool's arguments with originals in place of the handles of this scope.

        Raises BlockedByPolicyError where an original would also go into an HTTP header that the hook does not name.
        """
        if not self.tool_hook.restore_arguments or self.scope.name is None:
            return arguments
        step = Step(name=PiiRestoration.name, arguments={"scope": self.scope.name, "positions": "all"})
        item = {"type": "tool_use", "id": "call", "name": tool.name, "input": dict(arguments)}
        answer = await self.invoke.run_tool_hook(self.caller, step, [item], self.request, self._until())
        originals = await self._remember(arguments)
        restored: Mapping[str, Any] = with_names(answer.content[0]["input"], originals)
        self._check_headers(tool, arguments, restored)
        return restored

    def _check_headers(
        self, tool: Primitive, arguments: Mapping[str, Any], restored: Mapping[str, Any]
    ) -> None:
        """Refuse originals in headers: proxies log them, and they are no part of what this hook reads."""
        named = {token.lower() for token in self.tool_hook.headers}
        for path, token in declared_headers(tool.definition.get("inputSchema")).items():
            if token.lower() not in named and value_at(arguments, path) != value_at(restored, path):
                raise BlockedByPolicyError(
                    f"The tool repeats this argument in the header Mcp-Param-{token}, where no original may stand: "
                    "send the value itself, or let an operator name the header in `headers` of the passage.",
                    details={"pointer": "/arguments" + "".join(f"/{_escaped(member)}" for member in path)},
                )

    async def _remember(self, arguments: Mapping[str, Any]) -> Mapping[Handle, Original]:
        """Keep the originals behind the handles of ``arguments``, so that no result shows them, and return them.

        The middlewares detect most of them again, but detection is not certain, and a caller who may call a tool need
        not be allowed to read originals.
        """
        handles = {
            handle_match.handle for text in texts_of(dict(arguments)) for handle_match in find_handles(text)
        }
        originals = await self.invoke.vault.read(self.caller, self.scope.name or "", handles)
        self.restored.update({original.text: str(handle) for handle, original in originals.items()})
        return originals

    async def result(self, kind: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result as the middlewares left it; its ``_meta`` names the scope if the caller named none."""
        if not self.tool_hook.results:
            return dict(result)
        shape = ResultParts(kind, result)
        hooked = shape.result(await self._clean(shape.items))
        if self.scope.name is not None and not self.scope.from_caller:
            hooked["_meta"] = {**(hooked.get("_meta") or {}), SCOPE_META: self.scope.name}
        return hooked

    async def error(self, error: UpstreamError) -> UpstreamError:
        """Return a server's error as the middlewares left it."""
        if not self.tool_hook.results:
            return error
        parts = {"message": error.message, "data": error.data}
        cleaned = free_value(await self._clean(free_items(parts)))
        return UpstreamError(error.code, str(cleaned["message"]), cleaned["data"])

    def hooks(self, hooks: Hooks) -> Hooks:
        """Return hooks that pass nothing on that the middlewares have not seen.

        Texts of progress and logs are dropped: they are too many and too small to be checked each. A server's requests
        to the client go through the middlewares like results.
        """
        if not self.tool_hook.results:
            return hooks
        return replace(
            hooks,
            notify=self._notify(hooks) if hooks.notify is not None else None,
            ask=self._ask(hooks) if hooks.ask is not None else None,
            guard=self.hooks,
        )

    def _notify(self, hooks: Hooks) -> Any:
        async def notify(method: str, params: Mapping[str, Any]) -> None:
            if hooks.notify is None:
                return
            if method == "notifications/progress":
                numbers = {key: params[key] for key in ("progress", "total") if _is_number(params.get(key))}
                await hooks.notify(method, {"progressToken": params.get("progressToken"), **numbers})
            elif method == "notifications/elicitation/complete":
                await hooks.notify(method, free_value(await self._clean(free_items(dict(params)))))

        return notify

    def _ask(self, hooks: Hooks) -> Any:
        async def ask(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
            if hooks.ask is None:
                raise UpstreamError(_INTERNAL, "The client takes no requests.")
            try:
                cleaned = free_value(await self._clean(free_items(dict(params))))
            except ServiceError as error:
                raise UpstreamError(_INTERNAL, "A policy withheld this request.") from error
            return await hooks.ask(method, cleaned)

        return ask

    async def _clean(self, items: Items) -> Items:
        until = self._until()
        redacted = False
        for step in self.tool_hook.results:
            redactions = await self.invoke.invocables.redactions_of(self.caller.tenant, step.name)
            scoped = self._scoped(step, redactions, again=redacted)
            answer = await self.invoke.run_tool_hook(self.caller, scoped, items, self.request, until)
            items = answer.content
            if answer.metadata.get("suspected") is True:
                self.suspicions.append(step.name)
            redacted = redacted or bool(redactions)
            begun = answer.metadata.get("scope")
            if self.scope.name is None and redactions and isinstance(begun, str):
                self.scope.name = begun
        if not items:
            raise InternalError("A middleware removed the whole result.")
        if self.restored:
            weight = sum(map(len, texts_of(items)))
            hidden: Items = await off_loop(weight, Restored(self.restored).hidden, items)
            return hidden
        return items

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self.limit_s

    def _scoped(self, step: Step, redactions: Mapping[str, Mapping[str, Any]], *, again: bool) -> Step:
        """Return a redaction step in the scope of this call that changes URIs and names, unless it says otherwise."""
        scoped = self._in_scope(step, redactions, again=again)
        if step.name in redactions:
            return Step(name=step.name, arguments={**_EVERYWHERE, **scoped.arguments})
        inner = {
            name: {
                **{key: value for key, value in _EVERYWHERE.items() if key not in own_arguments},
                **scoped.arguments.get(name, {}),
            }
            for name, own_arguments in redactions.items()
            if not _EVERYWHERE.keys() <= own_arguments.keys()
        }
        return Step(name=step.name, arguments={**scoped.arguments, **inner})

    def _in_scope(self, step: Step, redactions: Mapping[str, Mapping[str, Any]], *, again: bool) -> Step:
        """Return a redaction step in the scope of this call; a further one (``again``) keeps the handles of the first.

        ``redactions`` are those that the step runs, each with its own arguments: the step itself, or steps of a
        pipeline.
        """
        own_arguments = step.arguments
        if (
            not redactions
            or "scope" in own_arguments
            or any("scope" in inner_arguments for inner_arguments in redactions.values())
        ):
            return step
        scope = {} if self.scope.name is None else {"scope": self.scope.name}
        kept = {"handles_in_input": "keep"} if again and scope else {}
        if step.name in redactions:
            return Step(name=step.name, arguments={**kept, **own_arguments, **scope})
        inner = {
            name: {
                **{key: default for key, default in kept.items() if key not in own},
                **own_arguments.get(name, {}),
            }
            for name, own in redactions.items()
        }
        return Step(
            name=step.name,
            arguments={**own_arguments, **{name: value for name, value in inner.items() if value}, **scope},
        )


def _escaped(member: str) -> str:
    return member.replace("~", "~0").replace("/", "~1")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
