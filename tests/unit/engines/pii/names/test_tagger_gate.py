"""The gate spares text without a likely name the convolutions, and loses no name for it."""

from collections.abc import Callable
from importlib import resources
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from app.engines.pii.names.tagger import TAGS, Tagger

PLAIN = [
    "The report is attached and the figures are in the second table.",
    "for (let i = 0; i < rows.length; i += 1) { total += rows[i].amount; }",
    "2026-11-20 10:00:00 ERROR connection refused, retry 3 of 5 after 200 ms",
    "We could not find what you were looking for. Please try again in a few minutes.",
]
NAMED = [
    ("Please ask Priya Raghunathan about the invoice.", "Priya Raghunathan"),
    ("The report is attached and the figures are in the second table. Thanks, Deborah", "Deborah"),
    ('{"id": 7, "assignee": "Tomás Herrera", "open": true}', "Tomás Herrera"),
    ("my name is karen whitfield and i need a refund", "karen whitfield"),
]
WIDE_OPEN = np.float16(10_000)


def changed(change: Callable[[dict[str, Any]], None]) -> Tagger:
    """Return the tagger with changed weights."""
    stored = resources.files("app.engines.pii").joinpath("weights", "tagger.npz").read_bytes()
    with np.load(BytesIO(stored), allow_pickle=False) as weights:
        arrays = {name: weights[name] for name in weights.files}
    change(arrays)
    written = BytesIO()
    np.savez(written, **arrays)
    written.seek(0)
    return Tagger(written)


def all_are_people(arrays: dict[str, Any]) -> None:
    """Whatever reaches the convolutions is a person."""
    arrays["out"] = np.zeros_like(arrays["out"])
    arrays["out_bias"] = np.where(np.array(TAGS) == "U-PERSON", 20, 0).astype(np.float16)


def open_gate(arrays: dict[str, Any]) -> None:
    """Everything reaches the convolutions."""
    arrays["gate_out_bias"] = WIDE_OPEN


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_without_a_likely_name_runs_no_convolution(text: str) -> None:
    assert changed(all_are_people)(text) == []

    def both(arrays: dict[str, Any]) -> None:
        all_are_people(arrays)
        open_gate(arrays)

    assert len(changed(both)(text)) > len(text.split()) / 2


def test_a_name_behind_the_gate_is_found() -> None:
    gated, ungated = Tagger.embedded(), changed(open_gate)
    for text, name in NAMED:
        found = gated(text)
        assert [text[span.start : span.end] for span in found] == [name]
        assert [span.score for span in found] == pytest.approx([span.score for span in ungated(text)])


def test_the_gate_lets_only_the_surroundings_of_a_name_through() -> None:
    text = " ".join(PLAIN) + " My name is Jane Smith. " + " ".join(PLAIN)
    through = changed(all_are_people)(text)
    assert any(text[span.start : span.end] == "Jane" for span in through)
    assert len(through) < 12
