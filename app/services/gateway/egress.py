"""Look through the bytes that would leave: nothing that the conversation's scope knows goes out in clear."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.core.access import KEY_PATTERN
from app.core.errors import BlockedByPolicyError
from app.core.offload import LIGHT, off_loop
from app.engines.originals import OriginalMatch
from app.services.gateway.request_vaults import RequestVault

Path = tuple[str | int, ...]

_UNREAD: Final = frozenset({"model"})
"""Members of a body that do not come from the conversation: the provider's record says what they may be."""


class EgressRefusedError(BlockedByPolicyError):
    """Something that must not leave stands where it cannot be replaced."""


@dataclass(frozen=True, slots=True)
class EgressResult:
    """New texts by their paths in the body, and how many originals they lost, by label."""

    replaced: Mapping[Path, str]
    counts: Mapping[str, int]


async def checked(vault: RequestVault, body: bytes, texts: Callable[[], Collection[Path]]) -> EgressResult:
    """Return what must be replaced in ``body`` (JSON) before it leaves; ``texts`` reads the paths that may change.

    Raises EgressRefusedError, which names neither value nor place, if an original stands elsewhere: in the name of a
    member, in a number, in what only machines read. A key of this service never leaves, wherever it stands.
    """
    return await off_loop(len(body) // LIGHT, _checked, vault, body, texts)


def _checked(vault: RequestVault, body: bytes, texts: Callable[[], Collection[Path]]) -> EgressResult:
    # Numbers stay as they are written: a phone number may stand in one.
    value = json.loads(body, parse_int=str, parse_float=str)
    if isinstance(value, dict):
        value = {name: member for name, member in value.items() if name not in _UNREAD}
    strings = list(_strings(value))
    whole = "\0".join(strings)
    if KEY_PATTERN.search(whole):
        raise EgressRefusedError(
            "The request holds a key of this service, so it was not sent: take the key out, and rotate it."
        )
    matches = vault.find_originals(whole)
    if not matches:
        return EgressResult({}, {})
    return _replaced(vault, value, strings, matches, texts())


def _replaced(
    vault: RequestVault,
    value: Any,
    strings: list[str],
    matches: list[OriginalMatch],
    texts: Collection[Path],
) -> EgressResult:
    starts, position = list[int](), 0
    for string in strings:
        starts.append(position)
        position += len(string) + 1
    by_string: dict[int, list[OriginalMatch]] = {}
    for match in matches:
        by_string.setdefault(bisect_right(starts, match.start) - 1, []).append(match)
    allowed, counts, replaced = set(texts), Counter[str](), dict[Path, str]()
    for number, path in enumerate(_paths(value)):
        if number not in by_string:
            continue
        if path is None or path not in allowed:
            raise EgressRefusedError(
                "The request holds something that this conversation keeps from the model, in a place that cannot be "
                "changed, so it was not sent. Take personal data out of names, numbers and options."
            )
        text, end = strings[number], 0
        pieces: list[str] = []
        for match in by_string[number]:
            start = match.start - starts[number]
            pieces += [text[end:start], str(match.handle)]
            end = match.end - starts[number]
            counts[match.handle.label] += 1
            vault.meet(match.handle)
        replaced[path] = "".join([*pieces, text[end:]])
    return EgressResult(replaced, dict(counts))


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings of a JSON value: names of members, texts, and numbers as they are written."""
    pending = [value]
    while pending:
        element = pending.pop()
        if isinstance(element, str):
            yield element
        elif isinstance(element, dict):
            yield from element
            pending.extend(element.values())
        elif isinstance(element, list):
            pending.extend(element)


def _paths(value: Any) -> Iterator[Path | None]:
    """Yield the paths of the same strings in the same order; None for names of members."""
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending:
        path, element = pending.pop()
        if isinstance(element, str):
            yield path
        elif isinstance(element, dict):
            yield from [None] * len(element)
            pending.extend(((*path, name), member) for name, member in element.items())
        elif isinstance(element, list):
            pending.extend(((*path, number), member) for number, member in enumerate(element))
