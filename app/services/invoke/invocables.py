"""The lookup of what a tenant can invoke: installed middlewares, middlewares of other servers, and its pipelines."""

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
    """Looks names up; installed middlewares hide pipelines of their name, and pipelines hide remote ones."""

    installed: Mapping[str, Middleware[Any]]
    pipelines: PipelineService | None = None
    remotes: RemoteMiddlewares | None = None

    async def all_of(self, tenant: str) -> Mapping[str, Invocable]:
        """Return everything that can be invoked, by name."""
        return {**await self._remotes_by_name(), **await self.pipelines_of(tenant), **self.installed}

    async def of_tenant(self, tenant: str, name: str) -> Invocable:
        """Return what is not installed and has this name for a tenant, or raise NotFoundError.

        Asks other servers only for remote names.
        """
        pipelines = await self.pipelines_of(tenant)
        if name in pipelines:
            return pipelines[name]
        remote = await self._remotes_by_name() if REMOTE_SEPARATOR in name else {}
        if name in remote:
            return remote[name]
        names = sorted([*self.installed, *pipelines])
        raise NotFoundError(
            "There is no middleware of that name; list the middlewares to see those you may invoke.",
            details={"known": names},
        )

    async def steps_of(self, version: PipelineVersion) -> Mapping[str, Middleware[Any]]:
        """Return the middlewares of a pipeline's steps; an unlisted remote one fails when it runs."""
        names = {step.name for step in version.pipeline.steps}
        installed = {name: self.installed[name] for name in names & self.installed.keys()}
        remote_names = {name for name in names - installed.keys() if REMOTE_SEPARATOR in name}
        remote = await self._remotes_by_name() if remote_names else {}
        return {**installed, **{name: remote.get(name) or UnlistedMiddleware(name) for name in remote_names}}

    async def pipelines_of(self, tenant: str) -> Mapping[str, PipelineVersion]:
        """Return a tenant's pipelines by name, without those that a middleware installed later hides by its name."""
        pipelines = await self.pipelines.of(tenant) if self.pipelines is not None else {}
        return {name: pipeline for name, pipeline in pipelines.items() if name not in self.installed}

    def known_step(self, name: str) -> Middleware[Any] | None:
        """Return a step's middleware as it was listed last, without a request to its server."""
        last_listed = (
            self.remotes.last_listed() if self.remotes is not None and REMOTE_SEPARATOR in name else {}
        )
        return self.installed.get(name) or last_listed.get(name)

    async def redactions_of(self, tenant: str, name: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the redactions that ``name`` runs, itself or as steps, each with the arguments that the step sets."""
        if name in self.installed:
            return {name: {}} if self.installed[name].conceals else {}
        version = (await self.pipelines_of(tenant)).get(name)
        steps = version.pipeline.steps if version is not None else ()
        return {
            step.name: step.arguments
            for step in steps
            if step.name in self.installed and self.installed[step.name].conceals
        }

    async def _remotes_by_name(self) -> Mapping[str, Middleware[Any]]:
        return await self.remotes.of() if self.remotes is not None else {}
