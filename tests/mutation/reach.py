"""A plugin of pytest that records which functions of the rooms each test calls: ``-p tests.mutation.reach``.

On import each function of a room gets one more statement at its start, which notes the function's name. That costs far
less than tracing lines, and sees threads too. The environment names the folder for the records
(SLUICE_MUTATION_REACH) and the rooms (SLUICE_MUTATION_ROOMS); each process of pytest writes a file of its own. Services
that run in processes forked for tests note what they call in memory that they share with it (SLUICE_MUTATION_NOTES).
"""

import ast
import importlib.abc
import importlib.machinery
import json
import mmap
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
NOTES = "SLUICE_MUTATION_NOTES"
ALL = "names.json"
"""The file with the names of all functions of the rooms: the place of a name is that of its note."""
_NAMES: dict[str, int] = {}


class Notes:
    """Which functions were called: a byte for each, in a file that all processes of a test have in memory."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._places: dict[str, int] = {}
        self._memory: bytearray | mmap.mmap = bytearray()

    def open(self, folder: Path, path: Path) -> None:
        """Share notes of the functions that ``folder`` lists in the file ``path``."""
        self._names = json.loads((folder / ALL).read_text())
        self._places = {name: place for place, name in enumerate(self._names)}
        with path.open("a+b") as file:
            file.truncate(len(self._names))
            self._memory = mmap.mmap(file.fileno(), len(self._names))

    def add(self, name: str) -> None:
        """Note that a function is called."""
        self._memory[self._places[name]] = 1

    def clear(self) -> None:
        """Forget the notes."""
        self._memory[:] = bytes(len(self._names))

    def names(self) -> list[str]:
        """Return the names of the functions that were called."""
        return [name for name, called in zip(self._names, bytes(self._memory), strict=True) if called]


CALLED = Notes()


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


def functions(root: Path, rooms: Sequence[str]) -> list[str]:
    """Return the names of all functions of the rooms, as notes have them."""
    names: list[str] = []
    for path in sorted(path for room in rooms for path in (root / room).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(path.read_bytes(), str(path))
        add_notes(tree, f"{module}:")
        names += [
            str(node.args[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__called__"
            if isinstance(node.args[0], ast.Constant)
        ]
    return sorted(set(names))


def record_here() -> None:
    """Note the calls of this process and of those forked from it for the process of pytest that started it."""
    _begin(Path(os.environ[NOTES]))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Start to record, before a ``conftest.py`` imports a module of the rooms."""
    path = Path(os.environ[FOLDER]) / f"{os.getpid()}.notes"
    os.environ[NOTES] = str(path)
    _begin(path)


def _begin(path: Path) -> None:
    CALLED.open(Path(os.environ[FOLDER]), path)
    rooms = [room.replace("/", ".") for room in os.environ[ROOMS].split(",")]
    sys.meta_path.insert(0, RecordingFinder(rooms))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Write what one test called, with its set-up, how long it took, and whether it passed."""
    CALLED.clear()
    started = time.perf_counter()
    item.stash[_FAILED] = False
    result = yield
    called = CALLED.names()
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
