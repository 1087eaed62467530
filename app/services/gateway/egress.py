"""Look through the bytes that would leave: nothing that the conversation's scope knows goes out in clear."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.core.access import KEY_PATTERN
from app.core.content.shapes.encodings import TEXT_MIME, TextCodec, decoded_text
from app.core.errors import BlockedByPolicyError
from app.core.offload import LIGHT, off_loop
from app.engines.originals import OriginalMatch
from app.services.gateway.request_vaults import RequestVault

Path = tuple[str | int, ...]

_UNREAD: Final = frozenset({"model"})
"""Members of a body that do not come from the conversation: the provider's record says what they may be."""
_DATA: Final = "data:"


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
    files = {
        number: file for number, string in enumerate(strings) if (file := _text_file(string)) is not None
    }
    if any(map(KEY_PATTERN.search, (whole, *(text for text, _ in files.values())))):
        raise EgressRefusedError(
            "The request holds a key of this service, so it was not sent: take the key out, and rotate it."
        )
    matches = vault.find_originals(whole)
    inside = {number: within for number, (text, _) in files.items() if (within := vault.find_originals(text))}
    if not matches and not inside:
        return EgressResult({}, {})
    by_string = _by_string(strings, matches)
    by_string.update(inside)
    return _replaced(vault, value, strings, by_string, {number: files[number] for number in inside}, texts())


def _text_file(string: str) -> tuple[str, TextCodec] | None:
    """Return the text of a data URL that says it is text, and how to encode it again."""
    head = string[: len(_DATA)].lower()
    return decoded_text(string, None) if head == _DATA and TEXT_MIME.match(string, len(_DATA)) else None


def _by_string(strings: list[str], matches: list[OriginalMatch]) -> dict[int, list[OriginalMatch]]:
    """Return by the number of its string, and at its place in that, each match in ``strings`` joined by a character."""
    starts, position = list[int](), 0
    for string in strings:
        starts.append(position)
        position += len(string) + 1
    by_string: dict[int, list[OriginalMatch]] = {}
    for match in matches:
        number = bisect_right(starts, match.start) - 1
        start, end = match.start - starts[number], match.end - starts[number]
        by_string.setdefault(number, []).append(OriginalMatch(start, end, match.handle))
    return by_string


def _replaced(
    vault: RequestVault,
    value: Any,
    strings: list[str],
    by_string: Mapping[int, list[OriginalMatch]],
    files: Mapping[int, tuple[str, TextCodec]],
    texts: Collection[Path],
) -> EgressResult:
    allowed, counts, replaced = set(texts), Counter[str](), dict[Path, str]()
    for number, path in enumerate(_paths(value)):
        if number not in by_string:
            continue
        if path is None or path not in allowed:
            raise EgressRefusedError(
                "The request holds something that this conversation keeps from the model, in a place that cannot be "
                "changed, so it was not sent. Take personal data out of names, numbers and options."
            )
        text, codec = files.get(number, (strings[number], None))
        end = 0
        pieces: list[str] = []
        for match in by_string[number]:
            pieces += [text[end : match.start], str(match.handle)]
            end = match.end
            counts[match.handle.label] += 1
            vault.meet(match.handle)
        changed = "".join([*pieces, text[end:]])
        replaced[path] = changed if codec is None else codec.encoded(changed)
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
