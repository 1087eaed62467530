"""URIs that servers named in their results, so that whoever got the result can read them: no list holds them."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.core.access import Caller
from app.core.catalog.naming import split_uri

_CALLERS = 2048
_URIS_PER_CALLER = 1024
_MAX_URI = 2048
_MAX_LINKS = 256
"""Links of one result that are remembered."""


class SeenUris:
    """Remembers, in this process and bounded, which server named a URI to a caller."""

    def __init__(self) -> None:
        self._callers: OrderedDict[tuple[str, str], OrderedDict[str, str]] = OrderedDict()

    def note(self, caller: Caller, server: str, result: Mapping[str, Any]) -> None:
        """Remember the links in a result that the caller is given."""
        uris = [uri for uri, _ in zip(_links(result), range(_MAX_LINKS), strict=False)]
        if not uris:
            return
        key = (caller.tenant, caller.key_id)
        known = self._callers.setdefault(key, OrderedDict())
        self._callers.move_to_end(key)
        for uri in uris:
            known[uri] = server
            known.move_to_end(uri)
        while len(known) > _URIS_PER_CALLER:
            known.popitem(last=False)
        while len(self._callers) > _CALLERS:
            self._callers.popitem(last=False)

    def find(self, caller: Caller, uri: str) -> tuple[str, str] | None:
        """Return (server, its own URI) where a result gave the caller this URI, bare or with its server's name."""
        known: Mapping[str, str] = self._callers.get((caller.tenant, caller.key_id), OrderedDict())
        if uri in known:
            return known[uri], uri
        named = split_uri(uri)
        return named if named is not None and known.get(named[1]) == named[0] else None


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
        return [one.get("content") for one in messages if isinstance(one, Mapping)]
    return ()
