"""The classifier for texts in other languages than English, by their words and characters alone.

The shared encoder and the classifiers of ``model.py`` read English. Here regressions read hashed n-grams in all
languages of ``TOLD``. Two of them tell whether there is harm: one is for deeds, one for insults and hate, since answers
to hate are hard to tell from it and would raise the threshold of all. One for each policy says which harm it is. Each
language has thresholds of its own, and so have texts whose language cannot be told.
"""

import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

import numpy as np

from app.core.contracts.moderation import POLICIES
from app.engines.moderation.features import Ngrams, TextFeatures, features_of
from app.engines.moderation.model import MARKS, Floats, calibrated, raised
from app.engines.pii.names.language_words import WORDS
from app.engines.pii.names.languages import leaning_of

TOLD: Final = ("de", "fr", "es", "it", "pt", "nl", "zh")
"""Languages that were learned from and have thresholds of their own, in the order of ``knots``."""

ABUSE: Final = frozenset({"harassment", "hate"})
"""Policies of the second of ``HARM``; the others are of the first."""

HARM: Final = ("deed", "abuse")
"""What the regressions behind those of the policies tell: harm that is done, threatened or asked for; and abuse."""

UNTOLD: Final = "und"
"""Stands for a text whose language cannot be told; its thresholds are the last of ``knots``."""

_CHARACTERS: Final = re.compile("([\u3400-\u4dbf\u4e00-\u9fff])")
_ENGLISH: Final = re.compile(r"(?i)\b(?:the|and|of|is|you|this|that|my|your|how|with)\b")
_SAID_AGAIN: Final = 4
_ACCENTS: Final = str.maketrans("àáâãäçèéêëìíîïñòóôõöùúûü", "aaaaaceeeeiiiinooooouuuu")


def judged_language(text: str) -> str | None:
    """Return in which language of ``TOLD`` a text seems to be, ``UNTOLD``, or None where it is in another one."""
    code = leaning_of(text)
    if code is not None:
        return code if code in TOLD else None
    # Short texts hold too few words to be told; what they lean to shows when they are said again.
    code = leaning_of(" ".join([text] * _SAID_AGAIN))
    return code if code in TOLD else None if code == "en" else UNTOLD


def window_language(window: str, whole: str | None) -> str | None:
    """Return the same for a window of a text in ``whole``; a window that does not tell is as its text is."""
    if whole in TOLD or (whole is None and _ENGLISH.search(window)):
        return whole
    return judged_language(window) if whole == UNTOLD or leaning_of(window) in TOLD else None


@cache
def ngrams() -> Ngrams:
    """Return which n-grams are read: seven languages need more buckets than English.

    Runs of three words and of three characters would tell little but which training text it is. Words that hold two
    words of content apart have no accents, as windows have none.
    """
    common = frozenset(
        word for code in TOLD for word in WORDS.get(code, "").translate(_ACCENTS).split() if code in WORDS
    )
    return Ngrams(words=(1, 2), content=(2,), characters=(4, 5, 6), bits=17, common=common)


def language_features(texts: Sequence[str]) -> TextFeatures:
    """Return the features of windows; each Chinese character is a word, as no blank stands between words."""
    return features_of([_CHARACTERS.sub(r" \1 ", text) for text in texts], ngrams())


@dataclass(frozen=True, slots=True)
class LanguageClassifier:
    """The weights: ``words`` has a row for each feature and a column for each of ``(*POLICIES, *HARM)``.

    ``knots`` has the logits at ``MARKS`` for each of ``(*TOLD, UNTOLD)`` and each of ``HARM``.
    """

    words: Floats
    words_bias: Floats
    knots: Floats
    version: str

    @classmethod
    def embedded(cls) -> "LanguageClassifier":
        """Return the classifier of this package."""
        return cls.read(files("app.engines.moderation").joinpath("weights/languages.npz").read_bytes())

    @classmethod
    def read(cls, data: bytes) -> "LanguageClassifier":
        """Return the classifier in an npz file; its version is the beginning of the file's digest."""
        with np.load(io.BytesIO(data)) as archive:
            arrays = {name: archive[name].astype(np.float32) for name in archive.files}
        return cls(**arrays, version=hashlib.sha256(data).hexdigest()[:12])

    def logits(self, windows: Sequence[str]) -> Floats:
        """Return the logits of windows, a row for each and a column for each of ``(*POLICIES, *HARM)``."""
        window_features = language_features(windows)
        weights = self.words.take(window_features.columns, axis=0)
        rows = np.empty((len(windows), len(self.words_bias)), dtype=np.float32)
        for number, (start, end) in enumerate(pairwise(window_features.starts.tolist())):
            rows[number] = window_features.values[start:end] @ weights[start:end] + self.words_bias
        return rows

    def scores(self, logits: Floats, language: str, neighbours: int) -> Floats:
        """Return the scores 0..1 of one window in ``language``; ``neighbours`` is the number of windows of its text.

        The likeliest policy has the score of the harm, another one as much of it as it is likely. Where the language
        cannot be told, harm below the first of ``MARKS`` counts as none: it decides nothing.
        """
        knots = self.knots[(*TOLD, UNTOLD).index(language)]
        harm = float(calibrated(logits[len(POLICIES) :] - raised(knots, neighbours), knots).max())
        if language == UNTOLD and harm < MARKS[0]:
            harm = 0.0
        policies = logits[: len(POLICIES)]
        likely = np.where(policies == policies.max(), 1, 1 / (1 + np.exp(-policies)))
        return (harm * likely).astype(np.float32)
