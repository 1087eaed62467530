"""The clients as users get them: built, installed from the artefact, used against a running service."""

from pathlib import Path

import pytest

from tests.artefacts import ROOT, installed, run, wheel_of
from tests.e2e.running import running

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
    with running(tmp_path) as service:
        done = run([str(programs / "python"), "-c", USE], cwd=tmp_path, **service.client)
    assert done.stdout == "My name is [PERSON_1]. Hello John Doe !\n"
