"""Write the files of the accurate tagger from trained parameters.

python -m app.engines.pii.transformer.training.export TRAINED.npz DATA_FOLDER OUT
"""

import argparse
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from app.engines.encoder import model as encoder
from app.engines.encoder.export.quantization import quantized_rows
from app.engines.encoder.export.source import Array, installed_source, read_weights
from app.engines.pii.training.natural import natural
from app.engines.pii.training.synthetic import synthetic
from app.engines.pii.transformer.model import LISTS, MANIFEST, MODEL
from app.engines.pii.transformer.pieces import Cutter
from app.engines.pii.transformer.training.calibration import Watched, ranges
from app.engines.pii.transformer.training.encoding import NOTHING_HIDDEN, batch, encode, packed
from app.engines.pii.transformer.training.graph import Ranges, build, layers

LICENCE = "Apache-2.0"
RECIPE = "app/engines/pii/transformer/training"
_MEASURED = 150
_SEED = 1
SETS = "WNUT-17, Broad Twitter Corpus, wikigold, CrossNER (train parts)"


def export(trained: Path, natural_file: Path, out: Path) -> None:
    """Write the model in 8 bits, its word lists and their manifest."""
    with np.load(trained, allow_pickle=False) as stored:
        parameters: dict[str, Array] = {name: stored[name] for name in stored.files}
    keys, bits = parameters.pop("list_keys"), parameters.pop("list_bits")
    out.mkdir(parents=True, exist_ok=True)
    ranges = measured(parameters, dict(zip(keys.tolist(), bits.tolist(), strict=True)), natural_file)
    (out / MODEL).write_bytes(build(parameters, ranges))
    np.savez_compressed(out / LISTS, keys=keys, bits=bits)
    data = [
        {
            "name": SETS,
            "sha256": _digest(natural_file),
            "licence": "CC BY 4.0, MIT",
            "url": "see app/engines/pii/training",
        },
        {"name": "the sentence encoder", "sha256": encoder.checked(encoder.WEIGHTS), "licence": LICENCE},
    ]
    manifest = {name: _entry(out / name, data) for name in (MODEL, LISTS)}
    manifest[MODEL]["words"] = {"encoder": encoder.checked(encoder.WEIGHTS), **words_in(encoder.WEIGHTS)}
    (out / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def measured(parameters: dict[str, Array], lists: dict[int, int], natural_file: Path) -> Ranges:
    """Return the ranges of the inputs of each matrix on texts that were trained on."""
    network = Watched(read_weights(installed_source()), 0, layers(parameters))
    network.parameters = {name: torch.as_tensor(value) for name, value in parameters.items()}
    cutter = Cutter(Tokenizer.from_file(str(encoder.WEIGHTS / encoder.TOKENIZER)), lists)
    examples = [*synthetic(_MEASURED, _SEED), *natural(natural_file, _SEED).training[:_MEASURED]]
    chance = random.Random(_SEED)
    texts = packed([part for one in examples for part in encode(one, cutter)], 1.0, chance)
    return ranges(network, (batch([text], chance, NOTHING_HIDDEN) for text in texts))


def words_in(folder: Path) -> dict[str, int]:
    """Return how many words the encoder knows, and where their values and scales begin in its file."""
    values, scales = quantized_rows(read_weights(installed_source())["embeddings.word_embeddings.weight"])
    data = (folder / encoder.MODEL).read_bytes()
    return {
        "rows": len(values),
        "values": data.index(values.tobytes()),
        "scales": data.index(scales.tobytes()),
    }


def _entry(file: Path, data: list[dict[str, str]]) -> dict[str, Any]:
    size = file.stat().st_size
    return {"sha256": _digest(file), "bytes": size, "licence": LICENCE, "recipe": RECIPE, "data": data}


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trained", type=Path)
    parser.add_argument("data", type=Path, help="the folder that holds train.jsonl")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    export(options.trained, options.data / "train.jsonl", options.out)


if __name__ == "__main__":
    main()
