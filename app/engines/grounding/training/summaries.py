"""Make summaries of articles by rule, with and without support, for the training of the grounding judge."""

import random
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from app.engines.grounding.words import sentences_of

_LEAST_WORDS: Final = 8
_MOST_WORDS: Final = 45
_LEAST_SENTENCES: Final = 5
_LONG_WRONG: Final = 0.2
_SHORT_WRONG: Final = 0.75
_ASIDE: Final = re.compile(r"\s*\([^()]*\)")
_RELATIVE: Final = re.compile(r", (?:which|who|where)\b[^,.;]*(?=[,.])")
_OPENING: Final = re.compile(
    r"^[A-Z][^,.;]{2,50}, (?=(?:the|a|an|it|they|this|these|most|some|many|[A-Z])\b)"
)
_TAIL: Final = re.compile(
    r",? (?:and|but|while|although|because|since|including|such as|particularly|especially) [^.;]*(?=\.$)"
)
_REASON: Final = re.compile(r"^([A-Z][^,;]+?),? (because|although|while|when|after|before|if) ([^,;]+)\.$")
_NUMBER: Final = re.compile(r"\b\d+(?:[.,]\d+)*\b")
_NAMES: Final = re.compile(r"(?<=[a-z,] )[A-Z][\w-]+(?: [A-Z][\w-]+)*")
_PHRASE: Final = re.compile(
    r"\b(?:in|at|for|from|during|after|with|by|near|among|against) (?:the |a |an )?\w+(?: \w+){0,3}(?=[,.])"
)
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|may|will|should|does|do|cause[sd]?|include[sd]?|became|began|made|said)\b"
)
_WORD: Final = re.compile(r"[A-Za-z]{5,}")
_LIKE_WORDS: Final = (
    "show reveal; use employ; begin start; increase rise; decrease drop; help assist; important significant; many "
    "numerous; often frequently; large big; children kids; doctor physician; illness disease; usually typically; "
    "cause trigger; get obtain; need require; make produce; find discover; also additionally; about roughly; "
    "several multiple; near close; quickly rapidly; sometimes occasionally; because since; most majority; part "
    "portion; people individuals; begins starts; occurs happens; occur happen; affects hits; affect hit; known "
    "called; contains holds; signs indications; severe serious; rare uncommon; common widespread; treatment "
    "therapy; main principal; body organism; changes alterations; change alteration; problems difficulties; "
    "suggest indicate; suggests indicates; demonstrated proved; identified detected; reduced lowered; role "
    "function; first initially; built constructed; moved relocated; wrote penned; won captured; played performed; "
    "town municipality; company firm; film movie; house home; work labour; job post; died perished; killed slain; "
    "leader head; area region; allow permit; allows permits; giving granting; given granted; fast swift; end "
    "finish; ended finished; large sizeable; old aged; join enter; joined entered; named titled; near beside"
)
_LIKE: Final = {
    word: other
    for pair in _LIKE_WORDS.split(";")
    for word, other in (pair.split(), pair.split()[::-1])
}  # fmt: skip
_TURNS: Final = (
    (re.compile(r"\b(is|are|was|were|can|may|will|should|has|have)\b(?! not)"), r"\1 not"),
    (re.compile(r"\bmost\b"), "few"),
    (re.compile(r"\bmore\b"), "less"),
    (re.compile(r"\bincrease"), "decrease"),
    (re.compile(r"\bbefore\b"), "after"),
    (re.compile(r"\bhigh"), "low"),
)
_SAYING: Final = ("The report says that {}.", "According to the article, {}.", "It adds that {}.")


class Summary(NamedTuple):
    """A summary of an article, and whether the article does not support it."""

    article: str
    text: str
    unsupported: bool


def sentences_in(article: str) -> list[str]:
    """Return the sentences of ``article`` that a summary can be made from."""
    some = (" ".join(article[start:end].split()) for start, end in sentences_of(article))
    return [
        one
        for one in some
        if _LEAST_WORDS <= len(one.split()) <= _MOST_WORDS and one[0].isupper() and one.endswith(".")
    ]


def summaries(articles: Sequence[str], seed: str) -> list[Summary]:
    """Return one summary with support and one without of each article that has enough sentences."""
    usable = [
        (article, some) for article in articles if len(some := sentences_in(article)) >= _LEAST_SENTENCES
    ]
    likes = _neighbours([some for _, some in usable])
    draw = random.Random(seed)
    made = []
    for number, (article, some) in enumerate(usable):
        other = usable[likes[number]][1]
        made.append(Summary(article, _supported(some, draw), False))
        made.append(Summary(article, _unsupported(some, other, draw), True))
    return made


def as_written(articles: Sequence[str], seed: str) -> list[Summary]:
    """Return summaries as systems write them, two of each article.

    The long one stays near its wording and is wrong once in five times, that of a single sentence three times in four.
    """
    usable = [
        (article, some) for article in articles if len(some := sentences_in(article)) >= _LEAST_SENTENCES
    ]
    likes = _neighbours([some for _, some in usable])
    draw = random.Random(seed)
    made = []
    for number, (article, some) in enumerate(usable):
        other = usable[likes[number]][1]
        long = [draw.choice((_restated, _cut))(some, draw) for _ in range(draw.choice((2, 3, 3, 4, 5)))]
        wrong = draw.random() < _LONG_WRONG
        if wrong:
            place = draw.randrange(len(long))
            long[place] = _corrupted(long[place], some, other, draw)
        made.append(Summary(article, " ".join(long), wrong))
        one = reworded(_cut(some, draw), draw)
        wrong = draw.random() < _SHORT_WRONG
        made.append(Summary(article, _corrupted(one, some, other, draw) if wrong else one, wrong))
    return made


def _cut(some: Sequence[str], draw: random.Random) -> str:
    return shortened(draw.choice(some), draw)


def _neighbours(articles: Sequence[Sequence[str]]) -> list[int]:
    """Return for each article the number of another one that shares most of its rarer words."""
    words = [{word for one in some for word in _WORD.findall(one.lower())} for some in articles]
    having: dict[str, list[int]] = {}
    for number, some in enumerate(words):
        for word in some:
            having.setdefault(word, []).append(number)
    found = []
    for number, some in enumerate(words):
        votes: dict[int, float] = {}
        for word in sorted(some):
            for other in having[word] if len(having[word]) <= 40 else ():  # noqa: PLR2004
                if other != number and words[other] != some:
                    votes[other] = votes.get(other, 0.0) + 1 / len(having[word])
        found.append(max(votes, key=lambda other: (votes[other], -other)) if votes else number - 1)
    return found


def _supported(some: Sequence[str], draw: random.Random) -> str:
    return " ".join(_restated(some, draw) for _ in range(draw.choice((1, 1, 2, 3))))


def _restated(some: Sequence[str], draw: random.Random) -> str:
    """Return a sentence of the article: as it is, shortened, in other words, or joined with its neighbour."""
    place = draw.randrange(len(some))
    one = some[place]
    way = draw.random()
    if way < 0.2:  # noqa: PLR2004
        return one
    if way < 0.5:  # noqa: PLR2004
        return shortened(one, draw)
    if way < 0.7 or place + 1 == len(some):  # noqa: PLR2004
        return reworded(shortened(one, draw), draw)
    return _joined(shortened(one, draw), reworded(shortened(some[place + 1], draw), draw), draw)


def shortened(sentence: str, draw: random.Random) -> str:
    """Return ``sentence`` without some of its asides, opening and tail."""
    made = sentence
    for pattern in (_ASIDE, _RELATIVE, _OPENING, _TAIL):
        if draw.random() < 0.7:  # noqa: PLR2004
            shorter = pattern.sub("", made, count=1)
            if len(shorter.split()) >= _LEAST_WORDS - 2:
                made = shorter
    return made[0].upper() + made[1:]


def reworded(sentence: str, draw: random.Random) -> str:
    """Return ``sentence`` with other words of like meaning, its reason first, or as reported speech."""
    made = sentence
    reason = _REASON.match(made)
    if reason and draw.random() < 0.6:  # noqa: PLR2004
        made = f"{reason[2].capitalize()} {reason[3]}, {_lowered(reason[1])}."
    made = re.sub(r"[a-z]+", lambda word: draw.choice((word[0], *[_LIKE.get(word[0], word[0])] * 4)), made)
    if draw.random() < 0.2:  # noqa: PLR2004
        made = draw.choice(_SAYING).format(_lowered(made.rstrip(".")))
    return made


def _lowered(text: str) -> str:
    first = text.split(" ", 1)[0]
    common = first.lower() in {
        "the",
        "a",
        "an",
        "it",
        "they",
        "this",
        "these",
        "most",
        "some",
        "many",
        "in",
        "he",
        "she",
    }
    return text[0].lower() + text[1:] if common else text


def _joined(one: str, other: str, draw: random.Random) -> str:
    return f"{one.rstrip('.')}{draw.choice((', and ', '; ', ' while '))}{_lowered(other)}"


def _unsupported(some: Sequence[str], other: Sequence[str], draw: random.Random) -> str:
    count = draw.choice((1, 1, 2, 3))
    wrong = set(draw.sample(range(count), max(1, draw.randint(1, count))))
    made = []
    for number in range(count):
        sentence = _restated(some, draw)
        made.append(_corrupted(sentence, some, other, draw) if number in wrong else sentence)
    return " ".join(made)


def _corrupted(sentence: str, some: Sequence[str], other: Sequence[str], draw: random.Random) -> str:
    """Return a sentence that the article does not support, made in the first of the ways, as drawn, that works."""
    ways: list[Callable[[], str]] = [
        lambda: _with_other(_NAMES, sentence, other, draw),
        lambda: _with_other(_NUMBER, sentence, other, draw),
        lambda: _turned(sentence, draw),
        lambda: _detailed(sentence, other, draw),
        lambda: _mixed(sentence, some, draw),
        lambda: _mixed(sentence, other, draw),
        lambda: _borrowed(some, other, draw),
        lambda: reworded(shortened(draw.choice(other), draw), draw),
    ]
    # Whole invented statements are what models write most, so they are drawn more often than small changes.
    ways += [ways[3], ways[5], ways[6], ways[7]]
    draw.shuffle(ways)
    for way in ways:
        made = way()
        if made and made != sentence:
            return made
    return draw.choice(other)


def _with_other(pattern: re.Pattern[str], sentence: str, other: Sequence[str], draw: random.Random) -> str:
    there = sorted(
        {found for one in other for found in pattern.findall(one)} - set(pattern.findall(sentence))
    )
    return pattern.sub(lambda _: draw.choice(there), sentence, count=draw.choice((1, 2))) if there else ""


def _turned(sentence: str, draw: random.Random) -> str:
    for pattern, by in draw.sample(_TURNS, len(_TURNS)):
        if pattern.search(sentence):
            return pattern.sub(by, sentence, count=1)
    return ""


def _detailed(sentence: str, other: Sequence[str], draw: random.Random) -> str:
    phrases = sorted({found for one in other for found in _PHRASE.findall(one)})
    return f"{sentence.rstrip('.')} {draw.choice(phrases)}." if phrases else ""


def _mixed(sentence: str, some: Sequence[str], draw: random.Random) -> str:
    """Return the subject of one sentence with what is said of the subject of another one."""
    one, other = _VERB.search(sentence), None
    for _ in range(4):
        chosen = draw.choice(some)
        other = _VERB.search(chosen)
        if one and other and chosen[other.start() :] not in sentence:
            return sentence[: one.start()] + chosen[other.start() :]
    return ""


def _borrowed(some: Sequence[str], other: Sequence[str], draw: random.Random) -> str:
    """Return a sentence of the other article with the names of this one."""
    names = sorted({found for one in some for found in _NAMES.findall(one)})
    return _NAMES.sub(lambda _: draw.choice(names), draw.choice(other)) if names else ""
