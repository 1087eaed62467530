"""URIs that servers named in results, so that the callers who got them can read them; no list has these URIs."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.core.access import Caller
from app.core.catalog.naming import split_uri

_CALLERS = 2048
_URIS_PER_CALLER = 1024
_MAX_URI = 2048
_MAX_LINKS = 256
"""How many links of one result are remembered."""


class SeenUris:
    """Remembers which server named a URI to a caller; in this process only, up to a limit."""

    def __init__(self) -> None:
        self._callers: OrderedDict[tuple[str, str], OrderedDict[str, str]] = OrderedDict()

    def note(self, caller: Caller, server: str, result: Mapping[str, Any]) -> None:
        """Remember the links in a result that goes to the caller."""
        uris = [uri for uri, _ in zip(_links(result), range(_MAX_LINKS), strict=False)]
        if not uris:
            return
        key = (caller.tenant, caller.key_id)
        seen = self._callers.setdefault(key, OrderedDict())
        self._callers.move_to_end(key)
        for uri in uris:
            seen[uri] = server
            seen.move_to_end(uri)
        while len(seen) > _URIS_PER_CALLER:
            seen.popitem(last=False)
        while len(self._callers) > _CALLERS:
            self._callers.popitem(last=False)

    def find(self, caller: Caller, uri: str) -> tuple[str, str] | None:
        """Return (server, its own URI) if a result named this URI to the caller, bare or with the server's name."""
        seen: Mapping[str, str] = self._callers.get((caller.tenant, caller.key_id), OrderedDict())
        if uri in seen:
            return seen[uri], uri
        named = split_uri(uri)
        return named if named is not None and seen.get(named[1]) == named[0] else None


def _links(result: Mapping[str, Any]) -> Iterator[str]:
    for block in _blocks(result):
        if not isinstance(block, Mapping):
            continue
        inner = block.get("resource")
        holder = inner if block.get("type") == "resource" and isinstance(inner, Mapping) else block
        uri = holder.get("uri")
        if (
            block.get("type") in {"resource", "resource_link"}
            and isinstance(uri, str)
            and len(uri) <= _MAX_URI
        ):
            yield uri


def _blocks(result: Mapping[str, Any]) -> Iterable[Any]:
    content = result.get("content")
    if isinstance(content, list):
        return content
    messages = result.get("messages")
    if isinstance(messages, list):
        return [message.get("content") for message in messages if isinstance(message, Mapping)]
    return ()
