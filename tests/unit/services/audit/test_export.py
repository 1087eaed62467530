"""Exports that no spreadsheet takes for a program."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from app.core.audit import AuditEvent
from app.services.audit.export import COLUMNS, described, exporter


def event(**fields: Any) -> AuditEvent:
    given: dict[str, Any] = {
        "tenant": "acme",
        "id": UUID(int=7),
        "at": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "actor": "00000001",
        "roles": ("invoker", "auditor"),
        "action": "middleware.invoke",
        "outcome": "ok",
    }
    return AuditEvent(**{**given, **fields})


def rows_of(*events: AuditEvent) -> list[dict[str, str]]:
    head, written = exporter("csv")
    return list(csv.DictReader(io.StringIO((head + written(events)).decode())))


def test_an_event_is_described_completely_and_without_sealed_content() -> None:
    shown = described(event(counts={"B": 1, "A": 2}, sealed=b"ciphertext"))
    assert tuple(shown) == COLUMNS
    assert shown["at"] == "2026-01-02T03:04:05.000006Z"
    assert shown["roles"] == ["auditor", "invoker"]
    assert list(shown["counts"]) == ["A", "B"]
    assert shown["content_kept"] is True
    assert "ciphertext" not in repr(shown)


def test_times_are_shown_in_utc() -> None:
    east = timezone(timedelta(hours=2))
    assert described(event(at=datetime(2026, 1, 1, 1, tzinfo=east)))["at"].startswith("2025-12-31T23:00")


def test_json_lines_hold_one_object_each_even_with_line_breaks_inside() -> None:
    head, written = exporter("jsonl")
    page = written([event(request_id="a\nb"), event(request_id="\u2028")])
    assert head == b""
    assert [json.loads(line)["request_id"] for line in page.decode().split("\n")[:-1]] == ["a\nb", "\u2028"]


@pytest.mark.parametrize(
    "hostile",
    [
        "=HYPERLINK(1)",
        "+1+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "  =1",
        "\uff1d1",
        '=1","x',
        "=1;2\n3",
    ],
)
def test_a_cell_that_would_be_a_formula_becomes_text(hostile: str) -> None:
    head, written = exporter("csv")
    page = (head + written([event(request_id=hostile)])).decode()
    (row,) = csv.DictReader(io.StringIO(page, newline=""))
    assert row["request_id"] == f"'{hostile}"
    assert len(row) == len(COLUMNS)


def test_plain_cells_stay_as_they_are() -> None:
    (row,) = rows_of(event(request_id="a=b", middleware=None, bytes_in=5, details={"x": "=1"}))
    assert (row["request_id"], row["middleware"], row["bytes_in"]) == ("a=b", "", "5")
    assert (row["details"], row["counts"], row["content_kept"]) == ('{"x":"=1"}', "", "false")
    assert row["roles"] == "auditor invoker"
