"""``sluice pipelines`` on the host: stored, shown, tried and deleted."""

import json
from pathlib import Path

from tests.e2e.running import begun, sluice

PIPELINE = """\
name: to_model
steps:
- name: pii_redaction
- name: timestamp_injector
  on_error: skip
"""


def test_a_pipeline_is_stored_shown_tried_and_deleted(tmp_path: Path) -> None:
    environment = begun(tmp_path)

    def run(*arguments: str, given: str = "", code: int = 0) -> tuple[str, str]:
        done = sluice("pipelines", *arguments, environment=environment, given=given)
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr

    assert "version 1" in run("put", "-", given=PIPELINE)[1]
    shown, noted = run("show", "to_model")
    assert "Version 1" in noted
    file = tmp_path / "again.yaml"
    file.write_text(shown)
    assert "version 2" in run("put", str(file), "--expected-version", "1")[1]
    assert "changed meanwhile" in run("put", str(file), "--expected-version", "1", code=1)[1]
    assert json.loads(run("list", "--json")[0])[0]["version"] == 2
    assert "pii_redaction > timestamp_injector" in run("list")[0]

    out, steps = run("run", "to_model", "--dry-run", given="Mail jane.smith@example.com now.\n")
    assert out.rstrip().endswith("Mail [EMAIL_1] now.")
    assert "+ " in steps and "pii_redaction: ok" in steps

    assert "no pipeline" in run("run", "timestamp_injector", given="Hello.\n", code=1)[1]
    assert "no middleware of that name" in run("run", "unknown", given="Hello.\n", code=1)[1]

    file.write_text(PIPELINE.replace("on_error", "on_eror"))
    assert "/steps/1/on_eror" in run("put", str(file), code=1)[1]
    file.write_text(PIPELINE.replace("pii_redaction", "nothing"))
    assert "/steps/0/name" in run("put", str(file), code=1)[1]
    run("put", "pipeline.txt", code=2)
    run("delete", "to_model", "--yes")
    assert run("show", "to_model", code=1)[1].endswith("sluice: There is no such pipeline.\n")
