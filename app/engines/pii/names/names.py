# ruff: noqa: RUF001 - names are written with typographic apostrophes and dashes
"""Find the other mentions of a known name in the same context: in full, and by its parts."""

import re
from collections.abc import Iterable, Iterator

from app.core.contracts.engines import Span
from app.engines.pii.ground.labels import PERSON


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_LONGEST_NAME = 200
_SURE, _SURE_ALONE = 0.6, 0.8
_LETTER = r"[^\W\d_]"
_REST = rf"{_LETTER}*(?:['’\-]{_LETTER}+)*"
_PART = re.compile(_LETTER + _REST)
# The parts that do not begin with a lower-case ASCII letter. The first character comes first to make the search fast;
# the look-behinds check that it is a letter and that no earlier character belongs to the same part.
_CAPITALIZED = re.compile(rf"[A-Z\u00aa-\U0010ffff](?<={_LETTER})(?<!{_LETTER}.)(?<!{_LETTER}['’\-].){_REST}")
_NEXT_PART = re.compile(rf"[\s.,\-]{{1,3}}({_PART.pattern})")
_TITLES = _listed(
    """
    mr mrs ms miss mx dr prof professor sir madam dame lord lady herr frau mme mlle monsieur madame señor
    señora don doña signor signora van von der den de la le del della di da dos du bin ibn al el ter ten zu jr
    sr ii iii iv phd md esq
    """
)
_NEVER = _listed(
    """
    january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday will can the and for not you all any was are has had his her our
    one two new now she who how why what when where they them this that with from have best dear hello thanks
    regards hi hey king queen prince president doctor nurse client customer user admin test manager team
    company bank street road city north south east west january's i a an in on at to of is it as be by or if
    so we he me my no up us do go am america american english french german china india london paris
    washington
    """
)
_AMBIGUOUS = _listed(
    """
    young brown green white black gray grey long short rich price banks bank fields wood woods stone rose hope
    grace faith joy bill mark jack art bob pat drew chase grant pierce dean miles chance hunter mason carter
    cooper baker taylor smith turner miller cook fisher parker porter gardener gardner page bishop pope church
    park parks hill hills rivers river lake forest moon sun star summer autumn winter spring rain snow frost
    storm day day's knight love sweet good wise strong power powers swift sharp savage noble major marshall
    sergeant judge case cash penny dollar gold silver diamond pearl ruby amber jade crystal ivy lily daisy
    violet iris olive fox wolf lamb bull bird robin martin jay crane drake swan hawk max min ray guy gene
    victor sterling dale glen heath cliff brook brooks field marsh moss reed reeds bush branch root berry
    cherry rice bean bacon lemon ginger sage basil rosemary ford bell ball bond book boot bowman bridge
    bridges burns cross dash early english fair farmer field finch fish fleet flowers francis french friend
    gates glass hall hand hands hardy head holiday holly house howe hull hunt joiner key kidd lane law lee
    little low mann may mills moody moore nail nelson newman north nash pace paine paris peace pitt pool post
    potter pound pray prior purple quick read reading ready rider ring rock rome rush sands sawyer seal self
    shade shell shepherd singer small speed spark spear spencer square steel street sutton tanner temple thorn
    tower trace true trump vale walker wall walls ward ware warren waters watts way webb weeks wells west
    wheeler wild winner wolf worth wright york
    """
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\r\"“”(\[{>*\-–—•|]|\d\))\s*\Z")
_MOST_PARTS = 6
_SHORTEST = 3


def person_names(text: str, spans: Iterable[Span]) -> set[str]:
    """Return the names of people in ``spans`` whose score is high enough to search for them elsewhere."""
    raw = ((span.start, span.end, span.label, span.score) for span in spans)
    return {name_at(text, start, end) for start, end in sure_people(text, raw)}


def sure_people(text: str, spans: Iterable[tuple[int, int, str, float]]) -> Iterator[tuple[int, int]]:
    """Yield the places in ``text`` of the `person_names` of its ``spans`` (start, end, label, score)."""
    for start, end, label, score in spans:
        if label == PERSON and end - start <= _LONGEST_NAME:
            words = text[start:end].split()
            if score >= (_SURE_ALONE if len(words) == 1 else _SURE):
                yield start, end


def name_at(text: str, start: int, end: int) -> str:
    """Return the name in ``text`` between two offsets, with single spaces."""
    return " ".join(text[start:end].split())


class Names:
    """Names of people, prepared for searching in texts.

    A name is *relevant* to a text that contains the first word of one of its forms. Only relevant names affect what is
    found in a text; leaving out or adding others makes no difference.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.all = tuple(names)
        self._alone: set[str] = set()
        self._whole: set[tuple[str, ...]] = set()
        self._opening: dict[str, list[int]] = {}
        for place, name in enumerate(self.all):
            self._learn(place, tuple(_PART.findall(name)))
        small = any("a" <= word[0] <= "z" for word in self._opening)
        self._parts = _PART if small else _CAPITALIZED

    def _learn(self, place: int, parts: tuple[str, ...]) -> None:
        alone = {form for part in parts if _carries(part) for form in (part, part.upper())}
        whole = {parts, tuple(part.upper() for part in parts)} if 1 < len(parts) <= _MOST_PARTS else set()
        self._alone |= alone
        self._whole |= whole
        for word in alone | {sequence[0] for sequence in whole}:
            self._opening.setdefault(word, []).append(place)

    @property
    def opening(self) -> Iterable[str]:
        """Return the first words of mentions; a text without any of them, even inside a word, has no mention."""
        return self._opening.keys()

    def searched(self, text: str, score: float) -> tuple[list[Span], list[int]]:
        """Return the mentions of names in ``text``, and the positions of the names that are relevant to it."""
        if not self._opening:
            return [], []
        matches = [match for match in self._parts.finditer(text) if match.group() in self._opening]
        words = {match.group() for match in matches}
        relevant = sorted({place for word in words for place in self._opening[word]})
        return list(self._mentions(text, matches, score)), relevant

    def _mentions(self, text: str, matches: Iterable[re.Match[str]], score: float) -> Iterator[Span]:
        done = 0
        for match in matches:
            (start, end), word = match.span(), match.group()
            if start < done:
                continue
            if whole := self._whole_end(text, word, end):
                done = whole
                yield Span(start, whole, PERSON, score)
            elif word in self._alone and not (word.lower() in _AMBIGUOUS and _opens_sentence(text, start)):
                yield Span(start, end, PERSON, score)

    def _whole_end(self, text: str, first: str, end: int) -> int:
        """Return the end of the whole name whose first part ends at ``end``; 0 if there is none."""
        sequence = [first]
        longest = 0
        while len(sequence) < _MOST_PARTS and (following := _NEXT_PART.match(text, end)):
            sequence.append(following[1])
            end = following.end()
            if tuple(sequence) in self._whole:
                longest = end
        return longest


def mentions(text: str, names: Iterable[str], score: float) -> list[Span]:
    """Return the mentions in ``text`` of ``names`` and of their parts.

    A mention must be capitalized like the name, or written in capitals only. Parts that are also common words count
    only inside a sentence, months and the like never. Linear in the text, whatever the number of names.
    """
    return Names(names).searched(text, score)[0]


def _opens_sentence(text: str, start: int) -> bool:
    return _SENTENCE_START.search(text[max(0, start - 8) : start]) is not None if start else True


def _carries(part: str) -> bool:
    """Return whether a part of a name identifies the person when it occurs alone."""
    lower = part.lower()
    return (
        part[0].isupper()
        and lower not in _TITLES
        and lower not in _NEVER
        and len(part) >= (_SHORTEST if part.isascii() else _SHORTEST - 1)
    )
