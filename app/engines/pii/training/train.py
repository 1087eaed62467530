"""Build the training text, train the network on one core, and write the weights.

python -m app.engines.pii.training.train DATA_FOLDER OUT.npz [--rounds 6]
"""

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from app.engines.pii.tagger import Tagger
from app.engines.pii.training.corpus import Corpus, build_corpus
from app.engines.pii.training.evaluate import evaluate
from app.engines.pii.training.examples import Example, Span
from app.engines.pii.training.network import IGNORED, Encoded, Network, Vocabulary, batch, store
from app.engines.pii.words import Gazetteer

_TOKENS_A_BATCH = 4_000
_LEARNING_RATE = 2e-3
_LAST_RATE = 0.02
_AVERAGE_EVERY = 10
_AVERAGE_KEEPS = 0.95
_SEED = 1

Report = Callable[[str, dict[str, Any]], None]


@dataclass(slots=True)
class Average:
    """Keep a running mean of the parameters, which is steadier than any single state."""

    parameters: dict[str, Any]

    def follow(self, current: dict[str, Any], keep: float) -> None:
        """Move towards the current parameters."""
        with torch.no_grad():
            for name, value in self.parameters.items():
                value.mul_(keep).add_(current[name], alpha=1 - keep)


def _batches(texts: list[Encoded], chance: random.Random) -> list[list[Encoded]]:
    chance.shuffle(texts)
    batches: list[list[Encoded]] = []
    size = _TOKENS_A_BATCH
    for text in texts:
        if size >= _TOKENS_A_BATCH:
            batches.append([])
            size = 0
        batches[-1].append(text)
        size += len(text.words)
    return batches


def train(examples: Sequence[Example], gazetteer: Gazetteer, rounds: int, report: Report) -> None:
    """Train for `rounds` over the examples; `report` gets a line and the averaged parameters after each."""
    torch.set_num_threads(1)
    chance = random.Random(_SEED)
    vocabulary = Vocabulary(gazetteer)
    texts = [encoded for example in examples if (encoded := vocabulary.encode(example)).words]
    network = Network(_SEED)
    average = Average({name: value.detach().clone() for name, value in network.parameters.items()})
    optimizer = torch.optim.Adam(network.parameters.values(), lr=_LEARNING_RATE)
    step = 0
    for number in range(1, rounds + 1):
        batches = _batches(texts, chance)
        losses = []
        for index, chosen in enumerate(batches):
            done = (number - 1 + index / len(batches)) / rounds
            for group in optimizer.param_groups:
                group["lr"] = _LEARNING_RATE * max(_LAST_RATE, 1 - done)
            losses.append(_step(network, optimizer, chosen, vocabulary, chance))
            step += 1
            if step % _AVERAGE_EVERY == 0:
                average.follow(network.parameters, min(_AVERAGE_KEEPS, step / (step + 100)))
        report(f"round {number} of {rounds}, loss {sum(losses) / len(losses):.4f}", average.parameters)


def _step(
    network: Network, optimizer: Any, texts: list[Encoded], vocabulary: Vocabulary, chance: random.Random
) -> float:
    given = batch(texts, vocabulary, chance)
    loss = torch.nn.functional.cross_entropy(
        network.scores(given), given.tags, ignore_index=IGNORED, label_smoothing=0.02
    )
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters.values(), 2.0)
    optimizer.step()
    return float(loss.detach())


def _development(weights: Path, corpus: Corpus) -> str:
    with weights.open("rb") as stored:
        tagger = Tagger(stored)

    def tag(text: str) -> list[Span]:
        return [(span.start, span.end, span.label) for span in tagger(text)]

    lines = []
    for name, examples in corpus.development.items():
        person = evaluate(examples, tag)["PERSON"]
        lines.append(f"{name} {person['strict'].figures()[2]:.3f} {person['partial'].figures()[2]:.3f}")
    return ", ".join(lines)


def main() -> None:
    """Run the whole recipe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "data", type=Path, help="the folder that holds train.jsonl (README.md says what it is made of)"
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    corpus = build_corpus(options.data / "train.jsonl", _SEED)
    print(f"{len(corpus.training)} texts", flush=True)

    def report(line: str, parameters: dict[str, Any]) -> None:
        store(options.out, parameters, corpus.gazetteer)
        print(f"{line}; PERSON F1, strict and partial: {_development(options.out, corpus)}", flush=True)

    train(corpus.training, corpus.gazetteer, options.rounds, report)


if __name__ == "__main__":
    main()
