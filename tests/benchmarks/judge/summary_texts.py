"""Draws the test part for summaries: of long texts, with and without support; another generator than training's.

No open set here holds summaries of news with the labels of people, so these stand in for them. Each has answers as
systems write them: some of several sentences near the wording of their article, most of them right, and some of one
free sentence, most of them wrong.
"""

import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_SENTENCE: Final = re.compile(r"(?<=[a-z0-9\")][.?!]) +(?=[A-Z\"])")
_PART: Final = re.compile(r", [^,]+(?=, )")
_END: Final = re.compile(r", [^,]{8,}(?=\.$)")
_START: Final = re.compile(r"^((?:In|At|On|During|After|By|Since) [^,]{3,40}), (.+)\.$")
_NAME: Final = re.compile(r"(?<=[a-z] )(?:[A-Z][a-z]+ ?)+\b")
_FIGURE: Final = re.compile(r"\b\d{1,3}(?:,\d{3})*(?:\.\d+)?\b|\b1\d{3}\b|\b20\d\d\b")
_IS: Final = re.compile(r"\b(was|were|is|are|has|had|would|could)\b")
_SAID: Final = {
    "large": "sizeable",
    "began": "commenced",
    "built": "put up",
    "called": "named",
    "used": "utilised",
    "about": "around",
    "also": "as well",
    "many": "a lot of",
    "often": "regularly",
    "first": "earliest",
    "important": "key",
    "however": "still",
    "because": "as",
    "became": "turned into",
    "including": "among them",
    "during": "in the course of",
    "found": "discovered",
    "made": "produced",
    "several": "a number of",
    "high": "elevated",
    "show": "demonstrate",
    "shows": "demonstrates",
    "most": "the bulk of",
    "areas": "regions",
}
_LONG_WRONG: Final = 0.2
_SHORT_WRONG: Final = 0.75
_EACH: Final = 20


class Summary(NamedTuple):
    """A text, an answer about it, and whether the text does not support it."""

    context: str
    text: str
    unsupported: bool


def articles(folder: Path) -> list[tuple[str, str]]:
    """Return title and text of the English articles of XQuAD, whose paragraphs are put together again."""
    with gzip.open(folder / "retrieval" / "xquad" / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["lang"] == "en"]
    titles = dict.fromkeys(row["title"] for row in rows)
    return [
        (title, " ".join(row["text"].strip() for row in rows if row["title"] == title)) for title in titles
    ]


def of_articles(some: Sequence[tuple[str, str]], each: int = _EACH) -> Iterator[Summary]:
    """Yield ``each`` summaries made by rule of each article, half of them long."""
    draw = random.Random("judge summaries")
    split = [(title, text, _sentences(text)) for title, text in some]
    for number, (title, text, own) in enumerate(split):
        others = [(name, there) for at, (name, _, there) in enumerate(split) if at != number]
        for turn in range(each):
            foreign_title, foreign = draw.choice(others)
            if turn % 2:
                wrong = draw.random() < _LONG_WRONG
                yield Summary(text, _long(own, wrong, draw), wrong)
            else:
                wrong = draw.random() < _SHORT_WRONG
                named = [line.replace(foreign_title.replace("_", " "), title) for line in foreign]
                yield Summary(text, _short(own, named, wrong, draw), wrong)


def of_abstracts(path: Path, most: int = 1_600) -> Iterator[Summary]:
    """Yield each abstract of SciFact with its own title, or with that of the abstract whose title is most alike.

    Titles are what authors wrote: free sentences about the whole.
    """
    with path.open(encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if len(row["text"].split()) > 100][:most]
    words = [set(re.findall(r"[a-z]{4,}", row["title"].lower())) for row in rows]
    for number, row in enumerate(rows):
        if number % 2 == 0:
            yield Summary(row["text"], row["title"], False)
            continue
        alike = max(
            (at for at in range(len(rows)) if at != number),
            key=lambda at: len(words[at] & words[number]) / (3 + len(words[at])),
        )
        yield Summary(row["text"], rows[alike]["title"], True)


def of_documents(rows: Sequence[dict[str, str]]) -> Iterator[Summary]:
    """Yield the true summaries of SummEdits, and each again with one more sentence, of another document's summary."""
    draw = random.Random("judge documents")
    true = [row for row in rows if row["label"] == "supports"]
    for row in true:
        others = [other for other in true if other["source"] != row["source"]]
        sentences = _sentences(row["statement"])
        foreign = draw.choice(_sentences(draw.choice(others)["statement"]))
        sentences.insert(draw.randint(0, len(sentences)), foreign)
        yield Summary(row["source"], row["statement"], False)
        yield Summary(row["source"], " ".join(sentences), True)


def _sentences(text: str) -> list[str]:
    return [one for one in _SENTENCE.split(" ".join(text.split())) if len(one.split()) > 5]


def _long(own: Sequence[str], wrong: bool, draw: random.Random) -> str:
    """Return some sentences of the article in their order, cut, one of them made wrong if asked for."""
    places = sorted(draw.sample(range(len(own)), min(len(own), draw.randint(2, 4))))
    made = [_cut(own[place], draw) for place in places]
    if wrong:
        at = draw.randrange(len(made))
        made[at] = _exchanged(made[at], own, draw)
    return " ".join(made)


def _cut(sentence: str, draw: random.Random) -> str:
    for pattern in draw.sample((_PART, _END, re.compile(r" \([^)]*\)")), 2):
        sentence = pattern.sub("", sentence, count=1)
    return sentence


def _exchanged(sentence: str, own: Sequence[str], draw: random.Random) -> str:
    """Return the sentence with a name, a number or its second half from another place of the same article."""
    everything = " ".join(own)
    ways = [_NAME, _FIGURE]
    draw.shuffle(ways)
    for pattern in ways:
        here = pattern.findall(sentence)
        there = sorted(set(pattern.findall(everything)) - set(here))
        if here and there:
            return sentence.replace(draw.choice(here), draw.choice(there))
    return (
        _halved(sentence, draw.choice(own)) if draw.random() < 0.5 else _IS.sub(r"\1 not", sentence, count=1)
    )


def _halved(one: str, other: str) -> str:
    first, second = one.split(), other.split()
    return " ".join((*first[: len(first) // 2], *second[len(second) // 2 :]))


def _short(own: Sequence[str], foreign: Sequence[str], wrong: bool, draw: random.Random) -> str:
    """Return one sentence in other words; of another article, or half of it, if it is to be wrong."""
    line = _free(_cut(draw.choice(own), draw))
    if not wrong:
        return line
    other = _free(_cut(draw.choice(foreign), draw))
    names = _NAME.findall(" ".join(own))
    way = draw.randrange(3)
    if way == 0:
        return other
    if way == 1 and names:
        return _NAME.sub(lambda _: draw.choice(names), other)
    return _halved(line, other)


def _free(sentence: str) -> str:
    start = _START.match(sentence)
    if start:
        moved = start[1][0].lower() + start[1][1:]
        sentence = f"{start[2][0].upper()}{start[2][1:]} {moved}."
    return re.sub(r"[a-z]+", lambda word: _SAID.get(word[0], word[0]), sentence)
