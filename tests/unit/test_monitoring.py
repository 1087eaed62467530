"""Alerts and the dashboard in deploy/ ask for metrics, labels and values that the service has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.core import errors
from app.edge.observability import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
COUNTS = ("hits", "misses", "evictions", "bytes", "deaths")
ALERTS = (DEPLOY / "prometheus/alerts.yml").read_text()
DASHBOARD = json.loads((DEPLOY / "grafana/sluice.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


@pytest.fixture(scope="module")
def exposed() -> str:
    """Return an exposition in which every metric has been used."""
    metrics = Metrics()
    metrics.watch_servers(dict)
    metrics.watch_detection(lambda: dict.fromkeys(COUNTS, 1))
    metrics.watch_log(lambda: 0.0, lambda: {"file kept.jsonl": 0.0}, lambda: 0)
    failures: dict[str, dict[str, Any]] = {name: {} for name in ("failures", "rejected", "shortened")}
    metrics.watch_sinks(lambda: {"file": 0.0}, failures)
    metrics.watch_archive(lambda: 0.0, lambda: False)
    metrics.watch_rates(lambda: 2)
    metrics.invocation("timestamp_injector", "ok", 0.1)
    metrics.engine("secrets", "fallback")
    metrics.finding("email", 1)
    return metrics.exposition().decode()


@pytest.mark.parametrize("text", [ALERTS, "\n".join(EXPRESSIONS)], ids=["alerts", "dashboard"])
def test_every_metric_that_is_asked_for_is_exposed(exposed: str, text: str) -> None:
    families = set(re.findall(r"^# TYPE (\S+) ", exposed, re.MULTILINE))
    asked = set(re.findall(r"\b(?:sluice|process)_\w+", text))
    assert len(asked) > 5
    assert {re.sub(r"_bucket$", "", name) for name in asked} <= families


def test_alerts_name_codes_states_and_outcomes_that_there_are(exposed: str) -> None:
    codes = {kind.code for kind in vars(errors).values() if isinstance(getattr(kind, "code", None), str)}
    asked = {code for group in re.findall(r'code=~?"([^"]+)"', ALERTS) for code in group.split("|")}
    assert asked
    assert asked <= codes
    for label in ("state", "outcome"):
        named = {value for group in re.findall(rf'{label}=~?"([^"]+)"', ALERTS) for value in group.split("|")}
        assert named
        assert all(f'{label}="{value}"' in exposed or f"{value}" in exposed for value in named)


def test_each_panel_has_a_place_of_its_own_and_says_what_it_shows() -> None:
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]}
    assert len(places) == len(DASHBOARD["panels"]) == len({panel["id"] for panel in DASHBOARD["panels"]})
    assert all(panel["description"] for panel in DASHBOARD["panels"])
