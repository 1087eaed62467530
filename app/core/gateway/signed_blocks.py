"""Blocks that the provider signed or encrypted: which they are, and the key under which their original is kept."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.core.gateway.channels import Path
from app.core.gateway.json_body import JsonBody, RawJson

_SEALS: Final = ("signature", "encrypted_content", "data")


@dataclass(frozen=True, slots=True)
class SignedBlock:
    """A block of signed reasoning.

    ``digest`` (hex) depends on the signature alone, which nobody changes: it finds the original of a block whose text
    was restored for the caller. ``raw`` is the block's JSON text, in an answer as the provider signed it.
    """

    digest: str
    kind: str
    path: Path
    raw: str


def seal_of(block: Mapping[str, Any], kinds: frozenset[str]) -> str | None:
    """Return the signature or encrypted text of a block whose type is one of ``kinds``, or None."""
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in kinds:
        return None
    return next((seal for name in _SEALS if isinstance(seal := block.get(name), str) and seal), None)


def digest_of(kind: str, seal: str) -> str:
    """Return the key of a signed block."""
    return hashlib.sha256(f"{kind}\0{seal}".encode("utf-8", "surrogatepass")).hexdigest()


def signed_in(body: JsonBody, lists: tuple[str, ...], kinds: frozenset[str]) -> Iterator[SignedBlock]:
    """Yield the signed blocks of a body: entries of its ``lists``, and of lists that are members of these entries."""
    blocks: dict[Path, tuple[str, str]] = {}
    for path, block in _candidates(body.value, lists) if kinds else ():
        seal = seal_of(block, kinds)
        if seal is not None and path[:2] not in blocks:
            blocks[path] = (str(block["type"]), seal)
    raws = body.raws(blocks) if blocks else {}
    for path, (kind, seal) in blocks.items():
        yield SignedBlock(digest_of(kind, seal), kind, path, raws[path])


def _candidates(value: Any, lists: tuple[str, ...]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for name in lists:
        entries = value.get(name) if isinstance(value, dict) else None
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, dict):
                continue
            yield (name, number), entry
            for member, inner in entry.items():
                for position, block in enumerate(inner if isinstance(inner, list) else ()):
                    if isinstance(block, dict):
                        yield (name, number, member, position), block


def original_members(block: SignedBlock, original: str) -> dict[Path, RawJson]:
    """Return the members that a block in a request and its original share, as the provider wrote them."""
    in_request, signed = JsonBody.lenient(block.raw), JsonBody.lenient(original)
    if in_request is None or signed is None:
        return {}
    raws = signed.raws((name,) for name in in_request.value if name in signed.value)
    return {(*block.path, *name): RawJson(raw) for name, raw in raws.items()}
