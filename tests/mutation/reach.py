"""A plugin of pytest that records which functions of the rooms each test calls: ``-p tests.mutation.reach``.

On import each function of a room gets one more statement at its start, which notes the function's name. That costs far
less than tracing lines, and sees threads too. The environment names the folder for the records
(SLUICE_MUTATION_REACH) and the rooms (SLUICE_MUTATION_ROOMS); each process writes a file of its own.
"""

import ast
import importlib.abc
import importlib.machinery
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

FOLDER = "SLUICE_MUTATION_REACH"
ROOMS = "SLUICE_MUTATION_ROOMS"
CALLED: set[str] = set()
_NAMES: dict[str, int] = {}


class RecordingLoader(importlib.machinery.SourceFileLoader):
    """Compile a module with one more statement at the start of each function; bytecode is neither read nor kept."""

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(self.get_data(self.path), self.path)
        add_notes(tree, f"{fullname}:")
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__called__"] = CALLED.add
        super().exec_module(module)


class RecordingFinder(importlib.abc.MetaPathFinder):
    """Find the modules of the rooms for ``RecordingLoader``."""

    def __init__(self, rooms: Sequence[str]) -> None:
        self._rooms = tuple(rooms)

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not any(fullname == room or fullname.startswith(f"{room}.") for room in self._rooms):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = RecordingLoader(spec.loader.name, spec.loader.path)
        return spec


def add_notes(tree: ast.AST, inside: str) -> None:
    """Put a call of ``__called__`` with the qualified name (without ``<locals>``) into each function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{inside}{node.name}"
            add_notes(node, f"{name}.")
            note = ast.Expr(ast.Call(ast.Name("__called__", ast.Load()), [ast.Constant(name)], []))
            node.body.insert(1 if ast.get_docstring(node, clean=False) is not None else 0, note)
        elif isinstance(node, ast.ClassDef):
            add_notes(node, f"{inside}{node.name}.")
        else:
            add_notes(node, inside)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Start to record, before a ``conftest.py`` imports a module of the rooms."""
    rooms = [room.replace("/", ".") for room in os.environ[ROOMS].split(",")]
    sys.meta_path.insert(0, RecordingFinder(rooms))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write what one test called, with its set-up, how long it took, and whether it passed."""
    CALLED.clear()
    started = time.perf_counter()
    item.stash[_FAILED] = False
    result = yield
    called = sorted(CALLED)
    fresh = [name for name in called if name not in _NAMES]
    for name in fresh:
        _NAMES[name] = len(_NAMES)
    record = {
        "test": item.nodeid,
        "seconds": round(time.perf_counter() - started, 4),
        "passed": not item.stash[_FAILED],
        "fresh": fresh,
        "called": [_NAMES[name] for name in called],
    }
    with (Path(os.environ[FOLDER]) / f"{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    return result


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remember that a phase of the test failed or was left out."""
    report = yield
    if report.outcome != "passed":
        item.stash[_FAILED] = True
    return report


def pytest_sessionfinish() -> None:
    """Write which libraries the tests import, for the processes that hold them ready."""
    libraries = [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] not in {"app", "tests", "conftest", "__main__", "migrations"}
        and getattr(getattr(module, "__spec__", None), "has_location", False)
    ]
    path = Path(os.environ[FOLDER]) / "libraries.json"
    if not path.exists() or len(json.loads(path.read_text())) < len(libraries):
        path.write_text(json.dumps(libraries))
