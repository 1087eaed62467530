"""Cache features and vectors of single tools by a digest of their definition: a changed list costs its changes."""

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

_MOST_TOOLS: Final = 8_192
"""Most tools that are cached: 3 KB each, up to 15 KB for the longest definitions that are read."""
_DIGEST: Final = 16
_DESCRIPTION: Final = 600
_PARAMETERS: Final = 16


@dataclass(slots=True)
class _CachedTool:
    features: ToolFeatures
    vector: bytes | None = None


def digest_of(tools: Sequence[ToolCandidate]) -> bytes:
    """Return a digest of a list, including its order."""
    fields = (field for tool in tools for field in (tool.name, tool.description, *tool.parameters, "\0"))
    text = "\0".join(fields)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()


def embedded_text(tool: ToolCandidate) -> str:
    """Return the text of a tool for an encoder: its name in words, its description, the names of its parameters."""
    names = ", ".join(
        spelled_out(parameter.split(maxsplit=1)[0])
        for parameter in tool.parameters[:_PARAMETERS]
        if parameter.strip()
    )
    shown = f"{spelled_out(tool.name)}: {tool.description[:_DESCRIPTION]}"
    return f"{shown} ({names})" if names else shown


class KnownTools:
    """The features and vectors of the tools seen last; the definitions themselves are not kept.

    All vectors come from one encoder; ``space`` is its name and version.
    """

    def __init__(self) -> None:
        self._tools: OrderedDict[bytes, _CachedTool] = OrderedDict()
        self._space: tuple[str, str] | None = None
        self._last_list = 0

    def features(self, tools: Sequence[ToolCandidate]) -> list[ToolFeatures]:
        """Return the features of ``tools``; only those that are not cached are computed."""
        digests = [digest_of((tool,)) for tool in tools]
        missing = {
            digest: tool for digest, tool in zip(digests, tools, strict=True) if digest not in self._tools
        }
        for digest, read in zip(missing, ToolFeatures.of([*missing.values()]), strict=True):
            self._tools[digest] = _CachedTool(read)
        features = [self._tools[digest].features for digest in digests]
        self._last_list = len(tools)
        self._trim()
        return features

    def without_vector(self, tools: Sequence[ToolCandidate]) -> list[ToolCandidate]:
        """Return those of ``tools`` that have no vector yet."""
        return [
            tool
            for tool in tools
            if (remembered := self._tools.get(digest_of((tool,)))) is None or remembered.vector is None
        ]

    def learn(self, tools: Sequence[ToolCandidate], embedded: Embeddings) -> None:
        """Cache the vectors of ``tools``; where they come from another encoder, drop the former ones."""
        space = (embedded.report.name, embedded.report.version)
        if space != self._space:
            self.forget_vectors()
            self._space = space
        for tool, vector in zip(tools, embedded.vectors, strict=False):
            digest = digest_of((tool,))
            remembered = self._tools.get(digest)
            if remembered is None:
                [read] = ToolFeatures.of([tool])
                remembered = self._tools[digest] = _CachedTool(read)
            remembered.vector = vector
        self._trim()

    def vectors(self, tools: Sequence[ToolCandidate]) -> tuple[Floats | None, tuple[str, str] | None]:
        """Return the vectors of ``tools``, a row each, and their encoder; (None, None) where one is missing."""
        vectors = [
            remembered.vector if (remembered := self._tools.get(digest_of((tool,)))) else None
            for tool in tools
        ]
        if any(vector is None for vector in vectors):
            return None, None
        rows = np.frombuffer(b"".join(vector for vector in vectors if vector is not None), dtype="<f4")
        return rows.reshape(len(tools), -1), self._space

    def forget_vectors(self) -> None:
        """Drop all vectors."""
        self._space = None
        for remembered in self._tools.values():
            remembered.vector = None

    def _trim(self) -> None:
        # All of the list that was read last stay, also while vectors of a part of it come.
        while len(self._tools) > max(_MOST_TOOLS, self._last_list):
            self._tools.popitem(last=False)
