"""What is remembered of single tools, by a digest of their definition: a changed list costs what changed in it."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.core.contracts.engines import Embeddings, ToolCandidate
from app.engines.ranking.index import ToolFeatures
from app.engines.ranking.postings import Floats
from app.engines.ranking.words import spelled_out

_HELD: Final = 8_192
"""How many tools are remembered one by one: 3 KB each, 15 KB where somebody sends the longest that are read."""
_DIGEST: Final = 16
_DESCRIPTION: Final = 600
_PARAMETERS: Final = 16


@dataclass(slots=True)
class _Known:
    features: ToolFeatures
    vector: bytes | None = None


def digest_of(tools: Sequence[ToolCandidate]) -> bytes:
    """Return a digest of a list, the order included."""
    fields = (field for tool in tools for field in (tool.name, tool.description, *tool.parameters, "\0"))
    text = "\0".join(fields)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()


def embedded_text(tool: ToolCandidate) -> str:
    """Return what an encoder reads of a tool: its name in words, its description, the names of its parameters."""
    names = ", ".join(
        spelled_out(one.split(maxsplit=1)[0]) for one in tool.parameters[:_PARAMETERS] if one.strip()
    )
    shown = f"{spelled_out(tool.name)}: {tool.description[:_DESCRIPTION]}"
    return f"{shown} ({names})" if names else shown


class KnownTools:
    """The features and vectors of the tools seen last; the definitions themselves are not kept.

    All vectors are of one encoder, ``space``: its name and version.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._space: tuple[str, str] | None = None

    def features(self, tools: Sequence[ToolCandidate]) -> list[ToolFeatures]:
        """Return the features of ``tools``; only those not seen lately are computed."""
        found = []
        for tool in tools:
            digest = digest_of((tool,))
            known = self._known.get(digest)
            if known is None:
                known = self._known[digest] = _Known(ToolFeatures.of(tool))
            found.append(known.features)
        self._trim(len(tools))
        return found

    def without_vector(self, tools: Sequence[ToolCandidate]) -> list[ToolCandidate]:
        """Return those of ``tools`` that an encoder must still read."""
        return [
            tool
            for tool in tools
            if (one := self._known.get(digest_of((tool,)))) is None or one.vector is None
        ]

    def learn(self, tools: Sequence[ToolCandidate], embedded: Embeddings) -> None:
        """Keep the vectors of ``tools``; where they are another encoder's, the former ones are dropped."""
        space = (embedded.report.name, embedded.report.version)
        if space != self._space:
            self.forget_vectors()
            self._space = space
        for tool, vector in zip(tools, embedded.vectors, strict=False):
            digest = digest_of((tool,))
            known = self._known.get(digest)
            if known is None:
                known = self._known[digest] = _Known(ToolFeatures.of(tool))
            known.vector = vector
        self._trim(len(tools))

    def vectors(self, tools: Sequence[ToolCandidate]) -> tuple[Floats | None, tuple[str, str] | None]:
        """Return the vectors of ``tools``, a row each, and whose they are; none where one is missing."""
        found = [known.vector if (known := self._known.get(digest_of((tool,)))) else None for tool in tools]
        if any(vector is None for vector in found):
            return None, None
        rows = np.frombuffer(b"".join(vector for vector in found if vector is not None), dtype="<f4")
        return rows.reshape(len(tools), -1), self._space

    def forget_vectors(self) -> None:
        """Let all vectors go."""
        self._space = None
        for known in self._known.values():
            known.vector = None

    def _trim(self, needed: int) -> None:
        while len(self._known) > max(_HELD, needed):
            self._known.popitem(last=False)
