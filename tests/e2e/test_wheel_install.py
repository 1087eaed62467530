"""The wheel as a user gets it: installed into an environment of its own, served from any folder."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.core.access import ApiKey
from tests.artefacts import ROOT, environment, installed, run, wheel_of
from tests.conftest import fresh_postgres
from tests.e2e.running import await_ready
from tests.gateway.provider import KEY as PROVIDER_KEY
from tests.gateway.provider import provider
from tests.unit.engines.documents.samples import pdf_of

KEY = str(ApiKey.generate())
FIRST_START_S = 300
"""What is installed anew has compiled nothing yet; the limit of a test is shorter where the machine is idle."""
HOSTILE = 'raise RuntimeError("a module of the current folder was imported")\n'


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of an environment in which the built wheel is installed."""
    wheel = wheel_of(ROOT, tmp_path_factory.mktemp("wheel"))
    return installed(wheel, tmp_path_factory.mktemp("environment") / "venv")


@contextmanager
def served(programs: Path, folder: Path, *arguments: str, **settings: str) -> Iterator[str]:
    """Serve from ``folder`` with nothing but a key given; yield the address."""
    own = environment(
        HOME=str(folder.parent),
        XDG_CACHE_HOME=os.environ["XDG_CACHE_HOME"],
        SLUICE_AUTH__BOOTSTRAP_KEY=KEY,
        **settings,
    )
    with (folder.parent / "log").open("w") as log:
        process = subprocess.Popen(
            [str(programs / "sluice"), "serve", "--port", "0", *arguments],
            cwd=folder,
            env=own,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        address = re.search(r"http://[0-9.]+:\d+", process.stdout.readline())
        assert address is not None, (folder.parent / "log").read_text()
        await_ready(address[0], FIRST_START_S)
        yield address[0]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        finally:
            process.kill()
            process.stdout.close()


def sent(url: str, method: str, path: str, **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": body.pop("type", "application/json")}
    answer = httpx2.request(
        method, f"{url}/api/v1/{path}", headers=headers, timeout=30, trust_env=False, **body
    )
    assert answer.is_success, answer.text
    return answer.json()


def redacted(url: str, text: str) -> str:
    body = {"context": [{"type": "text", "text": text}], "arguments": {}}
    answer = sent(url, "POST", "middleware/pii_redaction/invoke", json=body)
    return str(answer["content"][0]["text"])


# First, since the first test also builds the wheel and installs it.
def test_the_version_is_the_one_of_the_distribution(programs: Path) -> None:
    printed = run([str(programs / "sluice"), "--version"]).stdout
    listed = run([str(programs / "python"), "-c", LISTING]).stdout
    assert printed == f"sluice {json.loads(listed)}\n"


def test_the_bill_of_materials_and_the_licences_come_with_the_wheel(programs: Path) -> None:
    read = "from importlib.metadata import files; print(*[one.locate() for one in files('sluice-mcp')], sep='\\n')"
    listed = run([str(programs / "python"), "-c", read]).stdout.splitlines()
    (bill,) = [Path(name) for name in listed if name.endswith(".dist-info/sboms/sluice-mcp.cdx.json")]
    assert json.loads(bill.read_text())["metadata"]["component"]["name"] == "sluice-mcp"
    licences = {name.partition(".dist-info/licenses/")[2] for name in listed}
    assert {"LICENSE", "docs/licences.md"} <= licences


@pytest.mark.outside
def test_a_program_changes_one_line_to_talk_through_the_wheels_gateway(
    programs: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    networks = {"SLUICE_UPSTREAMS__ALLOWED_NETWORKS": "127.0.0.0/8"}
    with provider() as behind, served(programs, folder, **networks) as url:
        entry = {"kind": "openai", "baseUrl": f"{behind.url}/v1", "allowedNetworks": ["127.0.0.0/8"]}
        sent(url, "PUT", "providers/main", json={**entry, "apiKey": PROVIDER_KEY, "models": ["gpt-*"]})
        lines = {"base_url": f"{behind.url}/v1"}, {"base_url": f"{url}/openai/v1", "api_key": KEY}
        straight, through = [
            run([str(programs / "python"), "-c", ONE_LINE, json.dumps(line)], cwd=folder) for line in lines
        ]
    assert straight.stdout == through.stdout == "You said: I am John Doe.\n" * 2
    arrived = [request.body.decode() for request in behind.arrived]
    assert ["John Doe" in body for body in arrived] == [True, True, False, False]


def test_the_wheel_serves_from_an_empty_folder(programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    with served(programs, folder) as url:
        assert redacted(url, "My name is John Doe") == "My name is [PERSON_1]"
    assert [path.name for path in folder.iterdir()] == ["var"], "beside its data it writes nothing"


def test_the_wheel_serves_where_the_folder_has_packages_of_the_same_names(
    programs: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    for name in (
        "app/__init__.py",
        "app/main.py",
        "migrations/env.py",
        "random.py",
        "socket.py",
        "pickle.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(HOSTILE)
    (folder / "alembic.ini").write_text("[alembic]\nscript_location = elsewhere\n")
    with served(programs, folder) as url:
        assert redacted(url, "My name is John Doe") == "My name is [PERSON_1]"
        sent(url, "PUT", "collections/notes", json={})
        document = pdf_of("The zeppelin landed.")
        sent(
            url, "POST", "collections/notes/documents?external_id=a", content=document, type="application/pdf"
        )


@pytest.mark.outside
def test_workers_start_where_the_folder_has_modules_of_the_library(
    programs: Path, tmp_path: Path, postgres_url: str
) -> None:
    folder = tmp_path / "project"
    for name in ("app/__init__.py", "random.py", "socket.py", "pickle.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(HOSTILE)
    with fresh_postgres(postgres_url) as database:
        settings = {"SLUICE_DATABASE__URL": database, "SLUICE_KEYS__FILE": str(tmp_path / "keys")}
        run([str(programs / "sluice"), "db", "upgrade"], cwd=folder, **settings)
        with served(programs, folder, "--workers", "2", **settings) as url:
            assert redacted(url, "My name is John Doe") == "My name is [PERSON_1]"


@pytest.mark.outside
def test_the_migrations_come_with_a_file_for_alembic(programs: Path, tmp_path: Path) -> None:
    run([str(programs / "python"), "-P", "-c", ALEMBIC, f"sqlite:///{tmp_path}/new.db"], cwd=tmp_path)
    assert (tmp_path / "new.db").stat().st_size > 0


ONE_LINE = """
import json, sys
import openai
line = {"api_key": "sk-of-the-application", **json.loads(sys.argv[1])}
with openai.OpenAI(**line) as client:
    asked = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "I am John Doe."}]}
    print(client.chat.completions.create(**asked).choices[0].message.content)
    with client.chat.completions.create(**asked, stream=True) as stream:
        print(*[chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices], sep="")
"""
LISTING = "import json; from importlib.metadata import version; print(json.dumps(version('sluice-mcp')))"
ALEMBIC = """
import sys
from pathlib import Path
import app
from alembic.config import main
main(["-c", str(Path(app.__file__).with_name("alembic.ini")), "-x", "url=" + sys.argv[1], "upgrade", "head"])
"""
