"""``sluice documents`` on the host: files go in once, are found by those who may, and go for good."""

import json
from pathlib import Path

from tests.e2e.running import begun, sluice


def test_files_go_in_are_found_and_go_for_good(tmp_path: Path) -> None:
    environment = begun(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "q4.md").write_text("# Q4 Planning Notes\n- Focus on EMEA expansion\n")
    (notes / "broken.pdf").write_text("no PDF")

    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        done = sluice("documents", *arguments, environment=environment)
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr

    said, noted = run("add", str(notes), "-c", "internal_docs", "--access", "role:auditor", code=1)
    assert said == "1 created\n"
    assert "[1/2] broken.pdf  The document cannot be read as a PDF" in noted
    (document,) = json.loads(run("list", "-c", "internal_docs", "--json")[0])
    assert (document["title"], document["access"]) == ("Q4 Planning Notes", ["role:auditor"])
    asked = "search", "planning for Q4", "--json", "--as"
    assert [one["title"] for one in json.loads(run(*asked, "role:auditor")[0])] == ["Q4 Planning Notes"]
    assert run("delete", document["id"], "-c", "internal_docs", "--yes")[0] == "Deleted: 1 document.\n"
    assert "internal_docs  0" in run("list")[0]
