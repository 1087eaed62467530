"""Middlewares by name: found by walking a package and by entry points, duplicates refused."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from app.core.engines import Engines
from app.core.errors import NotFoundError
from app.core.middleware import Middleware

ENTRY_POINT_GROUP = "sluice.middleware"


class RegistryError(Exception):
    """The installed middlewares contradict each other; the service does not start."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The middlewares of this process, by name, in alphabetical order."""

    middlewares: Mapping[str, Middleware[Any]]

    @classmethod
    def discover(cls, package: ModuleType, engines: Engines) -> "Registry":
        """Build every middleware of ``package`` and of other distributions' entry points."""
        found: dict[str, Middleware[Any]] = {}
        for kind in (*_in_package(package), *_in_entry_points()):
            if kind.name in found:
                raise RegistryError(f"Two middlewares are named {kind.name!r}; rename one.")
            found[kind.name] = kind(engines)
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
        module = importlib.import_module(f"{package.__name__}.{info.name}")
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


def _in_entry_points() -> Iterator[type[Middleware[Any]]]:
    for point in entry_points(group=ENTRY_POINT_GROUP):
        kind = point.load()
        if not (inspect.isclass(kind) and issubclass(kind, Middleware)):
            raise RegistryError(f"The entry point {point.name!r} is no Middleware.")
        yield kind
