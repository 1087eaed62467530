"""The example of a host application runs as the page about it says."""

import subprocess
import sys

from tests.e2e.running import ROOT, Service

EXAMPLE = ROOT / "docs" / "examples" / "host_application.py"


def run(service: Service, **changed: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, EXAMPLE],
        env={**service.environment, **service.client, **changed},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_user_sees_names_and_the_model_sees_handles(service: Service) -> None:
    done = run(service)

    assert done.returncode == 0
    assert done.stdout == "Dear John Doe, remember to call Jane Smith today.\n"
    assert "to the model: I am [PERSON_1] ([EMAIL_1])" in done.stderr
    assert "Doe" not in done.stderr


def test_without_a_redaction_the_model_is_not_called(service: Service) -> None:
    done = run(service, SLUICE_API_KEY="slc_00000000_" + "x" * 43)

    assert done.returncode == 1
    assert "unauthenticated" in done.stderr
    assert "to the model" not in done.stderr
