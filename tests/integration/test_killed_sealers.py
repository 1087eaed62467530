"""Whoever writes and seals may be killed at any moment: the log is never found wrong for it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sampling import SEED

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("SLUICE_TEST_KILLS", "1000"))
"""Rounds of `make soak`, each with a kill of every process that writes."""


def kill(url: str, folder: Path, rounds: int, limit_s: int) -> dict[str, Any]:
    """Run the program in a session of its own, which ends with it, and return what it says."""
    command = [
        sys.executable,
        "-m",
        "tests.integration.killed_sealers",
        url,
        str(folder),
        str(rounds),
        str(SEED),
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True)
    try:
        said, _ = process.communicate(timeout=limit_s)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0
    done: dict[str, Any] = json.loads(said)
    return done


def check(done: dict[str, Any], rounds: int) -> None:
    assert done["findings"] == []
    assert (done["rounds"], done["events"] > 0) == (rounds, True)
    assert "changed" in done["control"]


@pytest.mark.in_turn("own_database_url")
def test_a_log_holds_after_each_kill(own_database_url: str, tmp_path: Path) -> None:
    check(kill(own_database_url, tmp_path, 2, 50), 2)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_log_holds_after_a_thousand_kills(own_database_url: str, tmp_path: Path) -> None:
    done = kill(own_database_url, tmp_path, KILLS, 7000)
    check(done, KILLS)
    # The kills came while something was on its way into the log, and between sealing and signing.
    assert min(done["waiting"], done["unsigned"], done["checkpoints"], done["anchors"]) > KILLS / 20
    print(f"{own_database_url.partition(':')[0]}: {done}")
