"""Names: how many people are hidden in each way of writing, what is taken for one, and which language is seen."""

import gzip
import json
import os
import random
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.languages import language_of, warnings_for
from app.engines.pii.search.analyzer import Analyzer
from tests.benchmarks.judge.intervals import rate, share
from tests.benchmarks.judge.secrets import OPEN_DATA
from tests.benchmarks.speed.report import table

EACH: Final = 1_000
"""Texts of a class."""
_FOLDER: Final = Path(__file__).parent
_EPONYMS: Final = (
    "Babinski Euler Kalman Noether Parkinson Fourier Poisson Pearson"
    " Hodgkin Laplace Weibull Gauss Romberg Crohn"
)
_PRODUCTS: Final = (
    "Ada Hugo Julia Jenkins Gatsby Jekyll Alexa Hermes Flink Cassandra Django Ruby Laravel Athena"
)
_SHOPS: Final = (
    "Aldi|Macy's|Wendy's|Walgreens|Trader Joe's|Marks & Spencer|Dick's Sporting Goods|Barnes & Noble|Harrods"
    "|Lloyds Bank|Morgan Stanley|Wells Fargo|Johnson & Johnson|Kate Spade"
)
_STREETS: Final = (
    "Harley Street|Lafayette Square|Franklin Avenue|Martin Luther King Boulevard|Victoria Road|Baker Street"
    "|Lincoln Park|Madison Avenue|Churchill Way|Washington Bridge"
)
_OTHERS: Final = {
    "E": _EPONYMS.split(),
    "P": _PRODUCTS.split(),
    "S": _SHOPS.split("|"),
    "T": _STREETS.split("|"),
}
_OPEN: Final = {
    "tr": ("turkish_wiki", ("tr",)),
    "id": ("indonlu_nergrit", ("id",)),
    "fi": ("turku_fi", ("fi",)),
    "hu": ("nerkor_hu", ("hu",)),
    "sv": ("swedish_klintan", ("sv",)),
    "ro": ("ronec_ro", ("ro",)),
    "no": ("uner", ("nb", "nn")),
    "da": ("uner", ("da",)),
    "pt": ("uner", ("pt",)),
}
"""The set of each language, and the codes that its rows have."""
_WORDS: Final = (12, 60)
_MAIL_WORDS: Final = (15, 25)
_SENTENCES: Final = 800

Place = tuple[int, int]


class Item(NamedTuple):
    """A text of the test part, its class, and where people stand in it."""

    group: str
    text: str
    people: list[Place]


def items(each: int = EACH) -> Iterator[Item]:
    """Yield ``each`` texts of every class, with names drawn from the lists."""
    given, last = _lists()
    for group, ways in _groups("name_ways.txt").items():
        draw = random.Random(f"judge {group}")
        for number in range(each):
            way = ways[number % len(ways)].replace("\\n", "\n").replace("\\t", "\t")
            yield Item(group, *_filled(way, draw, given, last))


def _lists() -> tuple[list[str], list[str]]:
    lines = (_FOLDER / "name_lists.txt").read_text(encoding="utf-8").splitlines()
    given, last = (
        next(line for line in lines if line.startswith(key)).split()[1:] for key in ("given:", "last:")
    )
    return given, last


def _groups(file: str) -> dict[str, list[str]]:
    """Return the lines below each heading ``== ...``; what stands above the first says what the file is."""
    parts = re.split(r"^== (.*)\n", (_FOLDER / file).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {title: body.split("\n")[:-1] for title, body in zip(parts[::2], parts[1::2], strict=True)}


def _filled(
    way: str, draw: random.Random, given: Sequence[str], last: Sequence[str]
) -> tuple[str, list[Place]]:
    """Return a text and the places of its people."""
    firsts, lasts = draw.sample(given, 4), draw.sample(last, 4)
    values = {"M": firsts[3], "N": lasts[3], "J": draw.choice("ABCDEGHJKLMRST")}
    for mark, first, family in zip(("", "2", "3"), firsts, lasts, strict=False):
        values |= {f"F{mark}": first, f"L{mark}": family, f"I{mark}": first[0]}
    values |= {key: draw.choice(choices) for key, choices in _OTHERS.items()}
    text, people = "", []
    for piece in re.split(r"(<[^<>]*\{[^<>]*>)", way):
        person = piece.startswith("<") and "{" in piece
        filled = re.sub(r"\{(\w\d?)\}", lambda hit: values[hit[1]], piece.strip("<>") if person else piece)
        if person:
            filled = (
                filled[1:].lower() if filled[0] == "_" else filled[1:].upper() if filled[0] == "^" else filled
            )
            people.append((len(text), len(text) + len(filled)))
        text += filled
    return text, people


def finder(names: str = "fast") -> Callable[[str, bool], list[tuple[int, int, str]]]:
    """Return a function from a text, and whether *strict*, to the findings of the detection as it ships."""
    analyzer = Analyzer()

    def find(text: str, strict: bool) -> list[tuple[int, int, str]]:
        options = DetectionOptions(strict=strict, names=names)  # type: ignore[arg-type]
        return [(span.start, span.end, span.label) for span in analyzer.analyze(text, options)]

    return find


def tables(smoke: bool = False) -> Iterator[str]:
    """Yield the tables; where ``smoke``, of a small part of the texts."""
    find = finder()
    yield _by_class(find, items(24 if smoke else EACH))
    yield _by_language(find, 20 if smoke else _SENTENCES)
    yield _languages(20 if smoke else _SENTENCES)


def _by_class(find: Callable[[str, bool], list[tuple[int, int, str]]], texts: Iterator[Item]) -> str:
    hidden, strict, false = defaultdict(list), defaultdict(list), defaultdict(list)
    for item in texts:
        standard = find(item.text, False)
        loose = find(item.text, True) if item.people else []
        hidden[item.group] += [_is_covered(item.text, person, standard) for person in item.people]
        strict[item.group] += [_is_covered(item.text, person, loose) for person in item.people]
        false[item.group].append(
            any(
                label == "PERSON" and not any(start < high and low < end for low, high in item.people)
                for start, end, label in standard
            )
        )
    rows = [
        (
            group,
            len(wrong),
            len(hidden[group]),
            share(hidden[group]) if hidden[group] else "",
            share(strict[group]) if strict[group] else "",
            share(wrong),
        )
        for group, wrong in false.items()
    ]
    return table(
        "People hidden to the last letter, by the way they are written",
        ("class", "texts", "people", "standard", "strict", "texts with a false person, standard"),
        rows,
        "Under any label. The fast tagger; names, ways and products written for this table.",
    )


def _is_covered(text: str, person: Place, spans: Sequence[tuple[int, int, str]]) -> bool:
    covered = {place for start, end, _ in spans for place in range(start, end)}
    return all(place in covered for place in range(*person) if text[place].isalnum())


def sentences(language: str, count: int, words: tuple[int, int] = _WORDS) -> list[tuple[str, list[Place]]]:
    """Return sentences of the test part of an open set, and the places of people in them; empty without the sets."""
    folder = os.environ.get(OPEN_DATA)
    if not folder or language not in _OPEN:
        return []
    name, codes = _OPEN[language]
    with gzip.open(Path(folder, "ner", name, "test.jsonl.gz"), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if row["lang"] in codes and words[0] <= len(row["text"].split()) <= words[1]]
    rows.sort(key=lambda row: zlib.crc32(row["text"].encode()))
    return [
        (row["text"], [(start, end) for start, end, label in row["spans"] if label == "PERSON"])
        for row in rows[:count]
    ]


def mails() -> dict[str, list[str]]:
    """Return short mails without names, by language."""
    return {
        language: [" ".join(parts) for parts in product(*(line.split("|") for line in lines))]
        for language, lines in _groups("name_mails.txt").items()
    }


def _by_language(find: Callable[[str, bool], list[tuple[int, int, str]]], count: int) -> str:
    rows = []
    for language, texts in mails().items():
        some = texts[:: max(1, len(texts) // count)]
        rows.append((language, "mails without names", *_people(find, [(text, []) for text in some])))
        if labelled := sentences(language, count):
            rows.append((language, f"{_OPEN[language][0]}, test", *_people(find, labelled)))
    return table(
        "False people by language, standard",
        ("language", "texts", "words", "people", "found at least in part", "false people in 1,000 words"),
        rows,
        "A finding is false where it touches no person of the set.",
    )


def _people(
    find: Callable[[str, bool], list[tuple[int, int, str]]], texts: Sequence[tuple[str, list[Place]]]
) -> tuple[int, int, str, str]:
    false, words, hits = [], [], []
    for text, people in texts:
        spans = [span for span in find(text, False) if span[2] == "PERSON"]
        false.append(
            sum(not any(start < high and low < end for low, high in people) for start, end, _ in spans)
        )
        words.append(len(text.split()))
        hits += [any(start < high and low < end for start, end, _ in spans) for low, high in people]
    return sum(words), len(hits), share(hits) if hits else "", rate(false, words, 1_000)


def _languages(count: int) -> str:
    rows = []
    for language, texts in mails().items():
        sets = {"mails": texts[:: max(1, len(texts) // count)]}
        sets["open set"] = [text for text, _ in sentences(language, count, _MAIL_WORDS)]
        for title, some in sets.items():
            if some:
                seen = [language_of(text) for text in some]
                warned = [bool(warnings_for([text], "auto")) for text in some]
                right = [code == language for code in seen]
                unknown = [code is None for code in seen]
                rows.append((language, title, len(some), share(right), share(unknown), share(warned)))
    return table(
        "Language of short texts",
        ("language", "texts", "number", "recognized", "unknown", "warned about"),
        rows,
        "Mails of about 20 words, written for this table; sentences of 15 to 25 words of the open sets.",
    )
