"""Make the weights for other languages than English; README.md says how to run it."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.contracts.moderation import POLICIES
from app.engines.moderation.languages import ABUSE, HARM, TOLD, UNTOLD, language_features, ngrams
from app.engines.moderation.model import Floats
from app.engines.moderation.training.calibrate import knots
from app.engines.moderation.training.descent import SparseRows
from app.engines.moderation.training.examples import own_examples, read_open, read_pairs
from app.engines.moderation.training.fit import Data, crossed, fit_words, label_matrix
from app.engines.moderation.training.open_sets import read_more
from app.engines.moderation.training.other_languages import FOLDER, SETS, Text, open_texts, own_texts
from app.engines.moderation.training.train import RECIPE, SEED, digest, write_manifest
from app.engines.moderation.windows import LONGEST, plain

FOLDS = 5
PENALTY = 1e-5
"""Smaller than for English: most texts are made of short lines, whose words are all that tells."""


ENGLISH = 8_000
"""Harmless English texts that are learned from, so that a foreign word in one of them is no harm."""

LICENCES: Mapping[str, tuple[str, str]] = {
    "germeval18": ("CC-BY-4.0", "github.com/uds-lsv/GermEval-2018-Data"),
    "cold": ("Apache-2.0", "github.com/thu-coai/COLDataset"),
    "multijail": ("MIT", "github.com/DAMO-NLP-SG/multilingual-safety-for-LLMs"),
    "red_instruct": ("Apache-2.0", "github.com/declare-lab/red-instruct"),
    "acebench": ("MIT", "github.com/chenchen0103/ACEBench"),
    "mobie": ("CC-BY-4.0", "github.com/DFKI-NLP/MobIE"),
    "meddocan": ("CC-BY-4.0", "github.com/PlanTL-GOB-ES/SPACCC_MEDDOCAN"),
    "europeana": ("CC0-1.0", "github.com/EuropeanaNewspapers/ner-corpora"),
}
"""Licence and place of publication of each open set."""

WEIGHTS: Mapping[str, float] = {
    "own": 1.0,
    "twin": 1.0,
    "germeval18": 0.6,
    "cold": 0.25,
    "multijail": 3.0,
    "red_instruct": 1.5,
    "acebench": 3.0,
    "mobie": 0.6,
    "meddocan": 0.6,
    "europeana": 0.4,
    "english": 0.5,
}
"""How much a text counts, by its source."""

SHARES = ((0.12, 0.06, 0.024, 0.005), (0.06, 0.03, 0.012, 0.0025))
"""Share of the harmless texts of a language that the marks of the score let through as flags, by ``HARM``.

Deeds take more: comments and answers to hate, which people write much more of, are flagged as abuse.
"""

UNTOLD_SHARES = ((0.06, 0.03, 0.012, 0.0025), (0.06, 0.03, 0.012, 0.0025))
"""The same where the language cannot be told: these flags come on top of those of the English classifiers."""

TRAFFIC: Mapping[str, float] = {"own": 0.6, "twin": 0.03, "english": 0.5, "germeval18": 0.3, "cold": 0.3}
"""How much of the harmless traffic a source is, where it is there; other sources share what is left."""


def texts_of(data: Path, folder: Path, seed: int) -> list[Text]:
    """Return all that is learned from, each text once."""
    found = [text for code in TOLD for text in own_texts(code, seed)]
    found += open_texts(folder)
    pairs = [pair for pair in read_pairs() if not pair.held_out]
    english = [
        *read_open(data / "train.jsonl"),
        *read_more(folder / "moderation"),
        *own_examples(pairs, seed),
    ]
    harmless = [one for one in english if all(label == 0 for label in one.labels.values())]
    chosen = np.random.default_rng(seed).permutation(len(harmless))[:ENGLISH]
    found += [
        Text(harmless[number].text, harmless[number].labels, "en", "english", harmless[number].group)
        for number in sorted(chosen.tolist())
    ]
    return list({text.text: text for text in reversed(found) if plain(text.text).strip()}.values())[::-1]


def as_data(texts: Sequence[Text], seed: int) -> Data:
    """Return ``texts`` as matrices; a text longer than a window is cut to one."""
    numbers: dict[str, int] = {}
    groups = np.array([numbers.setdefault(text.group, len(numbers)) for text in texts])
    made = language_features([plain(text.text)[:LONGEST] for text in texts])
    policies = label_matrix([text.labels for text in texts])
    return Data(
        words=SparseRows(made.columns, made.values, made.starts[:-1], ngrams().width),
        vectors=np.zeros((len(texts), 0), dtype=np.float32),
        labels=np.hstack([policies, harm_of(policies)]),
        weights=np.array([WEIGHTS[text.source] for text in texts], dtype=np.float32),
        groups=np.random.default_rng(seed).permutation(len(numbers))[groups],
    )


def harm_of(policies: Floats) -> Floats:
    """Return the labels of ``HARM`` from those of the policies (texts x policies): 1, 0 or NaN.

    What is harm of one kind says nothing of the other.
    """
    abuse = np.array([policy in ABUSE for policy in POLICIES])
    harmful = (policies == 1).any(axis=1)
    columns = []
    for kind in (~abuse, abuse):
        mine = policies[:, kind]
        known = (mine == 1).any(axis=1) | (~harmful & (mine == 0).all(axis=1))
        columns.append(np.where(known, (mine == 1).any(axis=1), np.nan))
    return np.stack(columns, axis=1).astype(np.float32)


def traffic(texts: Sequence[Text], language: str) -> NDArray[np.float64]:
    """Return how much each text counts in the harmless traffic of ``language`` (``UNTOLD``: of all)."""
    sources = np.array([text.source for text in texts])
    mine = np.array(
        [
            all(label != 1 for label in text.labels.values()) and language in {text.language, UNTOLD}
            for text in texts
        ]
    )
    shares = {source: TRAFFIC.get(source, 0.1) for source in sorted(set(sources[mine].tolist()))}
    weights = np.zeros(len(texts))
    for source, share in shares.items():
        rows = mine & (sources == source)
        weights[rows] = share / int(rows.sum())
    total: NDArray[np.float64] = weights / weights.sum()
    return total


def all_knots(texts: Sequence[Text], logits: Floats) -> Floats:
    """Return the logits at the marks for each of ``(*TOLD, UNTOLD)``: languages x kinds of harm x marks."""
    found = []
    for language in (*TOLD, UNTOLD):
        shares = UNTOLD_SHARES if language == UNTOLD else SHARES
        harmless = traffic(texts, language)
        found.append(
            np.concatenate(
                [knots(logits[:, [kind]], harmless, shares[kind]) for kind in range(len(HARM))], axis=0
            )
        )
    return np.stack(found)


def described(weights: Path, folder: Path, data: Path) -> dict[str, Any]:
    """Return what the weights are and of what they were made: open sets in ``folder``, ``data``, texts of ours."""
    return {
        weights.name: {
            "sha256": digest(weights),
            "bytes": weights.stat().st_size,
            "licence": "Apache-2.0",
            "recipe": RECIPE,
            "data": [
                *(
                    {
                        "name": f"{one.source} in {Path(one.file).name}.jsonl.gz",
                        "sha256": digest(folder / f"{one.file}.jsonl.gz"),
                        "licence": LICENCES[one.source][0],
                        "url": LICENCES[one.source][1],
                    }
                    for one in SETS
                ),
                {"name": "harmless English texts of the sets of moderation.npz", "sha256": digest(data)}
                | {"licence": "MIT, Apache-2.0, CC-BY-4.0"},
                *(
                    {"name": f"{code}.txt", "sha256": digest(FOLDER / f"{code}.txt"), "licence": "Apache-2.0"}
                    for code in TOLD
                ),
            ],
        }
    }


def main() -> None:
    """Train and write the weights and, beside them, what they are into the manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a folder with train.jsonl")
    parser.add_argument("more", type=Path, help="the folder of the open sets")
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    texts = texts_of(given.data, given.more, SEED)
    data = as_data(texts, SEED)
    by_others = crossed(replace(data, labels=data.labels[:, len(POLICIES) :]), FOLDS, PENALTY)
    words, bias = fit_words(data, PENALTY)
    np.savez_compressed(
        given.output, words=words.astype(np.float16), words_bias=bias, knots=all_knots(texts, by_others)
    )
    write_manifest(given.output, described(given.output, given.more, given.data / "train.jsonl"))


if __name__ == "__main__":
    main()
