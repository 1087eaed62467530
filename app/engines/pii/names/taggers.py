"""Choose the name tagger: the fast one, or the accurate one if its weights and runtime are installed."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.doubts import TaggerName

if TYPE_CHECKING:  # the server only chooses a tagger and never loads one
    from app.engines.pii.names.nlp import NameTagger

FAST = "presidio+embedded"
ACCURATE = "presidio+transformer"
ACCURATE_MISSING = (
    "The accurate name tagger is not installed or damaged; the fast one looked for names. "
    "Install onnxruntime, tokenizers and the weights of this release."
)


@dataclass(frozen=True, slots=True)
class TaggerChoice:
    """Options that can be met, the name of the engine that meets them, and warnings about what is unavailable."""

    options: DetectionOptions
    engine: str = FAST
    warnings: list[str] = field(default_factory=list)


def tagger_choice(options: DetectionOptions) -> TaggerChoice:
    """Return the tagger for ``options``; the first request for accurate names takes 30 ms."""
    if options.names == "fast":
        return TaggerChoice(options)
    if accurate_available():
        return TaggerChoice(options, ACCURATE)
    return TaggerChoice(replace(options, names="fast"), FAST, [ACCURATE_MISSING])


@cache
def accurate_available() -> bool:
    """Return whether the accurate tagger's runtime and the weights of this release are installed."""
    from app.engines.pii.transformer.model import available  # noqa: PLC0415 - numpy: first use only

    return available()


class Taggers:
    """The taggers of one process, each loaded on first use; ``fast`` stands in for both fast ones."""

    def __init__(self, fast: "NameTagger | None" = None) -> None:
        self._loaded: dict[TaggerName, NameTagger] = {}
        if fast is not None:
            self._loaded["fast"] = self._loaded["world"] = fast

    def tagger(self, names: TaggerName) -> "NameTagger":
        """Return the tagger called ``names``, or raise TransformerUnavailableError."""
        if names not in self._loaded:
            self._loaded[names] = _LOADERS[names]()
        return self._loaded[names]


def _fast() -> "NameTagger":
    from app.engines.pii.names.tagger import Tagger  # noqa: PLC0415 - numpy and the weights: first use only

    return Tagger.embedded()


def _world() -> "NameTagger":
    from app.engines.pii.names.tagger import WORLD, Tagger  # noqa: PLC0415 - first text of another language only

    return Tagger.embedded(WORLD)


def _accurate() -> "NameTagger":
    from app.engines.pii.transformer.model import TransformerTagger  # noqa: PLC0415 - first use only: heavy

    return TransformerTagger.embedded()


_LOADERS: dict[TaggerName, "Callable[[], NameTagger]"] = {
    "fast": _fast,
    "world": _world,
    "accurate": _accurate,
}
