"""Times and durations as people type them."""

from datetime import UTC, datetime, timedelta

import pytest
import typer

from app.cli.times import duration, moment, moment_ahead


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("15m", 900), ("24h", 86_400), ("30D", 2_592_000), ("2w", 1_209_600)],
)
def test_durations_have_a_unit(text: str, seconds: int) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "h", "-1h", "1.5h", "1y", "999999999w"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        duration(text)


@pytest.mark.parametrize("text", ["2026-11-20", "2026-11-20T00:00:00Z", "2026-11-20T01:00:00+01:00"])
def test_a_time_without_a_zone_is_utc(text: str) -> None:
    assert moment(text) == datetime(2026, 11, 20, tzinfo=UTC)


def test_a_time_to_come_may_be_a_duration() -> None:
    ahead = moment_ahead("2h") - datetime.now(UTC)

    assert timedelta(minutes=119) < ahead <= timedelta(hours=2)
    assert moment_ahead("2027-01-31") == datetime(2027, 1, 31, tzinfo=UTC)


def test_a_time_that_does_not_exist_is_refused() -> None:
    with pytest.raises(typer.BadParameter):
        moment("2026-02-30")
    with pytest.raises(typer.BadParameter):
        moment_ahead("900000000w")
