"""Prometheus' own tool reads the alerts, and each fires on its case and on no other."""

import subprocess
from pathlib import Path

import pytest

from tests.outside.debian import program

pytestmark = [pytest.mark.outside, pytest.mark.needs("promtool")]
FOLDER = Path(__file__).parents[2] / "deploy/prometheus"


def promtool(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [program("promtool") or "", *arguments]
    return subprocess.run(command, cwd=FOLDER, check=False, capture_output=True, text=True, timeout=60)


def test_the_rules_are_sound() -> None:
    done = promtool("check", "rules", "alerts.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{(FOLDER / 'alerts.yml').read_text().count('- alert:')} rules found" in done.stdout


def test_each_alert_fires_on_its_case(tmp_path: Path) -> None:
    done = promtool("test", "rules", "alerts.test.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    # With limits that nothing reaches the same cases are found wrong.
    for name in ("alerts.yml", "alerts.test.yml"):
        text = (FOLDER / name).read_text()
        (tmp_path / name).write_text(text.replace("_seconds > 60", "_seconds > 600"))
    done = promtool("test", "rules", str(tmp_path / "alerts.test.yml"))
    assert done.returncode == 1
