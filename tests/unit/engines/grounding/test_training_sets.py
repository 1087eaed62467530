"""The sets of the grounding judge's recipe: summaries made by rule, and how the published sets are read."""

import gzip
import json
import random
import re

import pytest

from app.engines.grounding.training.sets import training_sets
from app.engines.grounding.training.summaries import as_written, reworded, sentences_in, shortened, summaries

TOWNS = ("Halden", "Orrin", "Velm", "Castor", "Tarn", "Belmont")


def article(town: str) -> str:
    year = 1800 + len(town) * 13
    return (
        f"The council of {town} met in {year} because the harbour (built by monks) was too small for the new ships. "
        f"In the next spring, the mayor of {town} bought a piece of land near the river. "
        f"Many children of {town} were ill, and the doctor asked for a hospital in the market street. "
        f"The bridge, which was made of wood, was rebuilt in {year + 9} by the engineer Ruth Adler. "
        f"Most people were proud of the tower that the guild of {town} had paid for. "
        f"The railway reached {town} in {year + 30} and increased the trade with the coast."
    )


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_each_article_gives_a_summary_with_support_and_one_without():
    made = summaries([article(town) for town in TOWNS], "seed")
    assert [one.unsupported for one in made] == [False, True] * len(TOWNS)
    assert made == summaries([article(town) for town in TOWNS], "seed")
    assert made != summaries([article(town) for town in TOWNS], "other seed")
    for true, wrong in zip(made[::2], made[1::2], strict=True):
        assert true.article == wrong.article
        assert wrong.text not in true.article


def test_no_name_or_number_of_a_true_summary_is_new():
    for one in summaries([article(town) for town in TOWNS * 30], "seed"):
        if not one.unsupported:
            numbers = set(re.findall(r"\d+", one.text))
            towns = {town for town in TOWNS if town in one.text}
            assert numbers <= words(one.article)
            assert towns <= set(re.findall(r"\w+", one.article))


def test_long_summaries_are_mostly_right_and_short_ones_mostly_wrong():
    made = as_written([article(town) for town in TOWNS * 40], "seed")
    long, short = made[::2], made[1::2]
    assert 0.1 < sum(one.unsupported for one in long) / len(long) < 0.3
    assert 0.65 < sum(one.unsupported for one in short) / len(short) < 0.85
    assert sum(len(one.text) for one in long) > 2 * sum(len(one.text) for one in short)
    for one in long:
        if not one.unsupported:
            assert set(re.findall(r"\d+", one.text)) <= words(one.article)


def test_short_texts_give_no_summaries():
    assert summaries(["Too short.", article("Velm")[:200]], "seed") == []
    assert sentences_in("no capital here at the start of this sentence of words. Short.") == []


@pytest.mark.parametrize("seed", range(8))
def test_a_sentence_is_shortened_and_reworded_in_its_own_sense(seed):
    draw = random.Random(seed)
    sentence = "The bridge, which was made of wood, was rebuilt in 1878 (at last) by the engineer Ruth Adler."
    assert words(shortened(sentence, draw)) <= words(sentence)
    other = reworded("Many children were ill because the harbour was closed.", draw)
    assert {"ill", "closed"} <= words(other)
    assert not words(other) & {"not", "never"}


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = "\n".join(map(json.dumps, rows)).encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def test_the_published_sets_are_read(tmp_path):
    lines(
        tmp_path / "grounding" / "begin_dev.jsonl",
        [{"context": "A cat sat.", "response": "A cat sat.", "unsupported": 0}],
    )
    long = [article(town) * 2 for town in TOWNS]
    table = f"{long[0]} The Human Phenotype Ontology provides the following."
    lines(
        tmp_path / "open" / "retrieval" / "medquad" / "corpus.jsonl.gz",
        [{"text": text} for text in [*long, table, "short"]],
    )
    calls = [f"Sales Agent: This is call {number} about {town}." for number, town in enumerate(TOWNS)]
    lines(
        tmp_path / "open" / "grounding" / "summedits" / "train.jsonl.gz",
        [
            {"source": call, "statement": f"They spoke of {town}. It went well.", "label": label}
            for call, town in zip(calls, TOWNS, strict=True)
            for label in ("supports", "not_supported")
        ],
    )
    tokens = [
        {"text": sentence, "src": "wikigold"} for town in TOWNS for sentence in sentences_in(article(town))
    ]
    lines(tmp_path / "ner" / "train.jsonl", [*tokens, {"text": "a tweet", "src": "btc"}])

    begin, medquad, written, wikigold, edits = training_sets(tmp_path)

    assert [(one.response, one.unsupported) for one in begin.examples] == [("A cat sat.", False)]
    assert len(medquad.examples) == len(written.examples) == 2 * len(TOWNS)
    assert {one.context for one in wikigold.examples} == {
        " ".join(token["text"] for token in tokens[at : at + 12]) for at in (0, 12)
    }
    assert len(edits.examples) == 2 * len(TOWNS)
    for one, town in zip(edits.examples[::2], TOWNS, strict=True):
        assert one.response == f"They spoke of {town}. It went well."
    assert [one.unsupported for one in edits.examples] == [False, True] * len(TOWNS)
    for one in (begin, medquad, written, wikigold, edits):
        assert one.weight > 0
        assert set(one.source) == {"name", "sha256", "licence", "url"}
