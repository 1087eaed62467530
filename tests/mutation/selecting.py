"""What the tests reach, recorded once and kept; and the tests of one mutant within a budget of time."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutation.reach import ALL, FOLDER, ROOMS, functions

COMMON_WORDS = frozenset(
    [
        "a",
        "core",
        "i",
        "mcp",
        "method",
        "middleware",
        "of",
        "protocol",
        "rest",
        "service",
        "store",
        "test",
        "the",
        "wire",
    ]
)
KINDS = ("tests/unit/", "tests/integration/", "tests/protocol/", "tests/gateway/")


@dataclass(frozen=True, slots=True)
class RecordedTest:
    """One test that passed when it was recorded; ``breadth`` is how many functions it calls."""

    name: str
    seconds: float
    breadth: int

    @property
    def file(self) -> str:
        """Return the path of the file that holds the test."""
        return self.name.partition("::")[0]


@dataclass(slots=True)
class Reach:
    """Which tests call which function (``module:qualified name``), and the libraries that they import."""

    tests: dict[str, list[RecordedTest]] = field(default_factory=dict)
    libraries: list[str] = field(default_factory=list)

    def select(self, function: str, budget_s: float, most: int) -> list[RecordedTest]:
        """Return the tests to run for a mutant of a function, the most promising first.

        Files that are named after the module, class or function come before others, unit tests before others, SQLite
        before PostgreSQL, tests that call few functions before those that call many. Files take turns, so that one
        file of many variants does not use up the budget; a test of a third of the budget is left to the others.
        """
        subject = words_of(function.partition(".")[2])
        turns: dict[str, int] = defaultdict(int)
        ranked = []
        for test in sorted(self.tests.get(function, ()), key=lambda test: nearness(test, subject)):
            turns[test.file] += 1
            apart = subject.isdisjoint(words_of(Path(test.file).stem))
            ranked.append(((apart, kind(test), turns[test.file], nearness(test, subject)), test))
        chosen, spent = [], 0.0
        for _rank, test in sorted(ranked, key=lambda pair: pair[0]):
            if len(chosen) < most and spent + test.seconds <= budget_s and test.seconds <= budget_s / 3:
                chosen.append(test)
                spent += test.seconds
        return chosen or sorted(self.tests.get(function, ()), key=lambda test: test.seconds)[:1]


def nearness(test: RecordedTest, subject: frozenset[str]) -> tuple[int, int, float, str]:
    """Return a key by which the tests of a file are sorted: the words of its name, how narrow and quick it is."""
    return -len(subject & words_of(test.name.partition("::")[2])), test.breadth, test.seconds, test.name


def words_of(name: str) -> frozenset[str]:
    """Return the words in a name of Python, in lower case and without the plural's s, but for those of every name."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return frozenset(word.lower().removesuffix("s") for word in words) - COMMON_WORDS


def kind(test: RecordedTest) -> tuple[int, bool]:
    """Return the place of a test among its kinds."""
    rank = next((place for place, prefix in enumerate(KINDS) if test.name.startswith(prefix)), len(KINDS))
    return rank, "postgresql" in test.name


def read(folder: Path) -> Reach:
    """Return what the records in a folder say; the newest record of a test counts."""
    newest: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime):
        names: list[str] = []
        for line in path.read_text().splitlines():
            record = json.loads(line)
            names += record["fresh"]
            newest[record["test"]] = record, names
    tests: dict[str, list[RecordedTest]] = defaultdict(list)
    for record, names in newest.values():
        if record["passed"]:
            test = RecordedTest(record["test"], record["seconds"], len(record["called"]))
            for number in record["called"]:
                tests[names[number]].append(test)
    libraries = folder / "libraries.json"
    return Reach(dict(tests), json.loads(libraries.read_text()) if libraries.exists() else [])


def stale(root: Path, folder: Path, paths: Sequence[str], rooms: Sequence[str], *, trust: bool) -> list[str]:
    """Return the test files to record: all of them once a room has changed, unless ``trust``; else the changed ones."""
    before = json.loads((folder / "digests.json").read_text()) if (folder / "digests.json").exists() else {}
    now = digests(root, paths, rooms)
    if before.get("rooms") != now["rooms"] and not (trust and before):
        return [name for name in now if name != "rooms"]
    return [name for name, digest in now.items() if name != "rooms" and before.get(name) != digest]


def forget(folder: Path, kept: Iterable[str]) -> None:
    """Select no more the recorded tests of other files than ``kept``: they are recorded again, or gone."""
    files = set(kept)
    for path in folder.glob("*.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            record["passed"] = record["passed"] and record["test"].partition("::")[0] in files
        changed = path.stat().st_mtime_ns
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        os.utime(path, ns=(changed, changed))


def digests(root: Path, paths: Sequence[str], rooms: Sequence[str]) -> dict[str, str]:
    """Return the digest of each test file, and one of all rooms."""
    files = [path for folder in paths for path in sorted((root / folder).rglob("test_*.py"))]
    found = {str(path.relative_to(root)): digest([path]) for path in files}
    return found | {"rooms": digest(path for room in rooms for path in sorted((root / room).rglob("*.py")))}


def digest(paths: Iterable[Path]) -> str:
    """Return the digest of the content of files."""
    total = hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())
    return total.hexdigest()


def record(root: Path, folder: Path, table: dict[str, Any], *, trust: bool) -> Reach:
    """Run the tests that have changed since the last record, and return all that is known then."""
    folder.mkdir(parents=True, exist_ok=True)
    files = stale(root, folder, table["tests"], table["rooms"], trust=trust)
    now = digests(root, table["tests"], table["rooms"])
    forget(folder, now.keys() - set(files))
    if files:
        (folder / ALL).write_text(json.dumps(functions(root, table["rooms"])))
        print(f"Recording which functions the tests of {len(files)} files call", flush=True)
        with tempfile.TemporaryDirectory(prefix="sluice-reach-") as scratch:
            arguments = Path(scratch) / "files"
            arguments.write_text("\n".join(files))
            environment = os.environ | {FOLDER: str(folder.resolve()), ROOMS: ",".join(table["rooms"])}
            tier = "not soak and not outside"
            command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutation.reach", "-m", tier]
            command += [
                "-n",
                str(table["processes"]),
                "--dist",
                "worksteal",
                "--tb=no",
                "--continue-on-collection-errors",
                f"@{arguments}",
            ]
            subprocess.run(command, cwd=root, env=environment, check=False)
        for notes in folder.glob("*.notes"):
            notes.unlink()
        (folder / "digests.json").write_text(json.dumps(now))
    return read(folder)
