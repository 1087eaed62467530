"""Which names the query of a request may have: one that no route reads is refused, for it is mostly a misspelt one."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route

from app.core.errors import InvalidArgumentsError, InvalidRequestError, ServiceError

_MOST_FIELDS: Final = 200
# What looks like the name of a parameter is repeated in the answer; anything else could be content.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z_]{0,39}")


@dataclass(frozen=True, slots=True)
class KnownQueries:
    """The query names of each route: pattern of the path, methods, names; the first that fits a request counts."""

    by_path: tuple[tuple[re.Pattern[str], frozenset[str], frozenset[str]], ...] = ()

    @classmethod
    def of(cls, routes: Iterable[BaseRoute]) -> "KnownQueries":
        """Return the names that the endpoints of ``routes`` and their dependencies declare."""
        return cls(
            tuple(
                (route.path_regex, frozenset(route.methods or ()), _names_of(route))
                for route in routes
                if isinstance(route, Route)
            )
        )

    def fault(self, method: str, path: str, query: bytes, *, mcp: bool) -> ServiceError | None:
        """Return the error of a query with a name that is not known there, or None; MCP endpoints know none."""
        names = frozenset[str]() if mcp else self._names_at(method, path)
        if names is None:  # there is no such route, which the application says itself
            return None
        try:
            fields = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            return InvalidRequestError(f"The query has more than {_MOST_FIELDS} parameters.")
        unknown = next((name for name, _ in fields if name not in names), None)
        return None if unknown is None else _unknown_name(unknown, sorted(names), mcp=mcp)

    def _names_at(self, method: str, path: str) -> frozenset[str] | None:
        for pattern, methods, names in self.by_path:
            if method in methods and pattern.match(path):
                return names
        return None


def _names_of(route: Route) -> frozenset[str]:
    if not isinstance(route, APIRoute):
        return frozenset()
    return frozenset(_read_by(route.dependant))


def _read_by(endpoint: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in endpoint.query_params)
    for dependency in endpoint.dependencies:
        yield from _read_by(dependency)


def _unknown_name(name: str, existing: list[str], *, mcp: bool) -> ServiceError:
    is_plain = _PLAIN_NAME.fullmatch(name) is not None
    shown = f"parameter {name}" if is_plain else "parameter of that name"
    hint = f"there are {', '.join(existing)}" if existing else "this path takes none"
    details = {**({"parameter": name} if is_plain else {}), "known": existing}
    kind = InvalidRequestError if mcp else InvalidArgumentsError
    return kind(f"The query has no {shown}; {hint}.", details=details)
