"""What is found in a text that is read by itself, also in one that has nothing to scan."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.core.redaction.text_reading import explained, found_in
from tests.fakes import FakeDetector


@pytest.mark.parametrize(
    ("text", "found"),
    [("", []), ("{}", []), ('{"n": 1}', []), ('{"to": "Jane Smith"}', ["Jane Smith"])],
)
async def test_a_text_without_anything_to_scan_has_findings_like_any_other_none(
    text: str, found: list[str]
) -> None:
    spans, _ = await found_in(FakeDetector(), text, DetectionOptions())
    explanation = await explained(FakeDetector(), text, DetectionOptions())
    assert [text[span.start : span.end] for span in spans] == found
    assert explanation.spans == spans and explanation.engine == "fake"
