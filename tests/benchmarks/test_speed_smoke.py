"""The benchmarks run: every table comes out, and nothing is written where they are started."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.speed.tokens import MODULES

ROOT = Path(__file__).parents[2]


def test_make_bench_prints_every_table_and_writes_no_file(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.benchmarks.speed", "--smoke"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    titles = re.findall(r"^### (.+)$", done.stdout, re.MULTILINE)
    # The table of tokens comes where `make bench` has installed what it needs.
    assert len(titles) == len(set(titles)) == 30 + MODULES.exists()
    assert "nan" not in done.stdout
    assert not list(tmp_path.iterdir())
