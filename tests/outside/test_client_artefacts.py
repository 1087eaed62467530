"""The clients as users get them: built, installed from the artefact, used against a running service."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.artefacts import ROOT, installed, run, wheel_of
from tests.e2e.running import running
from tests.protocol.mcp_node import BIN, COMMANDS

pytestmark = pytest.mark.outside

USE = """
import sys
from sluice_client import Sluice

with Sluice() as sluice:
    safe = sluice.redact("My name is John Doe.", scope="wheel")
    print(safe.text, "".join(sluice.restore_stream(iter(["Hello [PER", "SON_1] !"]), scope="wheel")))
assert "app" not in sys.modules
"""


def test_the_python_client_works_from_its_wheel(tmp_path: Path) -> None:
    wheel = wheel_of(ROOT / "clients" / "python", tmp_path)
    programs = installed(wheel, tmp_path / "venv")
    with running(tmp_path, forked=False) as service:
        done = run([str(programs / "python"), "-c", USE], cwd=tmp_path, **service.client)
    assert done.stdout == "My name is [PERSON_1]. Hello John Doe !\n"


def test_the_typescript_client_works_from_its_package(tmp_path: Path) -> None:
    """Build it with types of our own document, pack it, install it, and compile and run a program that uses it."""
    source, user = tmp_path / "source", tmp_path / "user"
    ignored = shutil.ignore_patterns("node_modules", "dist", "openapi.json", "schema.d.ts")
    shutil.copytree(ROOT / "clients" / "typescript", source, ignore=ignored)
    document = run([sys.executable, str(ROOT / "clients" / "typescript" / "document.py")]).stdout
    (source / "openapi.json").write_text(document)
    settings = {"PATH": f"{COMMANDS}:{BIN}:/usr/bin:/bin"}
    npm = [str(COMMANDS / "npm"), "--no-audit", "--no-fund", "--ignore-scripts"]
    run([*npm, "ci"], cwd=source, **settings)
    run([*npm, "run", "build"], cwd=source, **settings)
    (packed,) = json.loads(run([*npm, "pack", "--json"], cwd=source, **settings).stdout)
    names = {file["path"] for file in packed["files"]}
    assert {"dist/index.js", "dist/index.d.ts", "dist/schema.d.ts", "LICENSE", "README.md"} <= names
    assert not [name for name in names if not name.startswith(("dist/", "LICENSE", "README", "package.json"))]
    user.mkdir()
    (user / "package.json").write_text('{"type": "module"}')
    package = str(source / packed["filename"])
    providers = json.loads((ROOT / "tests/outside/clients/node/package.json").read_text())["dependencies"]
    wrapped = [f"{name}@{providers[name]}" for name in ("openai", "@anthropic-ai/sdk")]
    run([*npm, "install", package, "typescript@5.9.3", "@types/node@24", *wrapped], cwd=user, **settings)
    for program in ("client.ts", "wrapped.mjs"):
        shutil.copy2(Path(__file__).with_name(program), user / program)
    options = ["--module", "nodenext", "--target", "es2022", "--strict", "--noUncheckedIndexedAccess"]
    run([str(user / "node_modules/.bin/tsc"), *options, "client.ts"], cwd=user, **settings)
    with running(tmp_path, forked=False) as service:
        for program in ("client.js", "wrapped.mjs"):
            done = run([str(BIN / "node"), program], cwd=user, **settings, **service.client)
            assert done.stdout == "all is well\n", program


def test_the_lock_of_the_typescript_client_names_no_registry() -> None:
    lock = (ROOT / "clients" / "typescript" / "package-lock.json").read_text(encoding="utf-8")
    assert '"integrity"' in lock
    assert '"resolved"' not in lock
