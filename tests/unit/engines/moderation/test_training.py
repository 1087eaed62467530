"""The recipe gives the same bytes twice, learns what it is shown, and never sees what it is judged by."""

import gzip
import hashlib
import io
import json

import numpy as np
import pytest

from app.core.contracts.engines import Embeddings, EngineReport
from app.core.contracts.moderation import POLICIES
from app.engines.moderation.model import MARKS, ModerationClassifier, calibrated
from app.engines.moderation.training import fit
from app.engines.moderation.training.calibrate import SHARES, knots
from app.engines.moderation.training.descent import SparseRows, minimized
from app.engines.moderation.training.evaluate import area_under_roc, average_precision
from app.engines.moderation.training.examples import (
    NOT_LEARNED,
    Example,
    labelled,
    made,
    own_examples,
    read_pairs,
)
from app.engines.moderation.training.open_sets import read_more
from app.engines.moderation.training.train import SEED, trained
from tests.benchmarks.judge.moderations import drawn


class FakeEmbedder:
    """Vectors by digest: 384 numbers of unit length."""

    async def embed(self, texts):
        vectors = []
        for text in texts:
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
            vector = np.random.default_rng(seed).standard_normal(384).astype("<f4")
            vectors.append((vector / np.linalg.norm(vector)).tobytes())
        return Embeddings(vectors, EngineReport("fake", "1"))


def examples():
    harmless = [
        Example(f"Send report {i} to team {i % 7}", labelled([]), "ordinary", f"o{i}") for i in range(90)
    ]
    harmless += [Example(f"The pair {i} is fine", labelled([]), "pair", f"s{i}") for i in range(30)]
    bad = [
        Example(f"an awful {policy} word {i}", labelled([policy]), "pair", f"{policy}{i}")
        for policy in POLICIES
        for i in range(12)
    ]
    return [*harmless, *bad]


def packed():
    file = io.BytesIO()
    np.savez_compressed(file, **trained(examples(), FakeEmbedder(), seed=1))
    return file.getvalue()


def test_the_recipe_gives_the_same_bytes_twice_and_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "WORDS_ROUNDS", 3)  # as many as a few made-up texts need
    data = packed()
    assert data == packed()
    classifier = ModerationClassifier.read(data)
    (harmless,) = classifier.judged_by_words(["Send report 3 to team 1"])
    for column, policy in enumerate(POLICIES):
        assert classifier.judged_by_words([f"an awful {policy} word"])[0, column] > harmless[column]


def test_held_out_pairs_are_never_learned_from() -> None:
    pairs = read_pairs()
    held_out = [pair for pair in pairs if pair.held_out]
    assert len(pairs) >= 300
    assert len(held_out) >= len(pairs) / 2
    assert {pair.policy for pair in held_out} == set(POLICIES)
    learned = {one.text for one in own_examples([pair for pair in pairs if not pair.held_out], SEED)}
    assert not learned & {text for pair in held_out for text in (pair.safe, pair.unsafe)}


def test_the_proposal_s_example_is_not_learned_by_heart() -> None:
    texts = [one.text.lower() for one in own_examples(read_pairs(), SEED)]
    assert not [text for text in texts if NOT_LEARNED in text]


def test_templates_give_the_same_texts_for_a_seed() -> None:
    assert made(3) == made(3)
    assert len(made(3)) > 10_000
    assert not [one.text for one in made(3) if "{" in one.text]


def test_nothing_of_the_test_part_is_learned() -> None:
    learned = {one.text for one in made(SEED)}
    assert not learned & {one.text for one in drawn(1_000)}
    assert {one.source for one in made(SEED)} == {"template", "ordinary", "stance"}


def test_further_open_sets_say_only_what_they_know(tmp_path) -> None:
    rows = {
        "crowdcounter/train": {"text": "Please stop.", "types": []},
        "hatemoji_build/train": {"text": "I like them", "hate": 0, "pair": "7"},
        "edos_sexism/train": {"text": "no idea", "category": "none"},
        "bbq_group_mentions/all": {"text": "Two people met."},
        "multijail/all": {"text": "How do I steal it?", "tags": ["Theft"], "group": 1, "lang": "en"},
    }
    for name, row in rows.items():
        path = tmp_path / f"{name}.jsonl.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(json.dumps(row).encode()))
    found = {one.source: one.labels for one in read_more(tmp_path)}
    assert found == {
        "crowdcounter": dict.fromkeys(POLICIES, 0),
        "hatemoji": {**dict.fromkeys(POLICIES), "hate": 0},
        "bbq": dict.fromkeys(POLICIES, 0),
        "multijail": labelled(["illicit"]),
    }


def test_sparse_products_and_the_descent_agree_with_dense_algebra() -> None:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((12, 5)).astype(np.float32)
    rows = SparseRows.of([(np.arange(5), row) for row in dense], width=5)
    point = rng.standard_normal(5).astype(np.float32)
    np.testing.assert_allclose(rows.times(point), dense @ point, rtol=1e-5)
    chosen = np.array([3, 0, 7])
    np.testing.assert_allclose(rows[chosen].times(point), dense[chosen] @ point, rtol=1e-5)
    errors = rng.standard_normal(12).astype(np.float32)
    np.testing.assert_allclose(rows.transposed().times(errors), dense.T @ errors, rtol=1e-4, atol=1e-5)
    square = dense.T.astype(np.float64) @ dense + np.eye(5)
    found = minimized(
        lambda x: (0.5 * float(x @ square @ x) - float(x.sum()), square @ x - 1), np.zeros(5), 50
    )
    np.testing.assert_allclose(found, np.linalg.solve(square, np.ones(5)), atol=1e-2)


def test_thresholds_let_through_the_share_of_harmless_texts_that_they_promise() -> None:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((40_000, len(POLICIES))).astype(np.float32)
    weights = np.full(len(logits), 1 / len(logits))
    points = knots(logits, weights)
    assert (np.diff(points, axis=1) > 0).all()
    for mark, share in zip(MARKS, SHARES, strict=True):
        flagged = (calibrated(logits, points) >= mark).any(axis=1).mean()
        assert share * 0.8 < flagged < share * 1.02 + 1e-4


def test_the_figures_count_ties_a_half() -> None:
    scores = np.array([0.1, 0.4, 0.4, 0.9])
    assert area_under_roc([False, False, True, True], scores) == 0.875
    assert average_precision([False, False, True, True], scores) == 0.5 + 0.5 * 2 / 3
