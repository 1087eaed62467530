"""What the pages tell a reader to type works when it is typed, and prints what they show."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest

from tests.e2e.commands import COMMANDS
from tests.e2e.running import ROOT, Service, running
from tests.pages import Block, blocks_of, pages, printed_as_shown

MARK = "\x1e"  # before the line number of each block in what the page's script prints
COPY = "<!-- in: a copy of the repository -->"
REPOSITORY = (
    "app",
    "clients",
    "deploy",
    "docs",
    "migrations",
    "tests",
    "Makefile",
    "alembic.ini",
    "pyproject.toml",
)
INSTALLED = "README.md"
"""The page, beside those on a copy, whose commands are run as installed; those of others are forked."""
PAGE_S = 60
RUNNABLE = {
    str(path.relative_to(ROOT)): path
    for path in pages()
    if any(block.is_run for block in blocks_of(path.read_text(encoding="utf-8")))
}


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service as a reader of the pages has it after the first start."""
    folder = tmp_path_factory.mktemp("documented")
    with running(folder, SLUICE_UPSTREAMS__ALLOWED_NETWORKS="127.0.0.0/8") as service:
        yield service


@pytest.fixture
def tidied(documented: Service) -> Iterator[Service]:
    """Return the service, and afterwards take away what a page left in it."""
    yield documented
    headers = {"Authorization": f"Bearer {documented.key}"}
    with httpx2.Client(base_url=documented.url, headers=headers, trust_env=False) as client:
        version = client.get("/api/v1/policies").json()["version"]
        assert client.put(f"/api/v1/policies?expected_version={version}", json={}).status_code == 200
        for kind in ("pipelines", "groups", "tool-descriptions", "collections", "concerns"):
            for entry in client.get(f"/api/v1/{kind}").json()["items"]:
                path = f"/api/v1/{kind}/{entry.get(kind.removesuffix('s'), entry)['name']}"
                params = {"force": "true"} if kind == "concerns" else {}
                assert client.delete(path, params=params).status_code == 204
        servers = client.get("/api/v1/servers").json()["items"]
        for server in servers:
            if server["origin"] == "api":
                assert client.delete(f"/api/v1/servers/{server['name']}").status_code == 204
    if any(server["origin"] == "file" for server in servers):
        assert documented.sluice("apply", "/dev/stdin", given="{}").returncode == 0
        end = time.monotonic() + PAGE_S
        while connected(documented):
            assert time.monotonic() < end
            time.sleep(0.1)


def connected(service: Service) -> bool:
    """Return whether the service still has a connection to a server: a command told it by way of the database."""
    shown = httpx2.get(f"{service.url}/metrics", trust_env=False)
    assert shown.status_code == 200
    counts = re.findall(r"^sluice_upstream_servers\{[^}]*\} ([0-9.]+)$", shown.text, re.MULTILINE)
    assert counts
    return any(float(count) for count in counts)


@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.timeout(PAGE_S + 30, func_only=True)
def test_the_examples_of_a_page_do_what_it_says(name: str, tidied: Service, tmp_path: Path) -> None:
    page = RUNNABLE[name].read_text(encoding="utf-8")
    blocks = blocks_of(page)
    folder = tmp_path / "sluice"
    prepare(folder, copied=COPY in page)
    (tmp_path / "programs").mkdir()
    if COPY not in page and name != INSTALLED:
        COMMANDS.forwarding_program(tmp_path / "programs")

    done = subprocess.run(
        ["bash", "-eu", "-c", script(blocks, tmp_path)],
        cwd=folder,
        env={**tidied.environment, **tidied.client, **paths(folder, copied=COPY in page)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PAGE_S,
        check=False,
    )

    printed = dict(part.split("\n", 1) for part in done.stdout.split(MARK)[1:])
    reached = list(printed)[-1]
    assert done.returncode == 0, f"{name}:{reached}: {printed[reached]}{done.stderr}"
    for block, following in pairwise(blocks):
        if following.output:
            text = printed[str(block.line)]
            assert printed_as_shown(following, text), f"{name}:{block.line} prints {text}"


def prepare(folder: Path, *, copied: bool) -> None:
    """Make a folder that looks like the repository; one that a page changes is a copy of it."""
    folder.mkdir()
    (folder / ".venv").symlink_to(sys.prefix)
    for name in REPOSITORY:
        if not copied:
            (folder / name).symlink_to(ROOT / name)
        elif (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True)
        else:
            shutil.copy2(ROOT / name, folder / name)


def paths(folder: Path, *, copied: bool) -> dict[str, str]:
    """Return where programs and modules are found, as a reader has them after `make run`."""
    programs = f"{folder.parent}/programs:{folder}/.venv/bin:{os.environ['PATH']}"
    bytecode = {"PYTHONDONTWRITEBYTECODE": ""} if copied else {}
    root = folder if copied else ROOT
    modules = os.pathsep.join([str(root), str(root / "clients" / "python")])
    return {"PATH": programs, "PYTHONPATH": modules, **bytecode}


def script(blocks: list[Block], folder: Path) -> str:
    """Return one script for all blocks of a page."""
    lines = []
    for block in blocks:
        if block.file is not None:
            place = shlex.quote(block.file)
            content = folder / f"file-{block.line}"
            content.write_text(block.text, encoding="utf-8")
            lines.append(f"mkdir -p $(dirname {place}); cp {shlex.quote(str(content))} {place}")
        elif block.is_run:
            lines.append(f"printf '{MARK}{block.line}\\n'")
            lines.append(block.text if block.language == "sh" else python(block, folder))
    return "\n".join(lines)


def python(block: Block, folder: Path) -> str:
    """Return the command that runs a block of Python."""
    program = folder / f"line_{block.line}.py"
    program.write_text(block.text, encoding="utf-8")
    return f"python {shlex.quote(str(program))}"
