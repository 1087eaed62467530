"""Read labelled texts: one JSON object per line, with spans in our format or that of Presidio's evaluator."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.core.contracts.engines import Span


class FaultyLineError(ValueError):
    """A line is not a labelled text; ``fault`` says why and never quotes the line."""

    def __init__(self, line: int, fault: str) -> None:
        super().__init__(f"line {line}: {fault}")
        self.line = line
        self.fault = fault


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text and the spans to be found in it, sorted; ``line`` is its line in the file, from 1."""

    line: int
    text: str
    spans: list[Span]


def read_labelled(
    content: str, label_of: Callable[[str], str | None]
) -> tuple[list[LabelledText], list[str]]:
    """Return the texts of ``content``, and the labels without a type here; their spans are left out.

    ``label_of`` returns the type for a label of the file, in upper case. Raises FaultyLineError.
    """
    texts: list[LabelledText] = []
    unknown: set[str] = set()
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            raise FaultyLineError(number, "this is not JSON.") from None
        text = record.get("text", record.get("full_text")) if isinstance(record, dict) else None
        if not isinstance(text, str) or not isinstance(record.get("spans"), list):
            raise FaultyLineError(number, 'the members "text" and "spans" are required.')
        spans = []
        for raw_span in record["spans"]:
            start, end, name = _span(raw_span, number)
            if not 0 <= start < end <= len(text):
                raise FaultyLineError(number, f"the span from {start} to {end} is outside the text.")
            label = label_of(name.upper())
            if label is None:
                unknown.add(name)
            else:
                spans.append(Span(start, end, label, 1.0))
        texts.append(LabelledText(number, text, sorted(spans, key=lambda span: (span.start, span.end))))
    return texts, sorted(unknown)


def _span(raw_span: Any, line: int) -> tuple[int, int, str]:
    """Return start, end and label of a span: a list of the three, or an object."""
    if isinstance(raw_span, dict):
        start = raw_span.get("start", raw_span.get("start_position"))
        end = raw_span.get("end", raw_span.get("end_position"))
        name = raw_span.get("label", raw_span.get("entity_type"))
    else:
        start, end, name = (
            raw_span
            if isinstance(raw_span, list) and len(raw_span) == len(("start", "end", "label"))
            else (None,) * 3
        )
    if isinstance(start, int) and isinstance(end, int) and isinstance(name, str):
        return start, end, name
    raise FaultyLineError(line, 'a span needs "start", "end" and "label".')
