"""Fine-tune the encoder for names on one core, and write the trained parameters.

python -m app.engines.pii.transformer.training.train DATA_FOLDER OUT.npz [--rounds 3] [--bfloat16]
"""

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from app.engines.encoder.export.source import installed_source, read_weights
from app.engines.encoder.model import TOKENIZER, WEIGHTS
from app.engines.pii.transformer.pieces import Cutter
from app.engines.pii.transformer.training.corpus import build
from app.engines.pii.transformer.training.encoding import (
    IGNORED,
    Blur,
    Encoded,
    batch,
    batches,
    encode,
    packed,
)
from app.engines.pii.transformer.training.network import Network

_PIECES_A_BATCH = 2_048
_WARM = 0.06
_DECAY = 0.01
_DROPOUT = 0.1
_PACKED = 0.4
_AVERAGE_KEEPS = 0.98
_SEED = 1
_REPORT_EVERY = 50
_NEW = ("out", "out_bias", "outlines", "lists")


@dataclass(frozen=True, slots=True)
class Plan:
    """Say how long to train, in rounds over the corpus, and how fast at most: old parameters and new ones."""

    rounds: float
    rate: float
    new_rate: float


def train(
    network: Network, texts: list[Encoded], plan: Plan, report: Callable[[dict[str, Any]], None]
) -> None:
    """Train; ``report`` gets the averaged parameters every now and then."""
    chance = random.Random(_SEED)
    optimizer = _optimizer(network, plan)
    average = {name: value.detach().clone() for name, value in network.parameters.items()}
    chosen: list[list[Encoded]] = []
    total = step = 0
    losses: list[float] = []
    began = time.monotonic()
    while not total or step < total:
        if not chosen:
            chosen = batches(packed(texts, _PACKED, chance), _PIECES_A_BATCH, chance)
            total = total or int(plan.rounds * len(chosen))
        done = step / total
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * min(done / _WARM + 0.01, max(0.01, 1 - done))
        losses.append(_step(network, optimizer, batch(chosen.pop(), chance, Blur())))
        step += 1
        keep = min(_AVERAGE_KEEPS, step / (step + 50))
        with torch.no_grad():
            for name, value in average.items():
                value.lerp_(network.parameters[name], 1 - keep)
        if step % _REPORT_EVERY == 0 or step == total:
            report(average)
            loss = sum(losses[-_REPORT_EVERY:]) / len(losses[-_REPORT_EVERY:])
            print(f"step {step} of {total}, loss {loss:.4f}, {time.monotonic() - began:.0f} s", flush=True)


def _optimizer(network: Network, plan: Plan) -> Any:
    new = [network.parameters[name] for name in _NEW]
    old = [value for name, value in network.parameters.items() if name not in _NEW]
    groups = [
        {"params": old, "peak": plan.rate, "weight_decay": _DECAY},
        {"params": new, "peak": plan.new_rate, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=plan.rate, betas=(0.9, 0.98))


def _step(network: Network, optimizer: Any, given: Any) -> float:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=network.half):
        scores = network.scores(given, _DROPOUT)
    loss = torch.nn.functional.cross_entropy(
        scores.float(), given.tags, ignore_index=IGNORED, label_smoothing=0.02
    )
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters.values(), 1.0)
    optimizer.step()
    return float(loss.detach())


def store(path: Path, parameters: dict[str, Any], lists: dict[int, int]) -> None:
    """Write the trained parameters and the word lists that they were trained with."""
    keys = sorted(lists)
    partial = path.with_suffix(".part.npz")
    np.savez(
        partial,
        list_keys=np.array(keys, np.uint32),
        list_bits=np.array([lists[key] for key in keys], np.uint8),
        **{name: value.detach().numpy() for name, value in parameters.items()},
    )
    partial.replace(path)


def read(path: Path) -> tuple[dict[str, Any], dict[int, int]]:
    """Return the parameters and the word lists that `store` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    lists = dict(zip(arrays.pop("list_keys").tolist(), arrays.pop("list_bits").tolist(), strict=True))
    return arrays, lists


def main() -> None:
    """Run the whole recipe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder that holds train.jsonl")
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=float, default=3)
    parser.add_argument("--rate", type=float, default=1.5e-4)
    parser.add_argument("--new-rate", type=float, default=1e-3)
    parser.add_argument("--start", type=Path, help="go on from parameters that were trained before")
    parser.add_argument(
        "--bfloat16", action="store_true", help="products in 16 bits, on processors that are faster so"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    corpus = build(options.data / "train.jsonl", _SEED)
    network = Network(read_weights(installed_source()), _SEED, half=options.bfloat16)
    lists = corpus.lists
    if options.start:
        parameters, lists = read(options.start)
        for name, value in parameters.items():
            network.parameters[name] = torch.as_tensor(value).requires_grad_()
    cutter = Cutter(Tokenizer.from_file(str(WEIGHTS / TOKENIZER)), lists)
    texts = [part for example in corpus.training for part in encode(example, cutter) if part.tags]
    print(f"{len(texts)} texts, {sum(text.size for text in texts)} word-pieces", flush=True)
    plan = Plan(options.rounds, options.rate, options.new_rate)
    train(network, texts, plan, lambda averaged: store(options.out, averaged, lists))


if __name__ == "__main__":
    main()
