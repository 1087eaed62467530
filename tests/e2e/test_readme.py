"""Every line of the README that is meant to be pasted works when pasted."""

import json
import re
import subprocess
from typing import Any

import pytest

from tests.e2e.running import ROOT, Service

BLOCK = re.compile(r"<!-- tested: (?P<name>[a-z-]+) -->\n```sh\n(?P<code>.*?)```", re.DOTALL)
ANSWER = re.compile(r"```json\n(.*?)```", re.DOTALL)
REDACTED = "My name is [PERSON_1] and my SSN is [SSN_1]"
RESTORED = "Hello John Doe!"
README = (ROOT / "README.md").read_text()


def blocks() -> dict[str, str]:
    return {found["name"]: found["code"] for found in BLOCK.finditer(README)}


def pasted(service: Service, *names: str) -> str:
    """Run blocks in one shell and return what the last one printed."""
    code = "\necho '~~~'\n".join(blocks()[name] for name in names)
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", code.replace("http://127.0.0.1:8000", service.url)],
        env={**service.environment, **service.client},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.rpartition("~~~")[2]


def text_of(result: Any) -> str:
    return str(result["content"][0]["text"])


@pytest.fixture(scope="module")
def redacted(service: Service) -> Any:
    """Return the answer of the first block; the others need its scope."""
    return json.loads(pasted(service, "rest-redact"))


def test_the_readme_has_a_block_for_each_surface() -> None:
    surfaces = {"rest": 2, "mcp-modern": 2, "mcp-handshake": 3}

    assert {kind: sum(name.startswith(kind) for name in blocks()) for kind in surfaces} == surfaces


def test_redacting_over_rest_gives_the_answer_that_the_readme_shows(redacted: Any) -> None:
    assert redacted == json.loads(ANSWER.findall(README)[0])


def test_restoring_over_rest_gives_the_answer_that_the_readme_shows(service: Service, redacted: Any) -> None:
    answer = json.loads(pasted(service, "rest-restore"))

    assert answer == json.loads(ANSWER.findall(README)[1])


@pytest.mark.usefixtures("redacted")
def test_the_modern_revision_redacts_and_restores(service: Service) -> None:
    assert text_of(json.loads(pasted(service, "mcp-modern-redact"))["result"]) == REDACTED
    assert text_of(json.loads(pasted(service, "mcp-modern-restore"))["result"]) == RESTORED


@pytest.mark.usefixtures("redacted")
@pytest.mark.parametrize(
    ("block", "text"), [("mcp-handshake-redact", REDACTED), ("mcp-handshake-restore", RESTORED)]
)
def test_the_handshake_revision_redacts_and_restores(service: Service, block: str, text: str) -> None:
    assert text_of(json.loads(pasted(service, "mcp-handshake-open", block))["result"]) == text
