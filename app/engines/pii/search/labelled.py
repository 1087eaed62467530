"""Labelled texts: one JSON object a line, with spans in this form or in that of Presidio's evaluator."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.core.contracts.engines import Span


class FaultyLineError(ValueError):
    """A line is no labelled text; ``fault`` says why and never repeats it."""

    def __init__(self, line: int, fault: str) -> None:
        super().__init__(f"line {line}: {fault}")
        self.line = line
        self.fault = fault


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text and what is to be found in it, sorted; ``line`` is its place in the file."""

    line: int
    text: str
    spans: list[Span]


def read_labelled(
    content: str, label_of: Callable[[str], str | None]
) -> tuple[list[LabelledText], list[str]]:
    """Return the texts of ``content``, and the labels that no type here stands for, which are left out.

    ``label_of`` gives the type that a label of the file, in upper case, stands for. Raises FaultyLineError.
    """
    texts: list[LabelledText] = []
    unknown: set[str] = set()
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            raise FaultyLineError(number, "this is no JSON.") from None
        text = record.get("text", record.get("full_text")) if isinstance(record, dict) else None
        if not isinstance(text, str) or not isinstance(record.get("spans"), list):
            raise FaultyLineError(number, 'this wants the members "text" and "spans".')
        spans = []
        for given in record["spans"]:
            start, end, name = _span(given, number)
            if not 0 <= start < end <= len(text):
                raise FaultyLineError(number, f"a span from {start} to {end} does not lie in the text.")
            label = label_of(name.upper())
            if label is None:
                unknown.add(name)
            else:
                spans.append(Span(start, end, label, 1.0))
        texts.append(LabelledText(number, text, sorted(spans, key=lambda span: (span.start, span.end))))
    return texts, sorted(unknown)


def _span(given: Any, line: int) -> tuple[int, int, str]:
    """Return start, end and label of a span: a list of the three, or an object."""
    if isinstance(given, dict):
        start = given.get("start", given.get("start_position"))
        end = given.get("end", given.get("end_position"))
        name = given.get("label", given.get("entity_type"))
    else:
        start, end, name = (
            given if isinstance(given, list) and len(given) == len(("start", "end", "label")) else (None,) * 3
        )
    if isinstance(start, int) and isinstance(end, int) and isinstance(name, str):
        return start, end, name
    raise FaultyLineError(line, 'a span wants "start", "end" and "label".')
