"""Build the training text, train the network on one core, and write the weights.

python -m app.engines.pii.training.train DATA_FOLDER OPEN_FOLDER OUT.npz [--rounds 5] [--taught LESSONS.jsonl ...]
"""

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from app.engines.pii.names.tagger import Tagger
from app.engines.pii.training.corpus import SEED, Corpus, build_corpus
from app.engines.pii.training.evaluate import evaluate
from app.engines.pii.training.examples import Span
from app.engines.pii.training.network import Encoded, Network, Vocabulary, batch, loss, restore, store
from app.engines.pii.training.taught import read_lessons
from app.engines.pii.training.vectors import Table, build_table

_TOKENS_A_BATCH = 5_000
_LEARNING_RATE = 2e-3
_CONTINUED_RATE = 1e-3
_LAST_RATE = 0.02
_AVERAGE_EVERY = 10
_AVERAGE_KEEPS = 0.97
_GATE_SAMPLE = 200
_GATE_LOSES = 0.003
_LIKELY = 0.5

Parameters = dict[str, Any]

Report = Callable[[str, Parameters, float], None]


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


def train(network: Network, corpus: Corpus, table: Table, rounds: int, rate: float, report: Report) -> None:
    """Train for `rounds` over the corpus; `report` gets a line, the averaged parameters and the gate's shift."""
    torch.set_num_threads(1)
    chance = random.Random(SEED)
    vocabulary = Vocabulary(corpus.gazetteer, table)
    lessons = corpus.lessons
    encoded = [vocabulary.encode(example, lessons.get(example.text)) for example in corpus.training]
    texts = [text for text in encoded if text.words]
    vocabulary.describe()
    average = Average({name: value.detach().clone() for name, value in network.parameters.items()})
    optimizer = torch.optim.Adam(network.parameters.values(), lr=rate, fused=True)
    step = 0
    for number in range(1, rounds + 1):
        batches = _batches(texts, chance)
        losses = []
        for index, chosen in enumerate(batches):
            done = (number - 1 + index / len(batches)) / rounds
            for group in optimizer.param_groups:
                group["lr"] = rate * max(_LAST_RATE, 1 - done)
            losses.append(_step(network, optimizer, chosen, vocabulary, chance))
            step += 1
            if step % _AVERAGE_EVERY == 0:
                average.follow(network.parameters, min(_AVERAGE_KEEPS, step / (step + 100)))
        shift = _gate_shift(Network(SEED, table, average.parameters), batches[:_GATE_SAMPLE], vocabulary)
        report(f"round {number} of {rounds}, loss {sum(losses) / len(losses):.4f}", average.parameters, shift)


def _gate_shift(network: Network, batches: Sequence[list[Encoded]], vocabulary: Vocabulary) -> float:
    """Return what to add to the gate, so that of the tokens that the network takes for names it loses one in 1,000."""
    chance = random.Random(SEED)
    found = []
    with torch.no_grad():
        for chosen in batches:
            scores, gate = network.scores(batch(chosen, vocabulary, chance), 0.0)
            found.append(gate[scores.softmax(dim=1)[:, 0] < _LIKELY])
    return -float(torch.cat(found).quantile(_GATE_LOSES))


def _step(
    network: Network, optimizer: Any, texts: list[Encoded], vocabulary: Vocabulary, chance: random.Random
) -> float:
    given = batch(texts, vocabulary, chance)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=network.half):
        scores, gate = network.scores(given)
    mistakes = loss(scores.float(), gate.float(), given)
    optimizer.zero_grad()
    mistakes.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters.values(), 2.0)
    optimizer.step()
    return float(mistakes.detach())


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
    parser.add_argument("open", type=Path, help="the folder of the open sets (open/sets.py says which)")
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=1.0, help="of the text, for a short last training")
    parser.add_argument("--rate", type=float, default=_CONTINUED_RATE, help="learning rate behind --start")
    parser.add_argument("--start", type=Path, help="weights of an earlier run to go on from")
    parser.add_argument(
        "--taught", type=Path, nargs="*", default=[], help="lessons of the accurate tagger (see taught.py)"
    )
    parser.add_argument(
        "--bfloat16", action="store_true", help="products in 16 bits, on processors that are faster so"
    )
    options = parser.parse_args()
    corpus = build_corpus(
        options.data / "train.jsonl", options.open, SEED, read_lessons(options.taught), options.share
    )
    if options.start:
        parameters, table = restore(options.start)
        network, rate = Network(SEED, table, parameters), options.rate
    else:
        table = build_table(example.text for example in corpus.training)
        network, rate = Network(SEED, table), _LEARNING_RATE
    network.half = options.bfloat16
    print(f"{len(corpus.training)} texts, {len(table.keys)} words in the table", flush=True)

    def report(line: str, parameters: Parameters, gate_shift: float) -> None:
        store(options.out, parameters, table, corpus.gazetteer, gate_shift)
        print(
            f"{line}, gate {gate_shift:+.2f}; PERSON F1, strict and partial: {_development(options.out, corpus)}",
            flush=True,
        )

    train(network, corpus, table, options.rounds, rate, report)


if __name__ == "__main__":
    main()
