"""Discover middlewares in a package and by entry points, and refuse duplicate names."""

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

        ``settings`` are those of plug-ins, by middleware name. Raise RegistryError if two have the same name or one
        is broken.
        """
        by_name: dict[str, Middleware[Any]] = {}
        own = (kind(engines) for kind in _in_package(package))
        for middleware in (*own, *plug_ins(engines, settings or {})):
            if middleware.name in by_name:
                raise RegistryError(f"Two middlewares are named {middleware.name!r}; rename one.")
            by_name[middleware.name] = middleware
        return cls(dict(sorted(by_name.items())))

    def get(self, name: str) -> Middleware[Any]:
        """Return the middleware, or raise NotFoundError."""
        try:
            return self.middlewares[name]
        except KeyError:
            # The name comes from the caller and could be content, so the message does not repeat it.
            raise NotFoundError(
                "There is no middleware with that name; list the middlewares to see those you may invoke.",
                details={"pointer": "/name"},
            ) from None


def _in_package(package: ModuleType) -> Iterator[type[Middleware[Any]]]:
    for info in pkgutil.iter_modules(package.__path__):
        name = f"{package.__name__}.{info.name}"
        # A middleware with helpers of its own is a folder with its class in ``middleware.py``.
        if info.ispkg:
            name += ".middleware"
            if importlib.util.find_spec(name) is None:
                raise RegistryError(f"{name} is missing: the middleware of a folder must be there.")
        module = importlib.import_module(name)
        own = [
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            and issubclass(value, Middleware)
            and value.__module__ == module.__name__
        ]
        if len(own) != 1:
            raise RegistryError(
                f"{module.__name__} must define exactly one middleware; it defines {len(own)}."
            )
        yield own[0]
