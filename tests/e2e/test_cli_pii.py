"""``sluice pii``: explained and evaluated on the host, with the recognizers of the settings, no service needed."""

import json
from pathlib import Path

import pytest

from tests.e2e.running import environment_of, sluice

RECOGNIZERS = """
recognizers:
  - {name: Badges, supported_entity: STAFF_BADGE, patterns: [{name: badge, regex: 'B-[0-9]{6}', score: 0.6}]}
"""
LABELLED = [
    {"text": "Write to jane@example.com <b>", "spans": [{"start": 9, "end": 25, "label": "EMAIL"}]},
    {
        "full_text": "B-123456 is his.",
        "spans": [{"start_position": 0, "end_position": 8, "entity_type": "BADGE"}],
    },
    {"text": "Nothing here but 219-09-9999.", "spans": []},
    {"text": "Half a pair \ud800 is no text.", "spans": []},
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "recognizers.yaml"
    file.write_text(RECOGNIZERS)
    return environment_of(tmp_path, SLUICE_DETECTION__RECOGNIZERS=str(file), SLUICE_DETECTION__WORKERS="1")


def test_a_text_is_explained_and_shown_in_colour(environment: dict[str, str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"

    done = sluice(
        *("pii", "explain", "--all", "--json", "--html", str(page)),
        given="Badge B-123456 <script> of jane@example.com on 2024-05-01",
        environment=environment,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["label"] for one in found["spans"]] == ["STAFF_BADGE", "EMAIL"]
    assert {one["recognizer"] for one in found["candidates"]} >= {
        "Badges",
        "EmailRecognizer",
        "DateRecognizer",
    }
    shown = page.read_text("utf-8")
    assert (
        "B-123456<small>STAFF_BADGE</small>" in shown and "&lt;script&gt;" in shown and "<script" not in shown
    )
    assert "unredacted" in done.stderr


def test_labelled_texts_are_scored_with_examples_of_what_went_wrong(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_text("\n".join(map(json.dumps, LABELLED)))

    page = tmp_path / "page.html"
    shown = sluice(
        *("pii", "evaluate", str(file), "--label", "BADGE=staff_badge", "--html", str(page)),
        environment=environment,
    )
    file.write_text('{"text": "x", "spans": [[0, 5, "PERSON"]]}')
    refused = sluice("pii", "evaluate", str(file), environment=environment)

    assert shown.returncode == 0, shown.stderr
    rows = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines() if line.split()}
    assert rows["EMAIL"][:5] == rows["STAFF_BADGE"][:5] == ["1", "1", "1.000", "1.000", "1.000"]
    assert rows["ANY"][:5] == ["2", "3", "0.667", "1.000", "0.800"]
    assert "line 3, SSN: Nothing here but [219-09-9999] ." in shown.stdout
    assert r"Half a pair \ud800 is no text." in page.read_text("utf-8")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "line 1: the span from 0 to 5 is outside the text." in refused.stderr
