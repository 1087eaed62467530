"""Train the classifier of injections; README.md says how to run it."""

import argparse
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold

from app.engines.injection.classifier import CHAR_BITS, RULE_KINDS, WORD_BITS, features, rule_features, spans
from app.engines.injection.matching import RuleMatcher
from app.engines.injection.training.corpus import ORDINARY, Example, kept_examples, training_set
from app.engines.injection.training.manifest import manifest
from app.engines.injection.views import views

BUCKETS: Final = (1 << CHAR_BITS) + (1 << WORD_BITS)
RULE_SCALE: Final = 0.4
"""How much a rule weighs beside a text's vector, which has length 1."""

C: Final = 10.0
ROUNDS: Final = 2
KEPT: Final = 2
"""Windows of a long attack that are learned from: those that look most like one; the rest of it may be harmless."""

FOLDS: Final = 4
WEIGHTS: Final[Mapping[str, float]] = {
    "own": 4.0,
    "grammar": 0.4,
    "contrast": 1.5,
    "wider": 1.5,
    "broad": 1.0,
    "self-instruct": 3.0,
    "fastchat": 3.0,
}
"""How much a text weighs by its source: each of our own stands for many that people write, those drawn are alike."""

ORDINARY_ALARMS: Final = 0.005
LOOKALIKE_ALARMS: Final = 0.03
"""The shares of ordinary requests and of harmless look-alikes that the level standard may flag, in the folds."""

LEVELS: Final = {"strict": 0.08, "standard": LOOKALIKE_ALARMS, "permissive": 0.005}
"""The shares of harmless look-alikes that each level may flag."""

LOOKALIKES: Final = frozenset({"own", "wider", "broad"})
"""The sources of look-alikes: our own, and those drawn from frames that no fold has both learned and judged."""

_SEED: Final = 11
Floats = NDArray[np.float64]


class Windows:
    """The windows of all texts as a matrix; ``owner`` is the number of the text."""

    def __init__(self, examples: Sequence[Example], matcher: RuleMatcher) -> None:
        indices: list[NDArray[np.int64]] = []
        values: list[NDArray[np.float32]] = []
        rules: list[NDArray[np.float32]] = []
        owner: list[int] = []
        for number, example in enumerate(examples):
            text = views(example.text)[0].text
            matches = matcher.find(text, documents=False)
            for start, end in spans(len(text)):
                buckets, counts = features(text[start:end])
                indices.append(buckets)
                values.append(counts)
                rules.append(rule_features(matches, start, end))
                owner.append(number)
        pointers = np.cumsum([0, *map(len, indices)])
        shape = (len(owner), BUCKETS)
        self.counts = csr_matrix((np.concatenate(values), np.concatenate(indices), pointers), shape=shape)
        self.rules = np.stack(rules) * RULE_SCALE
        self.owner = np.array(owner)
        self.attack = np.array([examples[one].attack for one in owner])
        self.weight = np.array([WEIGHTS.get(examples[one].source, 1.0) for one in owner])


def inverse_frequency(counts: csr_matrix) -> Floats:
    """Return the weight of each bucket: rare ones count more, and ones seen once, which are noise, nothing."""
    seen = np.asarray((counts > 0).sum(axis=0)).ravel()
    weight = np.log((1.0 + counts.shape[0]) / (1.0 + seen)) + 1.0
    weight[seen < 2] = 0.0  # noqa: PLR2004 - seen once
    return np.asarray(weight, dtype=np.float64)


def matrix(counts: csr_matrix, rules: NDArray[np.float32], idf: Floats) -> csr_matrix:
    """Return the rows that the model sees: weighted counts of length 1, then the rules."""
    weighted = counts.multiply(idf).tocsr()
    length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    length[length == 0] = 1.0
    scaled = weighted.multiply(1.0 / length[:, None]).tocsr()
    return hstack([scaled, csr_matrix(rules)]).tocsr()


def fitted(windows: Windows, texts: NDArray[np.int64]) -> tuple[Floats, LogisticRegression]:
    """Fit on the windows of ``texts``: on all first, then on those parts of attacks that look like some."""
    mine = np.isin(windows.owner, texts)
    idf = inverse_frequency(windows.counts[mine])
    rows = matrix(windows.counts, windows.rules, idf)
    kept = mine.copy()
    model = LogisticRegression(C=C, class_weight="balanced", solver="liblinear", random_state=_SEED)
    for turn in range(ROUNDS):
        model.fit(rows[kept], windows.attack[kept], sample_weight=windows.weight[kept])
        if turn + 1 < ROUNDS:
            kept = mine & (
                ~windows.attack | best(model.decision_function(rows), windows.owner, windows.attack)
            )
    return idf, model


def best(logits: Floats, owner: NDArray[np.int64], wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which windows are among the highest of their text."""
    kept = np.zeros(len(logits), dtype=bool)
    for number in np.unique(owner[wanted]):
        places = np.flatnonzero(owner == number)
        kept[places[np.argsort(-logits[places], kind="stable")[:KEPT]]] = True
    return kept


def highest(logits: Floats, owner: NDArray[np.int64], texts: int) -> Floats:
    """Return the highest logit of each text."""
    top = np.full(texts, -np.inf)
    np.maximum.at(top, owner, logits)
    return top


def out_of_fold(examples: Sequence[Example], windows: Windows) -> Floats:
    """Return for each text the logit that a model gives which never saw it, nor another text of its frame."""
    logits = np.zeros(len(examples))
    labels = [f"{one.source} {one.attack}" for one in examples]
    groups = [one.frame or f"text {number}" for number, one in enumerate(examples)]
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=_SEED)
    for learned, held in folds.split(np.zeros(len(examples)), labels, groups):
        idf, model = fitted(windows, learned)
        mine = np.isin(windows.owner, held)
        rows = matrix(windows.counts[mine], windows.rules[mine], idf)
        logits[held] = highest(model.decision_function(rows), windows.owner[mine], len(examples))[held]
    return logits


def threshold(examples: Sequence[Example], logits: Floats, kept: Floats) -> float:
    """Return the logit above which a text is suspected at the level standard, and print those of all levels.

    ``kept`` are the logits of harmless texts of the grammar that nothing is learned from: they are held to the same
    shares as the look-alikes of the folds.
    """
    ordinary = [logit for one, logit in zip(examples, logits, strict=True) if one.source in ORDINARY]
    alike = [
        logit
        for one, logit in zip(examples, logits, strict=True)
        if one.source in LOOKALIKES and not one.attack
    ]
    floor = np.quantile(ordinary, 1.0 - ORDINARY_ALARMS) if ordinary else -np.inf
    cuts = {
        level: max(floor, *(np.quantile(harmless, 1.0 - share) for harmless in (alike, kept)))
        for level, share in LEVELS.items()
    }
    for level, cut in cuts.items():
        print(f"{level:12} at {1.0 / (1.0 + np.exp(cuts['standard'] - cut)):.3f}")
        report(examples, logits, cut)
    return float(cuts["standard"])


def report(examples: Sequence[Example], logits: Floats, cut: float) -> None:
    """Print by set how many texts are above ``cut`` in the folds."""
    for source, attack in sorted({(one.source, one.attack) for one in examples}):
        mine = [
            logit
            for one, logit in zip(examples, logits, strict=True)
            if (one.source, one.attack) == (source, attack)
        ]
        print(
            f"{source:12} {'attack' if attack else 'harmless':8} {len(mine):5} {np.mean(np.array(mine) > cut):.3f}"
        )


def stored(idf: Floats, model: LogisticRegression, cut: float) -> bytes:
    """Return the weights as an npz file whose bytes depend on nothing but the weights."""
    coef = model.coef_[0]
    parts = {
        "idf": idf.astype(np.float16),
        "coef": coef[:BUCKETS].astype(np.float16),
        "rules": (coef[BUCKETS:] * RULE_SCALE).astype(np.float32),
        "bias": np.float32(model.intercept_[0] - cut),
        "notable": np.float32(0.5),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in parts.items():
            inner = io.BytesIO()
            np.save(inner, value)
            archive.writestr(
                zipfile.ZipInfo(f"{name}.npy", (2026, 1, 1, 0, 0, 0)), inner.getvalue(), zipfile.ZIP_DEFLATED
            )
    return buffer.getvalue()


def trained(examples: Sequence[Example]) -> bytes:
    """Return the weights that are learned from ``examples``, with the threshold that the folds give."""
    windows = Windows(examples, RuleMatcher.shared())
    assert windows.rules.shape[1] == len(RULE_KINDS) + 1  # noqa: S101 - the file's layout
    logits = out_of_fold(examples, windows)
    idf, model = fitted(windows, np.arange(len(examples)))
    kept = kept_examples()
    kept_windows = Windows(kept, RuleMatcher.shared())
    rows = matrix(kept_windows.counts, kept_windows.rules, idf)
    kept_logits = highest(model.decision_function(rows), kept_windows.owner, len(kept))
    harmless = np.array([not example.attack for example in kept])
    cut = threshold(examples, logits, kept_logits[harmless])
    report(kept, kept_logits, cut)
    return stored(idf, model, cut)


def main() -> None:
    """Read the open sets from a folder, and write the weights and, beside them, their manifest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folder",
        type=Path,
        help="holds injection/train.jsonl, moderation/train.jsonl, and further sets in open/",
    )
    parser.add_argument("weights", type=Path, help="the npz file to write")
    given = parser.parse_args()
    given.weights.write_bytes(trained(training_set(given.folder)))
    made = json.dumps(manifest(given.weights, given.folder), indent=2)
    given.weights.with_name("manifest.json").write_text(f"{made}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
