"""What was derived from patterns is kept for the next start, and used only where it was derived from just these."""

import re

import pytest

from app.engines.pii.scan import derived
from app.engines.pii.scan.derived import Question, probes_of
from app.engines.pii.scan.superset import Probe

QUESTIONS = [
    Question(r"\b\d{3}-\d{2}-\d{4}\b", re.IGNORECASE),
    Question(r"(?<!\w)(?:grün|rosa)\d+", re.IGNORECASE),
    Question(r"[a-z]+\d[a-z\d]*", 0, r"[a-z]\d", 0),
    Question(r".*", 0),
]


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.delenv("CACHE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sluice"


@pytest.fixture
def answered(monkeypatch):
    """Return the questions that were not answered from the disk."""
    asked = []

    def watched(question, answer=derived._answer):
        asked.append(question)
        return answer(question)

    monkeypatch.setattr(derived, "_answer", watched)
    return asked


def test_a_later_start_gets_the_same_probes_without_deriving_them(folder, answered):
    first = probes_of(QUESTIONS)

    assert probes_of(QUESTIONS) == first
    assert answered == QUESTIONS
    assert [type(one) for one in first] == [Probe, Probe, Probe, str]
    assert len(set(first)) == 4


@pytest.mark.parametrize("change", [lambda it: it[:-1], lambda it: it.replace(b'"', b"'"), lambda _it: b""])
def test_a_file_that_is_not_what_was_written_is_not_used(folder, answered, change):
    first = probes_of(QUESTIONS)
    (file,) = folder.iterdir()
    file.write_bytes(change(file.read_bytes()))

    assert probes_of(QUESTIONS) == first
    assert len(answered) == 2 * len(QUESTIONS)
    assert probes_of(QUESTIONS) == first
    assert len(answered) == 2 * len(QUESTIONS), "the spoilt file was not replaced"


def test_other_patterns_or_other_code_derive_anew(folder, answered, monkeypatch):
    probes_of(QUESTIONS)

    probes_of(QUESTIONS[1:])
    monkeypatch.setattr(derived, "_SOURCES", b"of another version")
    probes_of(QUESTIONS)

    assert len(answered) == 3 * len(QUESTIONS) - 1


def test_where_the_code_cannot_be_read_nothing_is_kept(folder, answered, monkeypatch):
    monkeypatch.setattr(derived, "_SOURCES", b"")

    assert probes_of(QUESTIONS) == probes_of(QUESTIONS)
    assert len(answered) == 2 * len(QUESTIONS)
    assert not folder.exists()
