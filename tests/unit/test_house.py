"""The rules of the house that no linter knows."""

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from app.core.errors import all_errors
from app.edge.problems import PROBLEMS
from app.protocol.wire.errors import WIRE_ERRORS
from app.settings import walk
from app.store.migrate import head

ROOT = Path(__file__).parents[2]
LONGEST_FILE = 400
LONGEST_TEST_FILE = 450  # a table of cases may be longer than the code it tests
LONGEST_FUNCTION = 50
FULLEST_FOLDER = 20
WIRING = {
    "app/main.py:create_app",
    "app/assembly.py:opened",
    "app/protocol/server.py:build_mcp",
}  # readable lists of what is built
FORBIDDEN_NAMES = re.compile(r"(^|_)(util|utils|utility|helper|helpers|manager|managers|common|base)(_|$)")
UNFINISHED = re.compile(
    r"\b(TODO|FIXME|XXX|NotImplementedError)\b|pragma: no cover|mark\.skip|mark\.xfail|pytest\.(skip|xfail)\("
)
TOP_LEVEL = {
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "alembic.ini",
    "app",
    "clients",
    "deploy",
    "docs",
    "migrations",
    "pyproject.toml",
    "requirements.lock",
    "tests",
}
# What a room may import from other distributions; pydantic is the language of our contracts. Rooms that are
# absent (engines, cli and the entry files) hold whatever their work needs.
THIRD_PARTY = {
    "core": {"pydantic"},
    "middlewares": {"pydantic"},
    "services": {"pydantic", "yaml"},
    "store": {"alembic", "asyncpg", "obstore", "pydantic", "redis", "sqlalchemy"},
    "upstream": {"aiohttp", "anyio", "httpx2", "mcp", "mcp_types", "pydantic", "yarl"},
    "protocol": {"anyio", "mcp", "mcp_types", "pydantic", "starlette"},
    "edge": {"fastapi", "opentelemetry", "prometheus_client", "starlette", "structlog"},
    "api": {"fastapi", "pydantic", "starlette", "structlog"},
    "console": {"fastapi", "jinja2", "markupsafe", "starlette"},
}


def repository_files():
    """Return the files of the repository, and in a checkout also those not yet committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        names = [Path(name) for name in listed.stdout.decode().split("\0") if name]
    else:
        hidden = {".venv", "node_modules", "var", "__pycache__", "build"}
        names = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
        names = [name for name in names if hidden.isdisjoint(name.parts)]
    return [name for name in names if (ROOT / name).is_file()]


FILES = repository_files()
SOURCES = [name for name in FILES if name.suffix == ".py"]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in SOURCES}
APP = [name for name in SOURCES if name.parts[0] == "app"]
CLIENT = [name for name in SOURCES if name.parts[:2] == ("clients", "python")]


@functools.cache
def tree(name):
    """Return the syntax tree of a file, parsed by the first test that asks: each process collects this module."""
    return ast.parse(PAGES[name])


def imported(parsed):
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def module_of(name):
    return ".".join(name.with_suffix("").parts).removesuffix(".__init__")


def imported_modules(parsed, modules):
    """Return which of ``modules`` a file imports anywhere, for type checkers alone too."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.ImportFrom) and node.module:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from named & modules.keys() or {node.module} & modules.keys()
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & modules.keys()


def test_files_stay_below_four_hundred_lines():
    assert SOURCES
    long = {
        str(name): text.count("\n")
        for name, text in PAGES.items()
        if text.count("\n") > (LONGEST_TEST_FILE if name.parts[0] == "tests" else LONGEST_FILE)
    }
    assert not long


def test_folders_fit_a_screen():
    sizes = Counter(
        str(name.parent) for name in APP if name.stem != "__init__" and "training" not in name.parts
    )
    assert not {folder: size for folder, size in sizes.items() if size > FULLEST_FOLDER}


def test_functions_fit_a_screen():
    long = {
        f"{name}:{node.name}": node.end_lineno - node.lineno + 1
        for name in APP
        for node in ast.walk(tree(name))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    }
    assert set(long) <= WIRING


def test_a_public_class_has_one_name_in_the_whole_service():
    homes = {}
    for name in APP:
        if "training" in name.parts:
            continue
        for node in tree(name).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(name))
    assert homes
    assert not {name: places for name, places in homes.items() if len(places) > 1}


def test_names_of_the_code_say_what_they_hold():
    vague = {"one", "found", "known", "given", "told", "held"}
    names = [
        f"{path}:{node.lineno}: {name}"
        for path in APP
        if {"training", "export"}.isdisjoint(path.parts)
        for node in ast.walk(tree(path))
        if (name := getattr(node, "arg", None) or getattr(node, "id", None)) in vague
        and (isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", None), ast.Store))
    ]
    assert not names


def test_file_names_say_what_is_inside():
    vague = [
        str(name) for name in FILES if any(FORBIDDEN_NAMES.search(Path(part).stem) for part in name.parts)
    ]
    assert not vague


def test_every_module_of_the_service_opens_with_one_sentence():
    without = []
    for name in APP:
        opening = (ast.get_docstring(tree(name)) or "").split("\n\n")[0]
        if not opening.endswith((".", ":")):
            without.append(str(name))
    assert not without


FINDING_OWNERS_OF_REMARKS = (
    Path("app/engines/pii/names/structures.py"),
    Path("tests/unit/engines/pii/names/test_structures.py"),
)
"""These have the marks because they look for who is named behind them."""


def test_nothing_is_left_unfinished():
    own = Path(__file__).relative_to(ROOT)
    found = {
        f"{name}: {match[0]}"
        for name, text in PAGES.items()
        if name not in {own, *FINDING_OWNERS_OF_REMARKS}
        for match in UNFINISHED.finditer(text)
    }
    assert not found


def test_neither_the_service_nor_its_client_imports_the_other():
    assert CLIENT
    crossing = {
        (str(name), module)
        for files, other in ((APP, "sluice_client"), (CLIENT, "app"))
        for name in files
        for module in imported(tree(name))
        if module.partition(".")[0] == other
    }
    assert not crossing


def test_the_client_knows_only_its_http_library():
    own = {"sluice_client", "httpx2", "h11", *sys.stdlib_module_names}
    foreign = {
        (name.stem, root)
        for name in CLIENT
        for root in {module.partition(".")[0] for module in imported(tree(name))} - own
    }
    foreign.discard(("langchain", "langchain_core"))  # imported by those only who have it
    assert not foreign


def test_the_top_level_is_fixed():
    assert {name.parts[0] for name in FILES} <= TOP_LEVEL


@pytest.mark.parametrize("room", sorted(THIRD_PARTY))
def test_a_room_knows_only_its_own_frameworks(room):
    foreign = {
        (str(name), module.partition(".")[0])
        for name in APP
        if name.parts[1] == room
        for module in imported(tree(name))
        if module.partition(".")[0] not in {"app", *sys.stdlib_module_names, *THIRD_PARTY[room]}
    }
    assert not foreign


def test_the_service_never_imports_its_tests():
    assert not [
        str(name) for name in APP if any(m.partition(".")[0] == "tests" for m in imported(tree(name)))
    ]


def test_no_modules_import_each_other_in_a_circle():
    modules = {module_of(name): name for name in APP}
    imports = {
        module: {*imported_modules(tree(name), modules)} - {module} for module, name in modules.items()
    }
    # What imports nothing that is left can be in no circle.
    while free := {module for module, others in imports.items() if not others}:
        imports = {module: others - free for module, others in imports.items() if module not in free}
    # And what nothing imports that is left only leads to one.
    while imports.keys() - set().union(*imports.values()):
        imports = {m: others for m, others in imports.items() if m in set().union(*imports.values())}
    assert not imports


def test_facts_of_a_request_travel_in_their_record_alone():
    by_key = re.compile(r"""scope\[["']state["']\]|request\.state\b""")
    assert not [str(name) for name in APP if by_key.search(PAGES[name])]


def test_every_middleware_has_a_test_of_its_own():
    modules = {
        name.parts[2].removesuffix(".py")
        for name in APP
        if name.parts[:2] == ("app", "middlewares") and name != Path("app/middlewares/__init__.py")
    }
    assert modules
    missing = [m for m in modules if not (ROOT / f"tests/unit/middlewares/test_{m}.py").is_file()]
    assert not missing


@pytest.mark.parametrize("table", [PROBLEMS, WIRE_ERRORS], ids=["REST", "MCP"])
def test_each_surface_maps_every_error_and_no_other(table):
    assert set(table) == {error.code for error in all_errors()}


def test_error_codes_are_unique():
    codes = [error.code for error in all_errors()]
    assert len(codes) == len(set(codes))


def test_every_setting_is_read_somewhere():
    code = "\n".join(PAGES[name] for name in APP if "settings" not in name.parts)
    unread = [f"{section}.{name}" for section, name, _ in walk() if not re.search(rf"\.{name}\b", code)]
    derived = {
        "keys.file",
        "database.url",
        "database.read_url",
    }  # through Settings.key_file and DatabaseSettings
    assert set(unread) <= derived


def test_every_setting_stands_in_the_documentation():
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert not [name for section, name, _ in walk() if f"{section}__{name}".strip("_").upper() not in page]


@pytest.mark.parametrize("lock", ["requirements.lock", "tests/requirements.lock"])
def test_locked_versions_carry_hashes_and_no_address(lock):
    text = (ROOT / lock).read_text(encoding="utf-8")
    pinned = re.findall(
        r"^[A-Za-z0-9_.-]+(?:\[[a-z,]+\])?==\S+(?: ;[^\\\n]+)? \\\n {4}--hash=sha256:[0-9a-f]{64}",
        text,
        re.MULTILINE,
    )
    assert len(pinned) == len(re.findall(r"^[A-Za-z0-9]", text, re.MULTILINE)) > 50
    assert "://" not in text
    assert not re.search(r"^ *-(?!-hash)", text, re.MULTILINE)


def test_tests_run_on_the_versions_that_are_shipped():
    def versions(lock):
        return set(
            re.findall(r"^([A-Za-z0-9_.-]+==\S+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)
        )

    build_only = {pin for pin in versions("requirements.lock") if pin.startswith("setuptools==")}
    assert versions("requirements.lock") - build_only <= versions("tests/requirements.lock")


def test_migrations_stand_in_one_line():
    """Two changes that each add a migration to the same one would leave a database without a newest schema."""
    assert head() == max(path.stem for path in (ROOT / "migrations/versions").glob("*.py"))
