"""What is gathered in plain numbers is shown as the library shows the same."""

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from app.edge.observability import SECONDS, counts, durations

LABELS = [("/mcp", "200"), ("/api/v1/middleware/{name}/invoke", "500"), ('a"b\\c', "é")]
TAKEN = [0.0, 0.0004, *SECONDS, *(bound * 1.5 for bound in SECONDS), 31.0, 400.0]


def shown(*, shared: bool) -> list[str]:
    """Return the lines of both kinds of metrics after the same events, but for when they began."""
    registry = CollectorRegistry()
    number = counts(registry, "x_requests", "Requests.", ("route", "status"), shared=shared)
    taken = durations(registry, "x_seconds", "Seconds.", ("route", "status"), shared=shared)
    for at, labels in enumerate(LABELS):
        for seconds in TAKEN[at:]:
            number.add(labels)
            taken.observe(labels, seconds)
    lines = generate_latest(registry).decode().splitlines()
    return [line.rpartition(" ")[0] if "_created{" in line else line for line in lines]


def test_gathered_numbers_are_shown_as_the_library_shows_its_own() -> None:
    assert shown(shared=False) == shown(shared=True)
    assert any(
        'x_seconds_bucket{le="0.001"' in line and line.endswith(" 3.0") for line in shown(shared=False)
    )


def test_a_metric_that_nothing_was_counted_of_is_shown_by_its_description() -> None:
    registry = CollectorRegistry()
    counts(registry, "x_requests", "Requests.", ("route",), shared=False)
    durations(registry, "x_seconds", "Seconds.", ("route",), shared=False)
    assert "# HELP x_seconds Seconds." in generate_latest(registry).decode()
