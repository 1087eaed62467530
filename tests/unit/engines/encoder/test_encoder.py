"""The embedded Embedder: batches, the cache, loading, and what happens without weights."""

import asyncio
import shutil
import threading

import numpy as np
import pytest

from app.core.errors import UpstreamUnavailableError
from app.engines.encoder import Encoder, EncoderUnavailableError
from app.engines.encoder import model as model_module
from app.engines.encoder.model import MODEL, WEIGHTS, Model
from tests.fakes import FakeEmbedder
from tests.unit.engines.encoder.sentences import SENTENCES


@pytest.fixture(scope="module")
def loaded():
    return Encoder()


def numbers(embeddings):
    return np.array([np.frombuffer(vector, "<f4") for vector in embeddings.vectors])


@pytest.fixture(params=["fake", "embedded"])
def embedder(request, loaded):
    return FakeEmbedder() if request.param == "fake" else loaded


async def test_each_text_gets_a_vector_of_unit_length(embedder):
    vectors = numbers(await embedder.embed(SENTENCES))
    assert len(vectors) == len(SENTENCES)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


async def test_texts_that_say_the_same_are_nearer_than_others(embedder):
    same, other, far = numbers(
        await embedder.embed(["reset my password", "how can I reset a password", "banana bread"])
    )
    assert same @ other > same @ far


async def test_no_texts_give_no_vectors(embedder):
    assert (await embedder.embed([])).vectors == []


async def test_equal_texts_get_equal_vectors_in_one_call(embedder):
    first, other, second = (await embedder.embed(["twice", "once", "twice"])).vectors
    assert first == second != other


async def test_the_report_names_the_engine_and_its_weights(loaded):
    report = (await loaded.embed(["hello"])).report
    assert report.name == "embedded-minilm-l6"
    assert Model().version.startswith(report.version)
    assert not report.degraded


async def test_a_vector_does_not_depend_on_its_neighbours():
    together = numbers(await Encoder().embed(SENTENCES))
    alone = Encoder()
    apart = np.concatenate([numbers(await alone.embed([sentence])) for sentence in SENTENCES])
    assert np.abs(together - apart).max() < 1e-5


async def test_processors_without_fast_products_compute_the_same(monkeypatch, loaded):
    monkeypatch.setattr(model_module, "_exact_products", lambda: False)
    assert (
        np.abs(numbers(await Encoder().embed(SENTENCES)) - numbers(await loaded.embed(SENTENCES))).max()
        < 1e-5
    )


async def test_spaces_and_what_follows_the_limit_do_not_count(loaded):
    page = "the quick brown fox " * 80
    short, spaced, long, longer = (
        await loaded.embed(["a b", "  a\n\n\tb ", page, page + "and the lazy dog"])
    ).vectors
    assert short == spaced
    assert long == longer


async def test_a_megabyte_and_half_a_character_are_read_like_any_text(loaded):
    vectors = numbers(await loaded.embed(["x " * 500_000, "y" * 1_000_000, " " * 1_000_000, "half \ud800"]))
    assert np.isfinite(vectors).all()


async def test_known_texts_are_not_computed_again_and_not_kept_in_the_clear(monkeypatch):
    encoder = Encoder()
    first = await encoder.embed(["the secret of the house", "another"])
    monkeypatch.setattr(Model, "_vectors", None)
    assert await encoder.embed(["another", "the secret of the house"]) == type(first)(
        first.vectors[::-1], first.report
    )
    assert b"secret" not in b"".join([*encoder._known, *encoder._known.values()])
    assert Encoder()._digest("another") != encoder._digest("another")


async def test_the_cache_is_bounded_and_forgets_the_eldest():
    encoder = Encoder(remembered=2)
    vectors = (await encoder.embed(["one", "two", "three"])).vectors
    assert len(encoder._known) == 2
    assert (await encoder.embed(["one", "two", "three"])).vectors == vectors


async def test_calls_at_the_same_time_load_the_model_once(monkeypatch):
    loads = []
    monkeypatch.setattr("app.engines.encoder.Model", lambda folder: loads.append(folder) or Model(folder))
    encoder = Encoder()
    answers = await asyncio.gather(*(encoder.embed([f"text {number % 3}"]) for number in range(12)))
    assert loads == [WEIGHTS]
    assert all(answers[number] == answers[number % 3] for number in range(12))


async def test_the_event_loop_stays_free_while_vectors_are_computed(loaded):
    ticks = 0
    work = asyncio.create_task(loaded.embed([f"{number} " + "word " * 250 for number in range(12)]))
    while not work.done():
        ticks += 1
        await asyncio.sleep(0)
    assert ticks > 50
    assert len((await work).vectors) == 12


async def test_a_call_that_is_cancelled_computes_no_further_batch(monkeypatch):
    encoder, begun, go_on, computed = Encoder(), threading.Event(), threading.Event(), []
    real = Model._vectors

    def slow(self, rows):
        computed.append(len(rows))
        begun.set()
        go_on.wait(30)
        return real(self, rows)

    monkeypatch.setattr(Model, "_vectors", slow)
    work = asyncio.create_task(encoder.embed([f"{number} " + "word " * 250 for number in range(5)]))
    await asyncio.to_thread(begun.wait, 30)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    go_on.set()
    monkeypatch.undo()
    await encoder.embed(["the threads are free again"])
    assert computed == [1]


async def test_without_weights_every_call_says_so(tmp_path):
    encoder = Encoder(tmp_path)
    for _ in range(2):
        with pytest.raises(EncoderUnavailableError, match="not installed") as caught:
            await encoder.embed(["hello"])
        assert isinstance(caught.value, UpstreamUnavailableError)


async def test_damaged_weights_are_refused(tmp_path):
    shutil.copytree(WEIGHTS, tmp_path, dirs_exist_ok=True)
    data = bytearray((tmp_path / MODEL).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / MODEL).write_bytes(data)
    with pytest.raises(EncoderUnavailableError, match="damaged"):
        await Encoder(tmp_path).embed(["hello"])


async def test_without_the_runtime_every_call_says_so(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(EncoderUnavailableError, match="runtime"):
        await Encoder().embed(["hello"])
