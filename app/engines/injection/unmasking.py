"""Undo disguises of words: signs for letters, doubled letters, marks in and between words, letters apart, mirrors.

A view is made only where it reads better than the text: several words that nobody knows become words that are known.
So text in any language, names and code mostly have none, and the classifier can be asked about it as about plain text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from app.engines.injection.vocabulary import Vocabulary
from app.engines.views.mapping import Substitution, TextView, apart, respelled

UNMASKED: Final = "unmasked"

_TOKEN: Final = re.compile(r"\S+")
_MARKS: Final = r"_\-.+|*~/=:^,·•"
_RIMS: Final = ".,;:!?\"'()[]{}<>*_~-“”‘’«»"  # noqa: RUF001 - the quotation marks of several languages
_MARK: Final = re.compile(rf"[{_MARKS}]")
_JOINS: Final = 3
"""Least marks of one kind in a token that stand for blanks."""
_APART: Final = re.compile(rf"(?<![^\W_])[^\W_](?:[ {_MARKS}]{{1,3}}[^\W_](?![^\W_])){{4,}}")
_CUT: Final = re.compile(rf"\w*[^\W_](?:[{_MARKS}]{{1,2}}[\w@$!|]+)+")
_LEET: Final = re.compile(r"(?=\S*[A-Za-z])(?=\S*[0-9@$!|+€£])[A-Za-z0-9@$!|+'€£(\[{<>]+")
_CAMEL: Final = re.compile(r"(?:[A-Z][a-z]+|[A-Z](?=[A-Z0-9]|\Z)|[0-9]{1,4}){3,}\Z")
_HUMP: Final = re.compile(r"[A-Z][a-z]*|[0-9]+")
_SIGNS: Final = (
    str.maketrans("0134578@$!|+€£(<", "oieastbasilteecc"),
    str.maketrans("0134567@$!|+€£9", "oleasgtasiiteeg"),
)
_GLUED: Final = re.compile(r"[A-Za-z]{16,400}")
"""Words without blanks between them; words as long are seldom unknown."""
_LEAST: Final = 3
_SHARE: Final = 0.125
"""Words, and as a share of all words, that must have become known for a view to be made."""
_SAMPLE: Final = 60
_READABLE: Final = 0.6
_ROT13: Final = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm",
)
_MOST: Final = 20_000
"""Most characters of a text that are read again; words in disguise stand at its beginning or fill it."""


def unmasked(text: str) -> Iterator[TextView]:
    """Yield views of ``text`` in which words in disguise are plain; none where nothing reads better."""
    text = text[:_MOST]
    if not text.strip():
        return
    words = Vocabulary.shared()
    view: TextView | None = None
    for undo in (_parted, _plainer):
        below = text if view is None else view.text
        changes = list(undo(below, words))
        if changes:
            view = respelled(below, changes, view)
    if view is not None and _reads(view, words):
        yield view
    sample = _words(text)[:_SAMPLE]
    if len(sample) >= _LEAST and _readable(sample, words) < _READABLE:
        yield from _mirrored(text, words)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text)


def _readable(sample: Sequence[str], words: Vocabulary) -> float:
    return sum(map(words.knows, sample)) / max(1, len(sample))


def _reads(view: TextView, words: Vocabulary) -> bool:
    """Return whether the changes make known words, and enough of them that they are no accident."""
    last = [view.text[start:end] for start, end, _ in view.changed]
    under = view.below
    first = [] if under is None else [under.text[start:end] for start, end, _ in under.changed]
    readable = sum(map(words.knows, _words(" ".join((*first, *last)))))
    return readable >= max(_LEAST, _SHARE * len(_TOKEN.findall(view.text)))


def _parted(text: str, words: Vocabulary) -> list[Substitution]:
    """Return words for runs of letters apart, and blanks for marks between words."""
    changes = [Substitution(*run.span(), _together(run[0], words), UNMASKED) for run in _APART.finditer(text)]
    for token in _TOKEN.finditer(text):
        mark = _joining(token[0], words)
        if mark is not None:
            changes.append(Substitution(*token.span(), token[0].replace(mark, " "), UNMASKED))
    return apart(changes)


def _together(run: str, words: Vocabulary) -> str:
    """Return the words of letters apart; wider gaps part words, and without them the words are found in the letters."""
    parts = [re.sub(r"[\W_]", "", part) for part in re.split(r" {2,}", run)]
    if len(parts) == 1:
        pieces = re.findall(r"\d+|\D+", parts[0])
        parts = [word for piece in pieces for word in words.parted(piece) or [piece]]
    return " ".join(filter(None, parts))


def _joining(token: str, words: Vocabulary) -> str | None:
    """Return the mark that stands for blanks between the words of ``token``, if there is one."""
    marks: list[str] = sorted(set(_MARK.findall(token)))
    for mark in marks:
        parts = token.strip(_RIMS).split(mark)
        if len(parts) > _JOINS and _readable([part.strip(_RIMS) for part in parts], words) >= _READABLE:
            return mark
    return None


def _plainer(text: str, words: Vocabulary) -> Iterator[Substitution]:
    """Yield the tokens that are known words once a disguise is undone."""
    for token in _TOKEN.finditer(text):
        written = token[0]
        core = written.strip(_RIMS)
        if not core or words.knows(core):
            continue
        for shown in (core, written) if core != written else (core,):
            plain = _plain_word(shown, words)
            if plain is not None:
                start = token.start() + written.index(shown)
                yield Substitution(start, start + len(shown), plain, UNMASKED)
                break


def _plain_word(core: str, words: Vocabulary) -> str | None:
    for way in _WAYS:
        plain = way(core, words)
        if plain is not None:
            return plain
    return None


def _from_signs(core: str, words: Vocabulary) -> str | None:
    if core.isalpha() or not _LEET.fullmatch(core):
        return None
    for table in _SIGNS:
        plain = core.translate(table).strip(_RIMS)
        if words.knows(plain):
            return plain
    return None


def _from_cut(core: str, words: Vocabulary) -> str | None:
    if not _CUT.fullmatch(core):
        return None
    whole = _MARK.sub("", core)
    return whole if words.knows(whole) else words.undoubled(whole) or _from_signs(whole, words)


def _from_doubled(core: str, words: Vocabulary) -> str | None:
    return words.undoubled(core) if core.isalpha() else None


def _from_glued(core: str, words: Vocabulary) -> str | None:
    if _CAMEL.match(core) and not core.isupper():
        return " ".join(_HUMP.findall(core))
    plain = _GLUED.sub(lambda run: " ".join(_apart_words(run[0], words)), core)
    return plain if plain != core else None


def _apart_words(run: str, words: Vocabulary) -> list[str]:
    parts = None if words.knows(run) else words.parted(run)
    return parts if parts is not None and len(parts) >= _LEAST else [run]


_WAYS: Final[tuple[Callable[[str, Vocabulary], str | None], ...]] = (
    _from_signs,
    _from_cut,
    _from_doubled,
    _from_glued,
)


def _mirrored(text: str, words: Vocabulary) -> Iterator[TextView]:
    """Yield the text backwards, with each word backwards, or with shifted letters, where it can be read so."""
    turned = text[::-1]
    each = [Substitution(*token.span(), token[0][::-1], UNMASKED, True) for token in _TOKEN.finditer(text)]
    views = (
        [Substitution(0, len(text), turned, UNMASKED, True)],
        each,
        [Substitution(0, len(text), text.translate(_ROT13), UNMASKED)],
    )
    for changes in views:
        view = respelled(text, changes)
        sample = _words(view.text)[:_SAMPLE]
        if _readable(sample, words) >= _READABLE:
            yield view
