"""``sluice concerns`` on the host: what the declarative file says is listed and shown."""

import json
from pathlib import Path

from tests.e2e.running import begun, sluice

DOCUMENT = """\
concerns:
- name: security
  description: Security level required for the operation
  values: [high, medium, low]
  default: medium
- {name: latency, description: Seconds, values: {min: 1, max: 60, step: 1}, default: 5, on_invalid: clamp}
concernMappings:
- {kind: tool, name: crypto__*, concerns: {security: [high, medium], latency: {max: 10}}}
"""


def test_concerns_of_a_file_are_listed_and_shown(tmp_path: Path) -> None:
    environment = begun(tmp_path)

    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        done = sluice(*arguments, environment=environment)
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr

    file = tmp_path / "sluice.yaml"
    file.write_text(DOCUMENT)
    run("apply", str(file))

    head, latency, security = run("concerns", "list")[0].splitlines()
    assert head.split() == ["NAME", "VALUES", "DEFAULT", "ON", "INVALID", "FROM"]
    assert latency.split() == ["latency", "1", "to", "60,", "step", "1", "5", "clamp", "file"]
    assert security.split() == ["security", "high,", "medium,", "low", "medium", "ignore", "file"]
    shown = run("concerns", "show", "latency")[0].splitlines()
    assert shown[0] == "Name: latency"
    assert shown[-1].split() == ["tool", "crypto__*", "any", "to", "10"]
    document = json.loads(run("concerns", "show", "security", "--json")[0])
    assert document["concern"]["values"] == ["high", "medium", "low"]
    assert [one["name"] for one in document["mappings"]] == ["crypto__*"]
    assert "no such concern" in run("concerns", "show", "colour", code=1)[1]
