"""The bytes of an event: those of earlier releases stay what they were, and every member is in the newest."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest

from app.core.audit import AuditEvent, WriterNumber
from app.services.audit.leaves import leaf_of
from app.store.audit.audit import RecordedEvent

NUMBER = WriterNumber("w", 5)
OLD = AuditEvent(
    tenant="acme",
    id=UUID(int=7),
    at=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    actor="00000001",
    roles=("invoker", "auditor"),
    action="middleware.invoke",
    outcome="ok",
    middleware="pii_redaction",
    policy_version=3,
    scope_ref="ab",
    counts={"PERSON": 2},
    duration_us=9,
    request_id="r",
    details={"x": True},
    sealed=b"c",
)
NEW = replace(
    OLD,
    on_behalf_of="cd",
    key_name="desk",
    address_class="private",
    decision="change",
    versions={"sluice": "0.2.0", "engines": {"m": "e 1"}},
)
# Written by the releases that made such events.
WRITTEN = {
    None: "e01ce264c9f9c5e57d577c3df9ff87cc547d38d114ada41f7b3878a6703a4595",
    NUMBER: "fbdc1d6fdda71639a8910cdc1d94b37a49558568fa6971db7f2d6c99cd88bc86",
}
OTHER: dict[str, Any] = {
    "id": UUID(int=8),
    "at": OLD.at + timedelta(microseconds=1),
    "roles": ("invoker",),
    "counts": {"PERSON": 1},
    "details": {},
    "sealed": b"d",
    "versions": {"sluice": "0.2.1", "engines": {"m": "e 1"}},
}


def leaf(event: AuditEvent, number: WriterNumber | None = NUMBER) -> str:
    return sha256(b"\0" + leaf_of(RecordedEvent(event, b"", number))).hexdigest()


@pytest.mark.parametrize("number", WRITTEN)
def test_an_event_of_an_earlier_release_has_the_leaf_that_it_was_sealed_with(number: Any) -> None:
    assert leaf(OLD, number) == WRITTEN[number]


@pytest.mark.parametrize("member", [member.name for member in fields(AuditEvent)])
def test_every_member_is_in_the_leaf(member: str) -> None:
    value = getattr(NEW, member)
    other = OTHER.get(member, value + 1 if isinstance(value, int) else f"{value}x")
    assert leaf(replace(NEW, **{member: other})) != leaf(NEW)


@pytest.mark.parametrize("member", ["on_behalf_of", "key_name", "address_class", "decision", "versions"])
def test_what_was_said_cannot_be_taken_back(member: str) -> None:
    assert leaf(replace(NEW, **{member: None})) != leaf(NEW)


@pytest.mark.parametrize("number", WRITTEN)
@pytest.mark.parametrize("member", ["on_behalf_of", "key_name", "address_class", "decision", "versions"])
def test_nothing_can_be_added_to_an_event_of_an_earlier_release(member: str, number: Any) -> None:
    assert leaf(replace(OLD, **{member: getattr(NEW, member)}), number) != leaf(OLD, number)
