"""Run the tests of each mutant in a tree that holds this one mutant, and say what became of it."""

import contextlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from tests.conftest import GIVEN, start_postgres
from tests.mutation.selecting import Reach, RecordedTest
from tests.mutation.sites import Mutant

KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"
PARTS = (
    "app",
    "clients",
    "tests",
    "migrations",
    "docs",
    "deploy",
    "pyproject.toml",
    "alembic.ini",
    "README.md",
    "Makefile",
)
MARK = "SLUICE_MUTATION_TREE"
FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
LATE = re.compile(r"Timeout \(>|\+ Timeout \+")
BROKEN_IMPORT = re.compile(r"ERROR collecting|error while loading conftest", re.IGNORECASE)
TESTS_FAILED, NOTHING_RUN, NO_TESTS = 1, 4, 5  # exit codes of pytest


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: ``killer`` is the test that failed, ``reaching`` counts the tests that call it."""

    mutant: Mutant
    outcome: str
    killer: str
    tests: int
    reaching: int
    seconds: float

    def as_row(self) -> dict[str, Any]:
        """Return the verdict for a file of JSON lines."""
        site = self.mutant.site
        return {
            "mutant": self.mutant.name,
            "room": site.room,
            "place": f"{site.path}:{site.line}",
            "function": site.function,
            "operator": site.operator,
            "before": self.mutant.before,
            "after": self.mutant.after,
            "outcome": self.outcome,
            "killer": self.killer,
            "tests": self.tests,
            "reaching": self.reaching,
            "seconds": round(self.seconds, 1),
        }


class Tree:
    """A copy of the repository and a warm process in it; one mutant at a time."""

    def __init__(
        self, root: Path, place: Path, libraries: Sequence[str], environment: dict[str, str]
    ) -> None:
        self._place = place
        for part in PARTS:
            if (root / part).is_dir():
                shutil.copytree(
                    root / part, place / part, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
                )
            else:
                shutil.copy2(root / part, place / part)
        self._environment = environment | {
            MARK: str(place),
            "PYTHONPATH": str(place),
            "TMPDIR": f"{place}-tmp",
        }
        Path(self._environment["TMPDIR"]).mkdir()
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", "app", "tests"],
            cwd=place,
            env=self._environment,
            check=True,
        )
        # Bytecode of a mutant never stays: its source may have the size and time of the next one.
        self._environment["PYTHONDONTWRITEBYTECODE"] = "1"
        self._warm = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.warm"],
            cwd=place,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._send(list(libraries))

    def close(self) -> None:
        """End the warm process and whatever the tests left."""
        self._warm.kill()
        self._warm.wait()
        self._sweep()

    def run(self, tests: Sequence[str], limit_s: float, test_limit_s: float) -> tuple[int | None, str]:
        """Run tests up to the first that fails; return the exit code (``None``: too late) and the output."""
        chosen, output = Path(f"{self._place}-tests"), Path(f"{self._place}-output")
        chosen.write_text("\n".join(tests))
        arguments = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-p",
            "no:pytest_cov",
            "--tb=line",
        ]
        arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning", f"--timeout={test_limit_s}"]
        arguments += [f"--basetemp={self._place}-base", f"@{chosen}"]
        self._send({"arguments": arguments, "output": str(output), "limit_s": limit_s})
        code = json.loads(_pipe(self._warm.stdout).readline())
        self._sweep()
        return code, output.read_text(errors="replace")

    @contextlib.contextmanager
    def holding(self, mutant: Mutant) -> Iterator[None]:
        """Put the mutant into the tree and take it out again."""
        path = self._place / mutant.site.path
        original = path.with_suffix(".original")
        path.rename(original)
        path.write_text(mutant.source, encoding="utf-8")
        try:
            yield
        finally:
            original.rename(path)

    def _send(self, value: Any) -> None:
        pipe = _pipe(self._warm.stdin)
        pipe.write(json.dumps(value) + "\n")
        pipe.flush()

    def _sweep(self) -> None:
        """End the processes that the tests of this tree started and left, known by their environment."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                ours = process.pid not in {self._warm.pid, os.getpid()}
                if ours and process.environ().get(MARK) == str(self._place):
                    process.kill()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("the process has no pipe")
    return pipe


def judge(
    tree: Tree, mutant: Mutant, tests: Sequence[RecordedTest], reaching: int, table: dict[str, Any]
) -> Verdict:
    """Return the verdict on one mutant.

    A mutant that no test reaches has survived. A failure beyond the unit tests, or for lack of time, counts only if the
    same test fails again by itself: a busy machine can fail what waits for other processes.
    """
    started = time.monotonic()
    outcome, killer = SURVIVED, ""
    if tests:
        with tree.holding(mutant):
            limits = table["mutant_limit_s"], table["test_limit_s"]
            left = [test.name for test in tests]
            while left:
                code, output = tree.run(left, *limits)
                failed = FAILED_TEST.findall(output)
                killer = failed[0] if failed else ""
                doubtful = code == TESTS_FAILED and (
                    LATE.search(output) or not killer.startswith("tests/unit/")
                )
                if doubtful and killer in left and tree.run([killer], *limits)[0] == 0:
                    left = left[left.index(killer) + 1 :]
                    continue
                outcome = verdict(code, output)
                break
    killer = killer if outcome != SURVIVED else ""
    return Verdict(mutant, outcome, killer, len(tests), reaching, time.monotonic() - started)


def verdict(code: int | None, output: str) -> str:
    """Return what an exit code and the output of pytest say of a mutant.

    Raises ``RuntimeError`` where pytest did not find a test, and not because the mutant breaks the import of its file.
    """
    if code is None or (code != 0 and LATE.search(output)):
        return TIMED_OUT
    if code in {NOTHING_RUN, NO_TESTS} and not BROKEN_IMPORT.search(output):
        raise RuntimeError(f"tests of the record are gone, or another option is wrong:\n{output[-1000:]}")
    return SURVIVED if code == 0 else KILLED


def run_all(
    root: Path,
    mutants: Sequence[Mutant],
    reach: Reach,
    table: dict[str, Any],
    tell: Callable[[Verdict], None],
) -> None:
    """Judge all mutants on as many trees as the table says; ``tell`` gets each verdict as it comes, one at a time."""
    orders: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        orders.put(mutant)
    telling = threading.Lock()
    server = start_postgres(f"mutants{os.getpid()}")
    environment = os.environ | {GIVEN: server.get_uri(), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    errors: list[BaseException] = []

    def work(place: Path) -> None:
        tree = Tree(root, place, reach.libraries, dict(environment))
        try:
            with contextlib.suppress(queue.Empty):
                while not errors:
                    mutant = orders.get_nowait()
                    function = f"{mutant.site.module}:{mutant.site.function}"
                    tests = reach.select(function, table["budget_s"], table["most_tests"])
                    judged = judge(tree, mutant, tests, len(reach.tests.get(function, ())), table)
                    with telling:
                        tell(judged)
        except BaseException as error:
            errors.append(error)
            raise
        finally:
            tree.close()

    try:
        with tempfile.TemporaryDirectory(prefix="sluice-mutants-", ignore_cleanup_errors=True) as folder:
            threads = []
            for number in range(table["processes"]):
                (Path(folder) / str(number)).mkdir()
                threads.append(threading.Thread(target=work, args=(Path(folder) / str(number),)))
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    thread.join()
            except KeyboardInterrupt as error:  # the mutants that run end first, and nothing is left behind
                errors.append(error)
                for thread in threads:
                    thread.join()
    finally:
        server.cleanup()
    if errors:
        raise errors[0]
