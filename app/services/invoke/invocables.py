"""What can be invoked by a tenant: installed middlewares, those of other servers, and its pipelines; one lookup."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.core.contracts.middleware import REMOTE_SEPARATOR, Middleware
from app.core.errors import NotFoundError
from app.services.invoke.pipelines import PipelineService, PipelineVersion
from app.services.invoke.remote_middlewares import RemoteMiddlewares, UnlistedMiddleware

Invocable = Middleware[Any] | PipelineVersion


@dataclass(frozen=True, slots=True)
class Invocables:
    """Names and what they stand for; what is installed hides what is not, and a pipeline hides a remote middleware."""

    installed: Mapping[str, Middleware[Any]]
    pipelines: PipelineService | None = None
    remotes: RemoteMiddlewares | None = None

    async def all_of(self, tenant: str) -> Mapping[str, Invocable]:
        """Return everything, by name."""
        return {**await self._remote(), **await self.pipelines_of(tenant), **self.installed}

    async def named(self, tenant: str, name: str) -> Invocable:
        """Return what has this name, or raise NotFoundError; other servers are asked for names of theirs alone."""
        if name in self.installed:
            return self.installed[name]
        pipelines = await self.pipelines_of(tenant)
        if name in pipelines:
            return pipelines[name]
        remote = await self._remote() if REMOTE_SEPARATOR in name else {}
        if name in remote:
            return remote[name]
        known = sorted([*self.installed, *pipelines])
        raise NotFoundError(
            "There is no middleware of that name; list the middlewares to see those you may invoke.",
            details={"known": known},
        )

    async def steps_of(self, found: PipelineVersion) -> Mapping[str, Middleware[Any]]:
        """Return the middlewares of a pipeline's steps; one that its server does not list fails when it is invoked."""
        names = {step.name for step in found.pipeline.steps}
        mine = {name: self.installed[name] for name in names & self.installed.keys()}
        away = {name for name in names - mine.keys() if REMOTE_SEPARATOR in name}
        remote = await self._remote() if away else {}
        return {**mine, **{name: remote.get(name) or UnlistedMiddleware(name) for name in away}}

    async def pipelines_of(self, tenant: str) -> Mapping[str, PipelineVersion]:
        """Return a tenant's pipelines by name; a middleware that was installed later hides one of its name."""
        found = await self.pipelines.of(tenant) if self.pipelines is not None else {}
        return {name: one for name, one in found.items() if name not in self.installed}

    def known_step(self, name: str) -> Middleware[Any] | None:
        """Return a step's middleware as it was listed last, without asking anybody."""
        known = self.remotes.known() if self.remotes is not None and REMOTE_SEPARATOR in name else {}
        return self.installed.get(name) or known.get(name)

    async def redactions_of(self, tenant: str, name: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the redactions that ``name`` runs, itself or as steps, each with the arguments that are set there."""
        if name in self.installed:
            return {name: {}} if self.installed[name].conceals else {}
        found = (await self.pipelines_of(tenant)).get(name)
        steps = found.pipeline.steps if found is not None else ()
        return {
            one.name: one.arguments
            for one in steps
            if one.name in self.installed and self.installed[one.name].conceals
        }

    async def _remote(self) -> Mapping[str, Middleware[Any]]:
        return await self.remotes.of() if self.remotes is not None else {}
