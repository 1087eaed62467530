"""The numbers of events: without gaps whatever fails, and in the order in which the log takes them."""

from datetime import UTC, datetime

from app.core.audit import AuditEvent, WriterNumber
from app.core.ids import uuid7
from app.store.audit.numbers import LIFETIME_S, NumberedAttempt, WriterPool


def event(tenant: str = "acme") -> AuditEvent:
    return AuditEvent(tenant, uuid7(), datetime.now(UTC), "00000001", (), "probe", "ok")


def numbers(attempt: NumberedAttempt, *tenants: str) -> list[int]:
    return [attempt.number(event(tenant)).number for tenant in tenants]


def test_a_stored_attempt_is_gone_on_with_by_tenant() -> None:
    pool = WriterPool()
    first = NumberedAttempt(pool)
    assert numbers(first, "acme", "acme", "borealis") == [1, 2, 1]
    first.stored()
    second = NumberedAttempt(pool)
    assert numbers(second, "acme", "borealis", "cedar") == [3, 2, 1]


def test_a_writer_whose_attempt_was_not_stored_is_never_used_again() -> None:
    pool = WriterPool()
    lost = NumberedAttempt(pool)
    ended = lost.number(event()).writer
    following = NumberedAttempt(pool).number(event())
    assert following == WriterNumber(following.writer, 1)
    assert following.writer != ended


def test_attempts_at_the_same_time_have_different_writers() -> None:
    pool = WriterPool()
    attempts = [NumberedAttempt(pool) for _ in range(3)]
    made = [attempt.number(event()) for attempt in attempts]
    assert len({number.writer for number in made}) == 3
    for attempt in attempts:
        attempt.stored()
    again = NumberedAttempt(pool).number(event())
    assert again in {WriterNumber(number.writer, 2) for number in made}


def test_units_of_a_tenant_never_share_a_writer_and_one_that_is_absent_gives_its_numbers_back() -> None:
    pool = WriterPool()
    attempt = NumberedAttempt(pool)
    sure, near, far = (attempt.number(event(), unit) for unit in (None, "near", "far"))
    other = attempt.number(event("borealis"), "elsewhere")
    assert len({sure.writer, near.writer, far.writer}) == 3
    assert other == WriterNumber(sure.writer, 1)  # numbers are of each tenant
    attempt.stored(absent={"near"})
    following = NumberedAttempt(pool)
    made = {following.number(event(), unit) for unit in range(3)}
    assert made == {WriterNumber(sure.writer, 2), WriterNumber(near.writer, 1), WriterNumber(far.writer, 2)}


def test_an_event_with_a_lower_id_than_the_one_before_it_has_another_writer() -> None:
    attempt = NumberedAttempt(WriterPool())
    earlier, later = event(), event()
    first, second = attempt.number(later), attempt.number(earlier)
    assert (first.number, second.number) == (1, 1)
    assert first.writer != second.writer


def test_a_writer_ends_after_a_day_by_either_clock() -> None:
    for step in ((0.0, LIFETIME_S), (LIFETIME_S, 0.0), (-LIFETIME_S, 0.0)):
        times = [0.0, 0.0]
        pool = WriterPool(clocks=lambda times=times: (times[0], times[1]))

        def stored(pool: WriterPool = pool) -> WriterNumber:
            attempt = NumberedAttempt(pool)
            number = attempt.number(event())
            attempt.stored()
            return number

        first = stored()
        times[:] = [seconds * 0.99 for seconds in step]
        assert stored() == WriterNumber(first.writer, 2)
        times[:] = step
        following = stored()
        assert following == WriterNumber(following.writer, 1)
        assert following.writer != first.writer
