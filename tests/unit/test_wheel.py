"""What setuptools would put into the wheel, by the configuration in pyproject.toml."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = re.compile(r"app/console/(assets|templates|vendored)/|app/engines/.+\.json$")
RECIPE = re.compile(r"app/engines/((.+/)?training|encoder/export)/")
LISTING = """
import json, sys
from setuptools import Distribution

distribution = Distribution({"script_name": "setup.py"})
distribution.parse_config_files(["pyproject.toml"])
distribution.get_command_obj("egg_info").egg_base = sys.argv[1]
build = distribution.get_command_obj("build_py")
build.build_lib = "lib"
build.ensure_finalized()
print(json.dumps([path.partition("/")[2] for path in build.get_outputs(include_bytecode=False)]))
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """Return the paths of the wheel's files, relative to the repository."""
    metadata = tmp_path_factory.mktemp("metadata")
    listed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LISTING, str(metadata)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return set(json.loads(listed.stdout))


def files_of_the_service():
    return {str(path.relative_to(ROOT)) for path in (ROOT / "app").rglob("*") if path.is_file()}


def copied():
    """Return the files that the wheel has from outside the package, by their places in it."""
    migrations = {path.relative_to(ROOT) for path in (ROOT / "migrations").rglob("*.py")}
    return {"app/alembic.ini", *(f"app/{path}" for path in migrations)}


def test_no_recipe_of_weights_is_shipped(shipped):
    recipes = {name for name in files_of_the_service() if RECIPE.match(name)}
    assert {
        "app/engines/pii/training/train.py",
        "app/engines/pii/transformer/training/train.py",
        "app/engines/moderation/training/templates.json",
        "app/engines/encoder/export/graph.py",
    } <= recipes
    assert not recipes & shipped


def test_every_other_module_and_all_weights_are_shipped(shipped):
    wanted = {
        name
        for name in files_of_the_service()
        if not RECIPE.match(name)
        and (name.endswith((".py", "py.typed")) or "/weights/" in name or DATA.match(name))
    }
    assert {
        "app/main.py",
        "app/services/audit/export.py",
        "app/console/templates/frame.html",
        "app/console/vendored/htmx.min.js",
        "app/engines/secrets/seed_words.json",
        "app/engines/pii/weights/tagger.npz",
        "app/engines/pii/weights/tagger-world.npz",
        "app/engines/pii/transformer/weights/names-int8.onnx",
        "app/engines/grounding/weights/judge.json",
    } <= wanted
    assert shipped == wanted | copied()


def test_every_migration_is_shipped_beside_the_service(shipped):
    assert {"app/alembic.ini", "app/migrations/env.py"} <= copied() <= shipped


def test_nothing_that_is_shipped_imports_a_recipe(shipped):
    imports = {
        f"{name}: {module}"
        for name in shipped
        if name.endswith(".py") and name not in copied()
        for module in imported_modules(ast.parse((ROOT / name).read_text(encoding="utf-8")))
        if RECIPE.match(module.replace(".", "/") + "/")
    }
    assert not imports


def imported_modules(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
