"""Middlewares of other distributions: load them by entry point, check the contract, name them in audit events."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from pydantic import ValidationError

from app.core.content.context import Context
from app.core.contracts.engines import Engines
from app.core.contracts.middleware import API_VERSION, Invocation, Middleware, Outcome

ENTRY_POINT_GROUP: Final = "sluice.middleware"
Settings = Mapping[str, Mapping[str, Any]]


class RegistryError(Exception):
    """The installed middlewares conflict or one is broken; the service does not start."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The distribution that a middleware comes from."""

    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


def plug_ins(engines: Engines, settings: Settings) -> Iterator[Middleware[Any]]:
    """Build the middleware of every entry point, in a stable order; ``settings`` are by middleware name.

    Raise RegistryError for a broken plug-in or settings without a plug-in.
    """
    names = set()
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: (entry.name, entry.value)):
        middleware = _build(point, _origin(point), engines, settings)
        names.add(middleware.name)
        yield middleware
    unknown = sorted(settings.keys() - names)
    if unknown:
        raise RegistryError(
            f"There are settings for the plug-in {unknown[0]!r}, which is not installed: install it or remove them."
        )


def _origin(point: EntryPoint) -> Origin:
    if point.dist is None:
        return Origin("an unknown distribution", "")
    return Origin(point.dist.name, point.dist.version)


def _build(point: EntryPoint, origin: Origin, engines: Engines, settings: Settings) -> Middleware[Any]:
    remedy = "update or uninstall it"
    try:
        kind = point.load()
    except Exception as error:
        raise RegistryError(
            f"The plug-in {point.name!r} of {origin} does not load ({type(error).__name__}): {remedy}."
        ) from error
    if not (inspect.isclass(kind) and issubclass(kind, Middleware)) or inspect.isabstract(kind):
        raise RegistryError(f"The plug-in {point.name!r} of {origin} is not a Middleware: {remedy}.")
    if kind.api != API_VERSION:
        raise RegistryError(
            f"The plug-in {point.name!r} of {origin} is written for version {kind.api} of the contract, and this "
            f"release has version {API_VERSION}: {remedy}."
        )
    missing = [
        name for name in ("name", "title", "description", "phase", "arguments") if not hasattr(kind, name)
    ]
    if missing:
        raise RegistryError(f"The plug-in {point.name!r} of {origin} has no {missing[0]!r}: {remedy}.")
    try:
        middleware: Middleware[Any] = _with_origin_recorded(kind, origin)(engines)
        middleware.settings = kind.configuration.model_validate(settings.get(kind.name, {}))
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "as a whole"
        raise RegistryError(
            f"The settings of the plug-in {point.name!r} of {origin} are invalid ({place}); see its documentation."
        ) from None
    except Exception as error:
        raise RegistryError(
            f"The plug-in {point.name!r} of {origin} does not start ({type(error).__name__}): {remedy}."
        ) from error
    return middleware


def _with_origin_recorded(kind: type[Middleware[Any]], origin: Origin) -> type[Middleware[Any]]:
    """Return a subclass of ``kind`` that names its distribution in each invocation's audit event."""

    async def invoke(
        self: Middleware[Any], context: Context, arguments: Any, invocation: Invocation
    ) -> Outcome:
        outcome = await kind.invoke(self, context, arguments, invocation)
        details = {"plugin": origin.distribution, "plugin_version": origin.version}
        return replace(outcome, audit_details={**outcome.audit_details, **details})

    return type(kind.__name__, (kind,), {"invoke": invoke, "__module__": kind.__module__})
