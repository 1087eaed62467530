"""How much meaning counts beside words: an encoder that knows English alone misleads in other languages."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from app.engines.documents.scoring import EQUAL_VOTE
from app.engines.encoder import ENGINE
from app.engines.pii.names.languages import LATIN, language_of

_ENGLISH_ONLY: Final = f"{ENGINE} "
"""What the name of vectors of the embedded encoder begins with; other encoders are trusted in every language."""
_ENGLISH: Final = "en"
_RELATED: Final = frozenset({"da", "de", "es", "fr", "it", "nl", "no", "pt", "ro", "sv"})
"""Germanic and Romance languages: the encoder knows many of their words from English."""
_RELATED_VOTE: Final = 0.2
_LATIN_VOTE: Final = 0.1
_READ_CHARACTERS: Final = 400
_LATIN_LETTER: Final = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_OTHER_LETTER: Final = re.compile(r"[^\W\d_A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]")


def vote_of_meaning(embedder: str, question: str, texts: Sequence[str]) -> float:
    """Return the share (0..0.5) that the cosines of ``embedder`` have in the score of what is found.

    ``texts`` are the chunks that match the question's words best: they are long enough to tell their language. The
    shares were chosen on half of the questions of XQuAD.
    """
    if not embedder.startswith(_ENGLISH_ONLY):
        return EQUAL_VOTE
    if len(_OTHER_LETTER.findall(question)) > len(_LATIN_LETTER.findall(question)):
        return 0.0
    asked = language_of(question)
    if asked not in (None, _ENGLISH):
        return _vote_in(asked)
    languages = Counter(code for text in texts if (code := language_of(text[:_READ_CHARACTERS])) is not None)
    code, count = languages.most_common(1)[0] if languages else (None, 0)
    return _vote_in(code) if 2 * count > len(texts) else EQUAL_VOTE


def _vote_in(code: str | None) -> float:
    if code == _ENGLISH:
        return EQUAL_VOTE
    if code in _RELATED:
        return _RELATED_VOTE
    return _LATIN_VOTE if code in LATIN else 0.0
