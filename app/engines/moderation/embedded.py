"""The embedded Moderator: judges every window by its words, and the most suspicious ones also by their embedding."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.contracts.engines import Embedder, EngineReport, Moderation
from app.core.contracts.moderation import POLICIES
from app.core.errors import InvalidArgumentsError, UpstreamUnavailableError
from app.engines.moderation.languages import LanguageClassifier, judged_language, window_language
from app.engines.moderation.model import Floats, ModerationClassifier
from app.engines.moderation.stance import HELD, VERSION, held_policies
from app.engines.moderation.windows import judged_windows

MOST_ENCODED = 2
"""Most windows of one text that are encoded: a vector takes as long as the words of ten windows."""

MOST_ENCODED_TOGETHER = 32
"""Most windows of all texts of one call that are encoded."""

SUSPICIOUS = 0.35
"""Score by words below which a second window is not encoded: no level would flag it."""

_TOGETHER = 32
"""Windows whose words are scored at once: fewer are slower, more need more memory (about 2 MB)."""


@dataclass(slots=True)
class _Judged:
    """The windows of one text, the logits of their words, and their scores (a row for each window)."""

    spans: list[tuple[int, int]]
    """Their offsets in the text; a window of decoded text stands for what was decoded and what is around it."""
    pieces: list[str]
    """What is judged in them."""
    by_words: Floats
    scores: Floats
    languages: list[str | None]
    """What ``window_language`` says of each window; one in English has none."""


class EmbeddedModerator:
    """A Moderator; its weights are read on the first call, once per process.

    Where ``embedder`` is absent or fails, it judges by words alone, and the report says so.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._classifiers: tuple[ModerationClassifier, LanguageClassifier] | None = None
        self._loading = threading.Lock()

    async def moderate(self, texts: Sequence[str], policies: Sequence[str]) -> Moderation:
        """Score each of ``texts`` for each of ``policies``: the highest score of its windows."""
        unknown = set(policies) - set(POLICIES)
        if unknown:
            raise InvalidArgumentsError(
                "Unknown policy; details list the known ones.", details={"known": list(POLICIES)}
            )
        judged, classifier, languages = await asyncio.to_thread(self._by_words, texts)
        encoded = await self._encoded(judged, classifier)
        if any(any(judged_text.languages) for judged_text in judged):
            await asyncio.to_thread(_raise_by_language, judged, languages)
        _hold(judged)
        name = "embedded-moderation" if encoded else "embedded-lexical"
        columns = [POLICIES.index(policy) for policy in policies]
        scores: list[Mapping[str, float]] = []
        places: list[Mapping[str, tuple[int, int]]] = []
        for judged_text in judged:
            best = judged_text.scores.argmax(axis=0) if judged_text.spans else None
            scores.append(
                {
                    policy: 0.0 if best is None else round(float(judged_text.scores[best[column], column]), 6)
                    for policy, column in zip(policies, columns, strict=True)
                }
            )
            places.append(
                {}
                if best is None
                else {
                    policy: judged_text.spans[int(best[column])]
                    for policy, column in zip(policies, columns, strict=True)
                }
            )
        return Moderation(
            scores, EngineReport(name, f"{classifier.version}-{languages.version}-{VERSION}"), places
        )

    def _loaded(self) -> tuple[ModerationClassifier, LanguageClassifier]:
        with self._loading:
            if self._classifiers is None:
                self._classifiers = ModerationClassifier.embedded(), LanguageClassifier.embedded()
            return self._classifiers

    def _by_words(
        self, texts: Sequence[str]
    ) -> tuple[list[_Judged], ModerationClassifier, LanguageClassifier]:
        classifier, languages = self._loaded()
        read = [list(judged_windows(text)) for text in texts]
        different = list(dict.fromkeys(piece for each in read for _, piece in each))
        logits_by_piece: dict[str, Floats] = {}
        for begin in range(0, len(different), _TOGETHER):
            together = different[begin : begin + _TOGETHER]
            logits_by_piece.update(zip(together, classifier.judged_by_words(together), strict=True))
        judged = []
        for text, each in zip(texts, read, strict=True):
            spans, pieces = [span for span, _ in each], [piece for _, piece in each]
            rows = [logits_by_piece[piece] for piece in pieces]
            by_words = np.array(rows, dtype=np.float32).reshape(len(rows), len(POLICIES))
            whole = judged_language(text)
            judged.append(
                _Judged(
                    spans,
                    pieces,
                    by_words,
                    classifier.scores_by_words(by_words, len(rows)),
                    [window_language(piece, whole) for piece in pieces],
                )
            )
        return judged, classifier, languages

    async def _encoded(self, judged: list[_Judged], classifier: ModerationClassifier) -> bool:
        """Replace the scores of the most suspicious windows by the network's; return whether there are vectors."""
        if self._embedder is None:
            return False
        chosen = _most_suspicious(judged)
        if not chosen:
            return True
        pieces = [judged[text].pieces[row] for text, row in chosen]
        try:
            embeddings = await self._embedder.embed(pieces)
        except UpstreamUnavailableError:
            return False
        vectors = np.array(
            [np.frombuffer(vector, dtype="<f4") for vector in embeddings.vectors], dtype=np.float32
        )
        if vectors.shape[1] + len(POLICIES) != classifier.hidden.shape[0]:
            return False
        await asyncio.to_thread(_rescore, judged, chosen, vectors, classifier)
        return True


def _most_suspicious(judged: list[_Judged]) -> list[tuple[int, int]]:
    """Return the (text, window) pairs to encode: the most suspicious of each text, then others above ``SUSPICIOUS``."""
    ranked: list[tuple[int, float, int, int]] = []
    for number, judged_text in enumerate(judged):
        peaks = judged_text.scores.max(axis=1, initial=0)
        order = np.argsort(-peaks, kind="stable")[:MOST_ENCODED]
        ranked += [
            (rank, -float(peaks[row]), number, int(row))
            for rank, row in enumerate(order)
            if rank == 0 or peaks[row] >= SUSPICIOUS
        ]
    return [(number, row) for _, _, number, row in sorted(ranked)[:MOST_ENCODED_TOGETHER]]


def _rescore(
    judged: list[_Judged], chosen: list[tuple[int, int]], vectors: Floats, classifier: ModerationClassifier
) -> None:
    by_words = np.array([judged[text].by_words[row] for text, row in chosen], dtype=np.float32)
    logits = classifier.judged(vectors, by_words)
    for position, (text, row) in enumerate(chosen):
        judged_text = judged[text]
        judged_text.scores[row] = classifier.scores(
            logits[position], by_words[position], len(judged_text.spans)
        )


def _raise_by_language(judged: list[_Judged], classifier: LanguageClassifier) -> None:
    """Raise the scores of windows in other languages than English to what the classifier for these says."""
    places = [
        (judged_text, row, language)
        for judged_text in judged
        for row, language in enumerate(judged_text.languages)
        if language is not None
    ]
    for begin in range(0, len(places), _TOGETHER):
        together = places[begin : begin + _TOGETHER]
        logits = classifier.logits([judged_text.pieces[row] for judged_text, row, _ in together])
        for own, (judged_text, row, language) in zip(logits, together, strict=True):
            scores = classifier.scores(own, language, len(judged_text.spans))
            judged_text.scores[row] = np.maximum(judged_text.scores[row], scores)


def _hold(judged: list[_Judged]) -> None:
    """Hold the scores of windows that deny, answer, report or have overcome what they speak of."""
    for judged_text in judged:
        for row in np.flatnonzero((judged_text.scores > HELD).any(axis=1)).tolist():
            for policy in held_policies(judged_text.pieces[row]):
                column = POLICIES.index(policy)
                judged_text.scores[row, column] = min(judged_text.scores[row, column], HELD)
