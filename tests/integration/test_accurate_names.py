"""`names: accurate` reaches the transformer in the worker processes; without its weights the answer says so."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from app.core.content.context import Context
from app.core.contracts.engines import DetectionOptions
from app.core.contracts.middleware import Outcome
from app.engines.pii.names import taggers
from app.engines.pii.processes.pool import PoolDetector
from app.engines.pii.transformer import model
from app.middlewares.pii_redaction.middleware import PiiRedaction, PiiRedactionArguments
from tests.fakes import MemoryVault, engines

TEXT = "Dear Maria Keller, John Doe called. His SSN is 123-45-6789."
ACCURATE = DetectionOptions(names="accurate")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[PoolDetector]:
    async with PoolDetector(1) as detector:
        await detector.wait_ready()
        yield detector


@pytest.fixture
def without_weights(monkeypatch, tmp_path):
    taggers.accurate_available.cache_clear()
    monkeypatch.setattr(model, "WEIGHTS", tmp_path)
    yield
    taggers.accurate_available.cache_clear()


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def redacted(pool: PoolDetector, **arguments: Any) -> Outcome:
    middleware = PiiRedaction(replace(engines(), detector=pool))
    return await middleware.apply(Context.parse([TEXT]), PiiRedactionArguments(**arguments))


async def maps(pool: PoolDetector) -> str:
    (worker,) = pool.pids
    with open(f"/proc/{worker}/maps", encoding="utf-8") as mapped:  # noqa: PTH123
        return mapped.read()


async def test_the_transformer_is_loaded_when_it_is_first_asked_for(pool: PoolDetector) -> None:
    await pool.detect([TEXT], DetectionOptions())
    assert "onnxruntime" not in await maps(pool)
    detection = await pool.detect([TEXT], ACCURATE)
    assert "onnxruntime" in await maps(pool)
    assert (detection.engine, detection.warnings) == ("presidio+transformer", [])
    found = [(TEXT[span.start : span.end], span.label) for span in detection.spans[0]]
    assert found == [("Maria Keller", "PERSON"), ("John Doe", "PERSON"), ("123-45-6789", "SSN")]


async def test_what_one_tagger_found_is_not_the_answer_of_the_other(pool: PoolDetector) -> None:
    first = await pool.detect([TEXT], DetectionOptions(), tenant="acme")
    second = await pool.detect([TEXT], ACCURATE, tenant="acme")
    assert [first.engine, second.engine] == ["presidio+embedded", "presidio+transformer"]
    people = [[span for span in one.spans[0] if span.label == "PERSON"] for one in (first, second)]
    assert [span.score for span in people[0]] != [span.score for span in people[1]]


async def test_an_explanation_names_the_tagger_too(pool: PoolDetector) -> None:
    assert (await pool.explain([TEXT], ACCURATE))[0].engine == "presidio+transformer"


@pytest.mark.usefixtures("without_weights")
async def test_without_weights_the_fast_tagger_serves_and_the_answer_says_so(pool: PoolDetector) -> None:
    detection = await pool.detect([TEXT], ACCURATE)
    assert detection.engine == "presidio+embedded"
    assert detection.warnings == [taggers.ACCURATE_MISSING]
    assert any(TEXT[span.start : span.end] == "John Doe" for span in detection.spans[0])
    assert (await pool.explain([TEXT], ACCURATE))[0].warnings == [taggers.ACCURATE_MISSING]


async def test_the_argument_of_a_call_chooses_the_tagger(pool: PoolDetector) -> None:
    outcome = await redacted(pool, names="accurate")
    assert MemoryVault().settle(outcome.context).to_json() == [
        "Dear [PERSON_1], [PERSON_2] called. His SSN is [SSN_1]."
    ]
    assert "warnings" not in outcome.metadata


@pytest.mark.usefixtures("without_weights")
async def test_a_call_is_told_that_another_tagger_served(pool: PoolDetector) -> None:
    assert (await redacted(pool, names="accurate")).metadata["warnings"] == [taggers.ACCURATE_MISSING]
    assert "warnings" not in (await redacted(pool)).metadata


async def test_damaged_weights_are_refused(monkeypatch, tmp_path) -> None:
    for file in model.WEIGHTS.iterdir():
        tmp_path.joinpath(file.name).write_bytes(file.read_bytes())
    with tmp_path.joinpath(model.MODEL).open("r+b") as damaged:
        damaged.write(b"\0\0\0\0")
    monkeypatch.setattr(model, "WEIGHTS", tmp_path)
    assert not model.available()
    with pytest.raises(model.TransformerUnavailableError, match="damaged"):
        model.TransformerTagger.embedded()
