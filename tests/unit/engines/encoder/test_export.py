"""The encoder's weights are what the recipe makes, and compute what the source computes."""

import hashlib
import json

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from app.engines.encoder.export.__main__ import export
from app.engines.encoder.export.graph import build
from app.engines.encoder.export.source import installed_source, read_tokenizer, read_weights
from app.engines.encoder.model import MANIFEST, MODEL, TOKENIZER, WEIGHTS, Model
from tests.unit.engines.encoder import bert
from tests.unit.engines.encoder.sentences import SENTENCES


@pytest.fixture(scope="module")
def weights():
    return read_weights(installed_source())


@pytest.fixture(scope="module")
def ids():
    tokenizer = Tokenizer.from_str(read_tokenizer(installed_source()))
    tokenizer.enable_truncation(256)
    return [tokenizer.encode(sentence).ids for sentence in SENTENCES]


@pytest.fixture(scope="module")
def expected(weights, ids):
    return bert.vectors(ids, weights)


def session_of(weights):
    """Return the graph in 32 bits, on one thread: waiting threads of several tests slow each other down."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        build(weights, int8=False), options, providers=["CPUExecutionProvider"]
    )


def test_more_than_fifty_sentences_are_compared():
    assert len(set(SENTENCES)) == len(SENTENCES) > 50


def test_in_32_bits_the_graph_is_its_source(weights, ids, expected):
    session = session_of(weights)
    for one, vector in zip(ids, expected, strict=True):
        (found,) = session.run(None, {"ids": [one], "mask": [[1] * len(one)]})[0]
        assert found @ vector >= 0.9999


def test_in_8_bits_each_sentence_keeps_its_direction(expected):
    model = Model()
    for positions, vectors in model.batches(SENTENCES):
        for position, vector in zip(positions, vectors, strict=True):
            assert np.frombuffer(vector, "<f4") @ expected[position] >= 0.98


def test_a_graph_with_a_fault_would_be_noticed(weights, ids, expected):
    wrong = dict(weights)
    wrong["encoder.layer.3.attention.self.query.weight"] = weights[
        "encoder.layer.3.attention.self.key.weight"
    ]
    session = session_of(wrong)
    cosines = [
        session.run(None, {"ids": [one], "mask": [[1] * len(one)]})[0][0] @ vector
        for one, vector in zip(ids[:20], expected[:20], strict=True)
    ]
    assert min(cosines) < 0.98


def test_the_recipe_makes_the_committed_files(tmp_path):
    export(tmp_path, installed_source())
    for name in (MODEL, TOKENIZER, MANIFEST):
        assert (tmp_path / name).read_bytes() == (WEIGHTS / name).read_bytes()


def test_the_manifest_names_the_files_as_they_are():
    manifest = json.loads((WEIGHTS / MANIFEST).read_text(encoding="utf-8"))
    assert set(manifest) == {path.name for path in WEIGHTS.iterdir()} - {MANIFEST}
    for name, entry in manifest.items():
        data = (WEIGHTS / name).read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        assert entry["bytes"] == len(data)
        assert entry["licence"] == "Apache-2.0"


def test_the_manifest_names_the_source_as_it_is():
    manifest = json.loads((WEIGHTS / MANIFEST).read_text(encoding="utf-8"))
    for name, file in ((MODEL, "model.safetensors"), (TOKENIZER, "tokenizer.json")):
        (data,) = manifest[name]["data"]
        assert file in data["name"]
        assert data["sha256"] == hashlib.sha256((installed_source() / file).read_bytes()).hexdigest()
