"""Identifiers sort by the time of their making."""

import os
import threading
import time
from uuid import RFC_4122, UUID

import pytest

from app.core.ids import uuid7, uuid7_text


def test_an_id_is_a_version_7_uuid_of_the_present_time() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid7()
    assert (made.version, made.variant) == (7, RFC_4122)
    assert before <= made.int >> 80 <= time.time_ns() // 1_000_000 + 1


def test_ids_grow_even_within_one_millisecond() -> None:
    made = [uuid7() for _ in range(20_000)]
    assert made == sorted(set(made))


def test_ids_grow_when_the_system_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = uuid7()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert uuid7() > first


def test_threads_never_share_an_id() -> None:
    made: list[list[int]] = [[] for _ in range(4)]
    threads = [
        threading.Thread(target=lambda out=out: out.extend(uuid7().int for _ in range(5_000))) for out in made
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({number for out in made for number in out}) == 20_000
    assert all(out == sorted(out) for out in made)


def test_the_text_of_an_id_is_that_of_a_uuid_and_sorts_with_the_others() -> None:
    first, text, last = uuid7(), uuid7_text(), uuid7()
    assert text == str(UUID(text))
    assert first < UUID(text) < last


def test_a_child_of_this_process_draws_other_random_bits() -> None:
    uuid7()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b"".join(uuid7().bytes for _ in range(50)))
        os._exit(0)
    os.close(writer)
    own = {uuid7().int & (1 << 62) - 1 for _ in range(50)}
    with os.fdopen(reader, "rb") as pipe:
        drawn = pipe.read()
    os.waitpid(child, 0)
    theirs = {int.from_bytes(drawn[at : at + 16]) & (1 << 62) - 1 for at in range(0, len(drawn), 16)}
    assert len(theirs) == 50
    assert own.isdisjoint(theirs)
