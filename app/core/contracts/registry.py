"""Middlewares by name: found by walking a package and by entry points, duplicates refused."""

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from app.core.contracts.engines import Engines
from app.core.contracts.middleware import Middleware
from app.core.contracts.plugins import RegistryError, Settings, plug_ins
from app.core.errors import NotFoundError

__all__ = ["Registry", "RegistryError"]


@dataclass(frozen=True, slots=True)
class Registry:
    """The middlewares of this process, by name, in alphabetical order."""

    middlewares: Mapping[str, Middleware[Any]]

    @classmethod
    def discover(cls, package: ModuleType, engines: Engines, settings: Settings | None = None) -> "Registry":
        """Build every middleware of ``package`` and of other distributions' entry points.

        ``settings`` are those of plug-ins, by the names of their middlewares.
        """
        found: dict[str, Middleware[Any]] = {}
        own = (kind(engines) for kind in _in_package(package))
        for one in (*own, *plug_ins(engines, settings or {})):
            if one.name in found:
                raise RegistryError(f"Two middlewares are named {one.name!r}; rename one.")
            found[one.name] = one
        return cls(dict(sorted(found.items())))

    def get(self, name: str) -> Middleware[Any]:
        """Return the middleware, or raise NotFoundError."""
        try:
            return self.middlewares[name]
        except KeyError:
            # The name is the caller's text: it is not repeated, it could be content.
            raise NotFoundError(
                "There is no middleware of that name; list the middlewares to see those you may invoke.",
                details={"pointer": "/name"},
            ) from None


def _in_package(package: ModuleType) -> Iterator[type[Middleware[Any]]]:
    for info in pkgutil.iter_modules(package.__path__):
        name = f"{package.__name__}.{info.name}"
        # A middleware with helpers of its own is a folder; its class stands in ``middleware.py`` there.
        if info.ispkg:
            name += ".middleware"
            if importlib.util.find_spec(name) is None:
                raise RegistryError(f"{name} is missing: a folder holds its middleware there.")
        module = importlib.import_module(name)
        own = [
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            and issubclass(value, Middleware)
            and value.__module__ == module.__name__
        ]
        if len(own) != 1:
            raise RegistryError(f"{module.__name__} must hold exactly one middleware; it holds {len(own)}.")
        yield own[0]
