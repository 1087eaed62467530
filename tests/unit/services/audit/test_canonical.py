"""The canonical form is JSON with sorted names, whether it is made of an event or of a stored row of either engine."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.core.audit import AuditEvent, WriterNumber
from app.services.audit.canonical import payload
from app.services.audit.leaves import StoredLeaves

PLAIN: dict[str, Any] = {
    "tenant": "acme",
    "id": UUID("0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11"),
    "at": datetime(2026, 11, 23, 16, 5, 7, 123456, tzinfo=UTC),
    "actor": "00000001",
    "roles": ("invoker", "auditor"),
    "action": "middleware.invoke",
    "outcome": "ok",
}
FULL: dict[str, Any] = {
    **PLAIN,
    "tenant": 'bor"ealis\\ \u2028 \ud800 \U0001f600',
    "at": datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=1),
    "roles": (),
    "middleware": "é",
    "policy_version": 0,
    "error_code": "",
    "scope_ref": "ab" * 32,
    "in_hmac": "cd" * 32,
    "out_hmac": "ef" * 32,
    "blocks": 3,
    "bytes_in": 2**40,
    "bytes_out": 1,
    "counts": {"Z": 1, "A": 2**53, "É": 0},
    "duration_us": 9,
    "request_id": "r",
    "traceparent": "00-1-2-01",
    "details": {"b": True, "a": "x\n\u007f", "c": False, "d": None, "e": 1.5, "f": ["y", {"h": 1, "g": 2}]},
    "sealed": b"\x01kept",
}
IDENTIFIED: dict[str, Any] = {
    **FULL,
    "on_behalf_of": "12" * 32,
    "key_name": 'désk "1"',
    "address_class": "private",
    "decision": "change",
    "versions": {"sluice": "0.2.0", "engines": {"m": "e 1", "a": "é"}},
}
NUMBER = WriterNumber("0011223344556677", 41)
LATER = ("on_behalf_of", "key_name", "address_class", "decision", "versions")


def version(event: AuditEvent, number: WriterNumber | None) -> int:
    if any(getattr(event, name) is not None for name in LATER):
        return 3
    return 1 if number is None else 2


def defined(event: AuditEvent, number: WriterNumber | None) -> bytes:
    """Return the form as the page on the audit log defines it."""
    members = {name: getattr(event, name) for name in AuditEvent.__slots__}
    members["v"] = version(event, number)
    if members["v"] < 3:
        members = {name: value for name, value in members.items() if name not in LATER}
    members["id"] = event.id.hex
    members["at"] = (event.at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    members["roles"] = sorted(event.roles)
    members["sealed"] = None if event.sealed is None else hashlib.sha256(event.sealed).hexdigest()
    if number is not None:
        members |= {"writer": number.writer, "writer_seq": number.number}
    return json.dumps(members, sort_keys=True, separators=(",", ":")).encode()


def stored(event: AuditEvent, number: WriterNumber | None, engine: str) -> dict[str, Any]:
    """Return the columns of an event as the driver of an engine returns them."""
    row = {name: getattr(event, name) for name in AuditEvent.__slots__}
    for name in ("counts", "details"):
        row[name] = json.dumps(row[name])
    row["versions"] = None if event.versions is None else json.dumps(event.versions)
    row["roles"] = json.dumps(list(event.roles))
    row["writer"], row["writer_seq"] = number or (None, None)
    if engine == "sqlite":
        row["id"] = event.id.hex
        row["at"] = event.at.replace(tzinfo=None).isoformat(" ", "microseconds")
    return row


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
@pytest.mark.parametrize("number", [None, NUMBER])
@pytest.mark.parametrize(
    "members",
    [
        *(PLAIN, FULL, IDENTIFIED, {**PLAIN, "decision": "block"}, {**PLAIN, "versions": {}}),
        {**FULL, "key_name": "100% of %s", "middleware": "a%(b)s", "request_id": "%d"},
    ],
    ids=["plain", "full", "identified", "added", "empty", "signs of formats"],
)
def test_an_event_and_its_stored_row_have_the_form_that_is_defined(
    members: dict[str, Any], number: WriterNumber | None, engine: str
) -> None:
    event = AuditEvent(**members)
    expected = defined(event, number)
    assert payload(event, number) == expected
    row = stored(event, number, engine)
    leaf, signed = StoredLeaves(list(row))(list(row.values()))
    assert leaf == bytes([version(event, number)]) + expected
    assert signed == (expected if number is None else None)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("blocks", "1"),
        ("blocks", 1.0),
        ("blocks", 2),
        ("actor", 1),
        ("actor", "00000002"),
        ("actor", None),
        ("roles", '["invoker"]'),
        ("roles", "{}"),
        ("roles", "not JSON"),
        ("counts", '{"A": 1}'),
        ("details", "7"),
        ("sealed", b""),
        ("sealed", "text"),
        ("at", "some day"),
        ("at", "2026-11-23 16:05:07.123457"),
        ("id", "0193b2f07c1d7a539f0e3f6a2f1b8c12"),
        ("writer_seq", 42),
        ("writer_seq", "41"),
        *[(name, "public") for name in LATER],
        ("versions", "null"),
        ("versions", "{}"),
    ],
)
def test_a_row_with_another_value_or_type_has_another_form_or_none(column: str, value: object) -> None:
    event = AuditEvent(**PLAIN, blocks=1)
    row = stored(event, NUMBER, "sqlite")
    leaves = StoredLeaves(list(row))
    whole, _ = leaves(list(row.values()))
    row[column] = value
    try:
        changed, _ = leaves(list(row.values()))
    except (TypeError, ValueError, AttributeError):
        return
    assert changed != whole
