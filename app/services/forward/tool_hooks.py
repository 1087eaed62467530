"""What happens to a call between the client and a server: arguments restored, results cleaned; or nothing passes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from app.core.access import Caller
from app.core.content.handles import find_handles
from app.core.content.hook_items import Items, ResultParts, free_items, free_value
from app.core.contracts.policy import Step, ToolHook
from app.core.errors import InternalError, ServiceError
from app.core.offload import off_loop
from app.core.redaction.rehiding import Restored, texts_of
from app.core.request import RequestInfo
from app.core.upstream import Hooks, UpstreamError
from app.middlewares.pii_restoration import PiiRestoration
from app.services.invoke.invoke import InvokeService

SCOPE_META: Final = "dev.sluice/scope"
_INTERNAL: Final = -32603


@dataclass(slots=True)
class HookScope:
    """The vault scope of one call; ``given`` where the caller named it. A redaction without one begins it."""

    name: str | None = None
    given: bool = False


@dataclass(frozen=True, slots=True)
class HookedCall:
    """One call under one passage; ``limit_s`` is how long its middlewares may take each time it needs them.

    That time is their own: a call may have waited long for its server, or for a person.
    """

    invoke: InvokeService
    passage: ToolHook
    caller: Caller
    request: RequestInfo
    limit_s: float
    scope: HookScope
    restored: dict[str, str] = field(default_factory=dict)
    """The originals that the tool was given, each with its handle."""
    suspicions: list[str] = field(default_factory=list)
    """The middlewares that suspect an attack in what came back."""

    async def arguments(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a tool's arguments with originals in place of the handles of this scope."""
        if not self.passage.restore_arguments or self.scope.name is None:
            return arguments
        step = Step(name=PiiRestoration.name, arguments={"scope": self.scope.name, "positions": "all"})
        item = {"type": "tool_use", "id": "call", "name": tool, "input": dict(arguments)}
        made = await self.invoke.passage(self.caller, step, [item], self.request, self._until())
        await self._remember(arguments)
        restored: Mapping[str, Any] = made.content[0]["input"]
        return restored

    async def _remember(self, arguments: Mapping[str, Any]) -> None:
        """Keep what stands behind the handles of ``arguments``, which nothing that comes back may show.

        The middlewares find most of it again, but finding is no proof, and who may call a tool need not be allowed to
        read originals.
        """
        handles = {one.handle for text in texts_of(dict(arguments)) for one in find_handles(text)}
        originals = await self.invoke.vault.read(self.caller, self.scope.name or "", handles)
        self.restored.update({original.text: str(handle) for handle, original in originals.items()})

    async def result(self, kind: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result as the middlewares left it; it names the scope where the caller gave none."""
        if not self.passage.results:
            return dict(result)
        shape = ResultParts(kind, result)
        made = shape.result(await self._cleaned(shape.items))
        if self.scope.name is not None and not self.scope.given:
            made["_meta"] = {**(made.get("_meta") or {}), SCOPE_META: self.scope.name}
        return made

    async def error(self, error: UpstreamError) -> UpstreamError:
        """Return what a server said of its failure as the middlewares left it."""
        if not self.passage.results:
            return error
        told = {"message": error.message, "data": error.data}
        cleaned = free_value(await self._cleaned(free_items(told)))
        return UpstreamError(error.code, str(cleaned["message"]), cleaned["data"])

    def hooks(self, hooks: Hooks) -> Hooks:
        """Return hooks through which nothing passes that the middlewares have not seen.

        Texts of progress and logs are dropped: they come too often and too small to be looked at one by one. What a
        server asks the client goes through the middlewares like a result.
        """
        if not self.passage.results:
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
                await hooks.notify(method, free_value(await self._cleaned(free_items(dict(params)))))

        return notify

    def _ask(self, hooks: Hooks) -> Any:
        async def ask(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
            if hooks.ask is None:
                raise UpstreamError(_INTERNAL, "The client cannot be asked.")
            try:
                cleaned = free_value(await self._cleaned(free_items(dict(params))))
            except ServiceError as error:
                raise UpstreamError(_INTERNAL, "A policy withheld this request.") from error
            return await hooks.ask(method, cleaned)

        return ask

    async def _cleaned(self, items: Items) -> Items:
        until = self._until()
        redacted = False
        for step in self.passage.results:
            redactions = await self.invoke.invocables.redactions_of(self.caller.tenant, step.name)
            scoped = self._scoped(step, redactions, again=redacted)
            made = await self.invoke.passage(self.caller, scoped, items, self.request, until)
            items = made.content
            if made.metadata.get("suspected") is True:
                self.suspicions.append(step.name)
            redacted = redacted or bool(redactions)
            begun = made.metadata.get("scope")
            if self.scope.name is None and redactions and isinstance(begun, str):
                self.scope.name = begun
        if not items:
            raise InternalError("A middleware left nothing of a result.")
        if self.restored:
            weight = sum(map(len, texts_of(items)))
            hidden: Items = await off_loop(weight, Restored(self.restored).hidden, items)
            return hidden
        return items

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self.limit_s

    def _scoped(self, step: Step, redactions: Mapping[str, Mapping[str, Any]], *, again: bool) -> Step:
        """Return a redaction in the scope of this call; one that comes ``again`` leaves the handles of the first.

        ``redactions`` are those that the step runs: itself, or the steps of a pipeline with what is set there.
        """
        given = step.arguments
        if not redactions or "scope" in given or any("scope" in one for one in redactions.values()):
            return step
        scope = {} if self.scope.name is None else {"scope": self.scope.name}
        kept = {"handles_in_input": "keep"} if again and scope else {}
        if step.name in redactions:
            return Step(name=step.name, arguments={**kept, **given, **scope})
        inner = {
            name: {**{key: one for key, one in kept.items() if key not in mine}, **given.get(name, {})}
            for name, mine in redactions.items()
        }
        return Step(
            name=step.name, arguments={**given, **{k: one for k, one in inner.items() if one}, **scope}
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
