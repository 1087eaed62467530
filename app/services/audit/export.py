"""The external forms of audit events: JSON objects, JSON lines and CSV rows."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from app.core.audit import AuditEvent, Kept

ExportFormat = Literal["jsonl", "csv"]
COLUMNS: Final = (
    "id",
    "at",
    "tenant",
    "actor",
    "roles",
    "action",
    "middleware",
    "policy_version",
    "outcome",
    "error_code",
    "scope_ref",
    "in_hmac",
    "out_hmac",
    "blocks",
    "bytes_in",
    "bytes_out",
    "counts",
    "duration_us",
    "request_id",
    "traceparent",
    "details",
    "content_kept",
    "on_behalf_of",
    "key_name",
    "address_class",
    "decision",
    "versions",
    "end_user_kept",
)
_PAGE: Final = 500
_FORMULA_STARTS = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)  # the last four are full-width characters


def described(event: AuditEvent) -> dict[str, Any]:
    """Return ``event`` as a JSON object; what is sealed is only mentioned (``…_kept``)."""
    kept = Kept.of(event.sealed)
    return {
        "id": str(event.id),
        "at": moment_text(event.at),
        "tenant": event.tenant,
        "actor": event.actor,
        "roles": sorted(event.roles),
        "action": event.action,
        "middleware": event.middleware,
        "policy_version": event.policy_version,
        "outcome": event.outcome,
        "error_code": event.error_code,
        "scope_ref": event.scope_ref,
        "in_hmac": event.in_hmac,
        "out_hmac": event.out_hmac,
        "blocks": event.blocks,
        "bytes_in": event.bytes_in,
        "bytes_out": event.bytes_out,
        "counts": dict(sorted(event.counts.items())),
        "duration_us": event.duration_us,
        "request_id": event.request_id,
        "traceparent": event.traceparent,
        "details": dict(sorted(event.details.items())),
        "content_kept": kept.content is not None,
        "on_behalf_of": event.on_behalf_of,
        "key_name": event.key_name,
        "address_class": event.address_class,
        "decision": event.decision,
        "versions": dict(event.versions) if event.versions is not None else None,
        "end_user_kept": kept.end_user is not None,
    }


def moment_text(moment: datetime) -> str:
    """Return a moment as it is written everywhere in the record: UTC, with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


async def exported(events: AsyncIterator[AuditEvent], form: ExportFormat) -> AsyncIterator[bytes]:
    """Yield an export of events, piece by piece."""
    head, write_page = exporter(form)
    if head:
        yield head
    page: list[AuditEvent] = []
    async for event in events:
        page.append(event)
        if len(page) == _PAGE:
            # A page of events takes milliseconds to encode, for which other requests do not wait.
            yield await asyncio.to_thread(write_page, page)
            page = []
    if page:
        yield await asyncio.to_thread(write_page, page)


def exporter(form: ExportFormat) -> tuple[bytes, Callable[[Sequence[AuditEvent]], bytes]]:
    """Return the head of an export in ``form``, and the function that encodes one page of events."""
    return (_csv([COLUMNS]), _csv_page) if form == "csv" else (b"", _jsonl_page)


def _jsonl_page(events: Sequence[AuditEvent]) -> bytes:
    lines = (json.dumps(described(event), ensure_ascii=False, separators=(",", ":")) for event in events)
    return "".join(f"{line}\n" for line in lines).encode()


def _csv_page(events: Sequence[AuditEvent]) -> bytes:
    return _csv([_cells(described(event)) for event in events])


def _cells(row: dict[str, Any]) -> list[str]:
    return [_cell(row[column]) for column in COLUMNS]


def _cell(value: Any) -> str:
    """Return ``value`` as a cell that no spreadsheet interprets as a formula.

    No number here is negative, so a cell that starts like a formula is text from outside (a request id, say) and gets
    an apostrophe in front, as OWASP advises for "CSV injection".
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return _cell(" ".join(map(str, value)))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
    text = str(value)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    page = io.StringIO()
    csv.writer(page, quoting=csv.QUOTE_MINIMAL, lineterminator="\r\n").writerows(rows)
    return page.getvalue().encode()
