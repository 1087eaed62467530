"""The benchmarks run: every table comes out, and nothing is written where they are started."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.speed.tokens import MODULES
from tests.outside.debian import program
from tests.sampling import sample

ROOT = Path(__file__).parents[2]
QUICK = ("secrets", "tools")
"""Tables that take seconds in their tiny sizes."""


def printed(folder, *tables, seconds):
    """Return the titles of the tables that the benchmarks printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.benchmarks.speed", "--smoke", *tables],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not re.search(r"\bnan\b", done.stdout)  # the word: tables tell of tenants, too
    assert not list(folder.iterdir())
    titles = re.findall(r"^### (.+)$", done.stdout, re.MULTILINE)
    assert len(titles) == len(set(titles))
    return titles


def test_the_benchmarks_print_a_table_that_is_asked_for_and_write_no_file(tmp_path):
    assert printed(tmp_path, *sample("benchmarks", QUICK, 1), seconds=200)


@pytest.mark.outside
def test_make_bench_prints_every_table_and_writes_no_file(tmp_path):
    # The table of tokens comes where `make bench` has installed what it needs, that of the pooler with Debian's.
    assert len(printed(tmp_path, seconds=800)) == 44 + MODULES.exists() + (program("pgbouncer") is not None)
