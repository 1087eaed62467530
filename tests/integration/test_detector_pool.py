"""The pool of detection processes: answers, faults, deadlines, and an event loop that stays free."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest
import pytest_asyncio

from app.core.contracts.engines import Detection, DetectionOptions
from app.core.errors import DeadlineExceededError, InvalidArgumentsError, OverloadedError
from app.engines.pii.processes import frames
from app.engines.pii.processes.forking import WorkerFactory
from app.engines.pii.processes.lanes import Weight
from app.engines.pii.processes.pool import PoolDetector
from app.engines.pii.processes.process import WorkerDiedError, WorkerProcess
from app.engines.pii.processes.startup import Startup

OPTIONS = DetectionOptions()
TEXT = "My name is John Doe and my SSN is 123-45-6789"
SENTENCE = "Then Jane Smith wrote to billing@example.com about invoice 4711, and nobody answered for a week. "


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[PoolDetector]:
    async with PoolDetector(2, deadline_s=90) as detector:
        await detector.wait_ready(90)
        yield detector


pytestmark = pytest.mark.asyncio(loop_scope="module")


def found(texts: list[str], detection: Detection) -> list[list[tuple[str, str]]]:
    return [
        [(text[s.start : s.end], s.label) for s in spans]
        for text, spans in zip(texts, detection.spans, strict=True)
    ]


async def until_alive(pool: PoolDetector, count: int) -> None:
    async with asyncio.timeout(90):
        while len(pool.pids) < count or not pool.ready:
            await asyncio.sleep(0.02)


async def until_replaced(pool: PoolDetector, pids: Collection[int]) -> None:
    """Wait until none of ``pids``, which were killed, counts as a worker any more, and there are two again."""
    async with asyncio.timeout(90):
        while not set(pids).isdisjoint(pool.pids):
            await asyncio.sleep(0.02)
    await until_alive(pool, 2)


async def test_findings_come_back_in_the_order_of_the_texts(pool: PoolDetector) -> None:
    texts = ["nothing here", TEXT, "", "ask Doe, \ud800 jane@example.com"]
    expected = [
        [],
        [("John Doe", "PERSON"), ("123-45-6789", "SSN")],
        [],
        [("Doe", "PERSON"), ("jane@example.com", "EMAIL")],
    ]
    detection = await pool.detect(texts, OPTIONS)
    assert found(texts, detection) == expected
    assert detection.engine == "presidio+embedded"
    assert detection.warnings == []


async def test_options_reach_the_workers(pool: PoolDetector) -> None:
    options = DetectionOptions(strict=True, language="pl", deny_list=("invoice",), allow_list=("Jane Smith",))
    detection = await pool.detect([SENTENCE], options)
    labels = {span.label for span in detection.spans[0]}
    assert "CUSTOM" in labels
    assert "PERSON" not in labels
    assert "'pl'" in detection.warnings[0]


async def test_an_unknown_label_is_refused_by_name(pool: PoolDetector) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        await pool.detect([TEXT], DetectionOptions(entities=frozenset({"SSN", "NOSE"})))
    assert caught.value.details["unknown"] == ["NOSE"]
    assert caught.value.details["pointer"] == "/entities"


async def test_a_big_context_is_spread_and_a_name_still_carried_to_every_part(pool: PoolDetector) -> None:
    texts = [
        SENTENCE * 400,
        "My name is Waldemar Quintero. " + "All is well. " * 2000,
        "and then Quintero left",
    ]
    detection = await pool.detect(texts, OPTIONS)
    assert ("Quintero", "PERSON") in found(texts, detection)[2]
    assert len(detection.spans[0]) == 800
    alone = PoolDetector(1)
    async with alone:
        assert (await alone.detect(texts, OPTIONS)).spans == detection.spans


async def test_calls_at_once_all_get_their_own_answer(pool: PoolDetector) -> None:
    texts = [f"mail user{number}@example.com now" for number in range(60)]
    detections = await asyncio.gather(*(pool.detect([text], OPTIONS) for text in texts))
    assert [found([text], d)[0][0][0] for text, d in zip(texts, detections, strict=True)] == [
        f"user{number}@example.com" for number in range(60)
    ]


async def test_the_event_loop_stays_free_during_a_big_scan(pool: PoolDetector) -> None:
    """How long it is held up at most is measured by make bench; here, that it goes on turning at all."""
    turns = 0
    scan = asyncio.create_task(pool.detect([SENTENCE * 2100], OPTIONS))
    while not scan.done():
        await asyncio.sleep(0.002)
        turns += 1
    assert len((await scan).spans[0]) == 4200
    assert turns > 30


async def test_operators_run_in_a_worker(pool: PoolDetector) -> None:
    assert await pool.apply_operator("mask", [("SSN", "123"), ("EMAIL", "a@b.co")]) == ["***", "******"]
    hashed = await pool.apply_operator("hash", [("SSN", "123")], b"k" * 32)
    assert hashed[0].startswith("<SSN:")
    assert await pool.apply_operator("mask", []) == []


async def test_a_worker_killed_while_idle_is_replaced_without_an_error(pool: PoolDetector) -> None:
    await until_alive(pool, 2)
    for pid in pool.pids:
        os.kill(pid, signal.SIGKILL)
    assert found([TEXT], await pool.detect([TEXT], OPTIONS))[0][1] == ("123-45-6789", "SSN")
    await until_alive(pool, 2)


async def test_a_worker_killed_during_a_call_costs_no_finding(pool: PoolDetector) -> None:
    await until_alive(pool, 2)
    scan = asyncio.create_task(pool.detect([SENTENCE * 6000], OPTIONS))
    await asyncio.sleep(0.1)
    victims = busy(set(pool.pids))
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    assert not scan.done()
    assert len((await scan).spans[0]) == 12_000
    await until_replaced(pool, victims)


def busy(pids: set[int]) -> list[int]:
    """Return the process that has used the most time of late: the one with the call."""

    def used(pid: int) -> int:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    first = {pid: used(pid) for pid in pids}
    time.sleep(0.15)
    return [max(pids, key=lambda pid: used(pid) - first[pid])]


async def test_a_killed_worker_is_forked_anew_and_a_killed_zygote_loads_anew(pool: PoolDetector) -> None:
    await until_alive(pool, 2)
    zygote, before = pool.zygote, set(pool.pids)
    assert zygote is not None
    os.kill(min(before), signal.SIGKILL)
    await until_replaced(pool, {min(before)})
    assert pool.zygote == zygote
    before = set(pool.pids)
    scan = asyncio.create_task(pool.detect([SENTENCE * 300], OPTIONS))
    await asyncio.sleep(0.02)
    os.kill(zygote, signal.SIGKILL)
    assert len((await scan).spans[0]) == 600
    await until_replaced(pool, before)
    assert pool.zygote != zygote


async def test_workers_and_zygote_killed_under_load_cost_no_answer_and_mix_none_up(
    pool: PoolDetector,
) -> None:
    """Its negative control is the pool that may try only once, below."""
    await until_alive(pool, 2)
    stop = asyncio.Event()
    answered: list[int] = []

    async def ask(numbers: range) -> None:
        for number in numbers:
            texts = [f"mail user{number}@example.com now", f"and Zoltan{number} too"]
            detection = await pool.detect(texts, OPTIONS, tenant="acme")
            assert found(texts, detection)[0] == [(f"user{number}@example.com", "EMAIL")]
            answered.append(number)
            if stop.is_set():
                return

    callers = [
        asyncio.create_task(ask(range(first, first + 100_000))) for first in range(0, 400_000, 100_000)
    ]
    for victim in (0, 1, None):
        await asyncio.sleep(0.3)
        zygote = pool.zygote
        assert zygote is not None
        os.kill(zygote if victim is None else pool.pids[victim], signal.SIGKILL)
        await asyncio.sleep(0.3)
        await until_alive(pool, 2)
    stop.set()
    async with asyncio.timeout(90):
        await asyncio.gather(*callers)
    assert len(answered) == len(set(answered)) >= 8


async def test_without_a_second_attempt_the_same_kill_fails_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control of the test above."""
    monkeypatch.setattr("app.engines.pii.processes.workers._ATTEMPTS", 1)
    async with PoolDetector(1, deadline_s=90) as pool:
        await pool.wait_ready(90)
        scan = asyncio.create_task(pool.detect([SENTENCE * 4000], OPTIONS))
        await asyncio.sleep(0.1)
        os.kill(pool.pids[0], signal.SIGKILL)
        with pytest.raises(OverloadedError):
            await scan


async def test_a_call_that_kills_every_worker_fails_and_the_pool_recovers() -> None:
    async with PoolDetector(1, deadline_s=90) as pool:
        await pool.wait_ready(90)
        scan = asyncio.create_task(pool.detect([SENTENCE * 6000], OPTIONS))
        killed: set[int] = set()
        while not scan.done():
            await asyncio.sleep(0.05)
            for pid in set(pool.pids) - killed if pool.ready else ():
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(OverloadedError):
            await scan
        assert found([TEXT], await pool.detect([TEXT], OPTIONS))[0][1] == ("123-45-6789", "SSN")


async def test_a_call_beyond_its_deadline_fails_and_its_worker_is_killed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with PoolDetector(1, deadline_s=90) as pool:
        await pool.wait_ready(90)
        before = pool.pids
        with pytest.raises(DeadlineExceededError) as caught:
            await pool.detect([SENTENCE * 6000], OPTIONS, deadline_s=0.2)
        assert "Jane" not in f"{caught.value} {caught.value.details}" + caplog.text
        await until_alive(pool, 1)
        assert pool.pids != before
        assert found([TEXT], await pool.detect([TEXT], OPTIONS))[0]


async def test_a_call_during_the_first_start_is_told_to_come_back_and_then_has_its_whole_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads, fork = asyncio.Event(), WorkerFactory.worker

    async def slow(factory: WorkerFactory) -> WorkerProcess:
        await loads.wait()
        return await fork(factory)

    monkeypatch.setattr(WorkerFactory, "worker", slow)
    async with PoolDetector(1, deadline_s=0.01) as pool:
        for call in (pool.detect([TEXT], OPTIONS), pool.explain([TEXT], OPTIONS)):
            with pytest.raises(OverloadedError) as caught:
                await call
            assert caught.value.retry_after_s == 1
        monkeypatch.setattr(pool, "_deadline_s", 90)
        scan = asyncio.create_task(pool.detect([TEXT], OPTIONS))
        loads.set()
        assert found([TEXT], await scan)[0]
        await pool._workers._lanes.take(Weight.SMALL)  # the only worker is busy
        monkeypatch.setattr(pool, "_deadline_s", 0.01)
        with pytest.raises(DeadlineExceededError):  # the control: once they have loaded, the deadline counts
            await pool.detect([TEXT], OPTIONS)


async def test_a_worker_ends_itself_where_nobody_ends_it(pool: PoolDetector) -> None:
    worker = await forked(pool)
    try:
        assert await worker.started()
        question = {
            "ask": "scan",
            "runs": [[SENTENCE * 6000]],
            "names": [],
            "options": frames.raw_options(OPTIONS),
        }
        with pytest.raises(WorkerDiedError):
            await worker.ask(question | {"within": 0.2})
        await worker.ended()
    finally:
        await worker.kill()


async def test_what_was_seen_is_answered_while_all_workers_are_gone(pool: PoolDetector) -> None:
    await until_alive(pool, 2)
    first = await pool.detect([TEXT, "ask Doe"], OPTIONS, tenant="acme")
    zygote, workers = pool.zygote, pool.pids
    assert zygote is not None
    os.kill(zygote, signal.SIGKILL)
    assert await pool.detect([TEXT, "ask Doe"], OPTIONS, tenant="acme") == first
    assert found([TEXT, "ask Doe"], first)[1] == [("Doe", "PERSON")]
    await until_replaced(pool, workers)


async def test_a_caller_that_gives_up_leaves_the_pool_usable(pool: PoolDetector) -> None:
    await until_alive(pool, 2)
    before = pool.pids
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.detect([SENTENCE * 2000], OPTIONS), 0.05)
    assert found([TEXT], await pool.detect([TEXT], OPTIONS))[0][0] == ("John Doe", "PERSON")
    assert pool.pids == before


async def forked(pool: PoolDetector) -> WorkerProcess:
    """Return a worker beside those of the pool."""
    return await pool._workers._factory.worker()


async def test_an_error_in_a_worker_tells_no_content(
    pool: PoolDetector, caplog: pytest.LogCaptureFixture
) -> None:
    worker = await forked(pool)
    try:
        assert await worker.started()
        with caplog.at_level(logging.DEBUG):
            answer = await worker.ask({"ask": "scan", "runs": [["John Doe secret"]], "options": {"no": 1}})
        assert answer["error"] == "KeyError"
        assert "John" not in str(answer) + caplog.text
        assert "texts" in (
            await worker.ask({"ask": "operate", "mode": "mask", "items": [("A", "b")], "key": None})
        )
    finally:
        await worker.kill()


async def test_workers_that_are_not_forked_find_the_same_and_know_nothing_of_our_secrets(
    pool: PoolDetector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_AUTH__BOOTSTRAP_KEY", "canary-of-the-environment")
    factory = WorkerFactory(Startup(), forks=False)
    worker = await factory.worker()
    try:
        assert await worker.started()
        assert factory.pid is None
        assert b"canary" not in Path(f"/proc/{worker.pid}/environ").read_bytes()
        question = {"ask": "scan", "runs": [[TEXT]], "names": [], "options": frames.raw_options(OPTIONS)}
        answer = await worker.ask(question | {"within": 30.0})
        spans = [frames.spans_from(text["carried"] or text["spans"]) for text in answer["texts"]]
        assert spans == (await pool.detect([TEXT], OPTIONS)).spans
    finally:
        await worker.kill()
        await factory.close()


async def test_the_main_process_never_loads_the_heavy_libraries() -> None:
    program = (
        "import asyncio, sys\n"
        "from app.core.contracts.engines import DetectionOptions\n"
        "from app.engines.pii.processes.pool import PoolDetector\n"
        "async def main():\n"
        "    async with PoolDetector(1) as pool:\n"
        "        assert 'SSN' in pool.labels()\n"
        "        assert (await pool.detect(['123-45-6789'], DetectionOptions())).spans[0]\n"
        "asyncio.run(main())\n"
        "heavy = {'presidio_analyzer', 'presidio_anonymizer', 'spacy', 'numpy', 'phonenumbers'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


async def test_workers_end_with_a_killed_parent_even_in_the_middle_of_a_scan() -> None:
    program = (
        "import asyncio\n"
        "from app.core.contracts.engines import DetectionOptions\n"
        "from app.engines.pii.processes.pool import PoolDetector\n"
        "async def main():\n"
        "    async with PoolDetector(2) as pool:\n"
        "        await pool.wait_ready()\n"
        "        print(*pool.pids, pool.zygote, flush=True)\n"
        f"        await pool.detect([{SENTENCE!r} * 20000] * 2, DetectionOptions())\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pids = [int(pid) for pid in (await parent.stdout.readline()).split()]
    await asyncio.sleep(0.3)
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(5):
        while any(Path(f"/proc/{pid}").exists() and not zombie(pid) for pid in pids):
            await asyncio.sleep(0.02)
    assert len(pids) >= 2


def zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


async def test_a_closed_pool_leaves_no_process() -> None:
    pool = PoolDetector(2)
    await pool.start()
    await pool.wait_ready()
    pids = [*pool.pids, pool.zygote]
    await pool.close()
    assert not pool.ready
    assert pool.zygote is None
    async with asyncio.timeout(5):
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            await asyncio.sleep(0.02)


async def test_a_pool_needs_a_worker() -> None:
    with pytest.raises(ValueError, match="at least one"):
        PoolDetector(0)
