"""``sluice groups`` on the host: what goes in comes out, plans tell, and faults have a place."""

import json
from pathlib import Path

from tests.e2e.running import begun, environment_of, sluice

DOCUMENT = """\
groups:
- name: email
  title: E-mail
  members:
  - {kind: tool, name: mail__*}
- name: work
  members:
  - {kind: group, name: email}
"""


def test_groups_go_in_and_come_out_the_same(tmp_path: Path) -> None:
    environment = environment_of(tmp_path)

    def run(*arguments: str, given: str = "", code: int = 0) -> tuple[str, str]:
        done = sluice("groups", *arguments, environment=environment, given=given)
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr

    file = tmp_path / "groups.yaml"
    file.write_text(DOCUMENT)
    assert "There is no SQLite database" in run("import", str(file), "--dry-run", code=1)[1]
    begun(tmp_path)
    sluice("tenants", "create", "acme", environment=environment)
    planned, noted = run("import", str(file), "--dry-run")
    assert planned.splitlines() == ["+ email", "+ work"]
    assert "Dry run" in noted
    assert json.loads(run("list", "--json")[0]) == []

    run("import", "-", given=DOCUMENT)
    assert "Nothing changes." in run("import", str(file))[1]
    head, email, work = run("list")[0].splitlines()
    assert head.split() == ["NAME", "TITLE", "MEMBERS", "IN", "FROM"]
    assert email.split() == ["email", "E-mail", "1", "work", "api"]
    assert work.split() == ["work", "-", "1", "-", "api"]
    assert "mail__*" in run("show", "email")[0]

    exported = tmp_path / "out.json"
    run("export", "--format", "json", "--output", str(exported))
    assert [one["name"] for one in json.loads(exported.read_text())["groups"]] == ["email", "work"]
    assert json.loads(run("import", str(exported), "--json")[0])["unchanged"] == ["email", "work"]

    file.write_text("groups:\n- name: only\n")
    assert run("import", str(file), "--prune")[0].splitlines() == ["+ only", "- email", "- work"]

    file.write_text("groups:\n- {name: a, members: [{kind: group, name: none}]}\n")
    assert "/groups/0/members/0/name" in run("import", str(file), code=1)[1]
    assert run("list", "--tenant", "nobody", code=1)[1].endswith("sluice: There is no such tenant.\n")
    assert run("show", "none", code=1)[1].endswith("sluice: There is no such group.\n")
    run("import", "groups.txt", code=2)
