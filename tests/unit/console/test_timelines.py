"""What became of a conversation, in words, from the events of the record."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.console.timelines import timeline, words_of
from app.core.audit import AuditEvent

BEGUN = datetime(2026, 11, 24, tzinfo=UTC)


def event(
    action: str, outcome: str = "ok", *, minute: int = 0, actor: str = "0000000a", **more: Any
) -> AuditEvent:
    moment = BEGUN + timedelta(minutes=minute)
    return AuditEvent("t", UUID(int=minute), moment, actor, ("invoker",), action, outcome, **more)


@pytest.mark.parametrize(
    ("happened", "words"),
    [
        (event("middleware.invoke", counts={"PERSON": 2}), ["masked"]),
        (event("middleware.invoke", counts={"PERSON": 0}), ["passed"]),
        (event("middleware.invoke", middleware="pii_restoration", counts={"restored": 2}), ["restored"]),
        (event("middleware.invoke", "refused", counts={"PERSON": 2}), ["refused"]),
        (event("gateway.request", "sent", counts={"PERSON": 2}), ["sent", "masked"]),
        (event("gateway.request", "sent", counts={"egress_SSN": 1}), ["sent", "masked"]),
        (event("gateway.request", "sent"), ["sent"]),
        (event("gateway.request", "failed"), ["failed"]),
        (event("gateway.answer", counts={"PERSON": 2}), ["restored"]),
        (event("gateway.answer", counts={"tokens": 2}), ["passed"]),
        (event("guardrail.restore", counts={"restored": 1}), ["restored"]),
        (event("vault.entries", details={"originals": False}), ["looked"]),
        (event("vault.entries", details={"originals": True}), ["revealed"]),
        (event("vault.reveal", counts={"PERSON": 1}), ["revealed"]),
        (event("vault.reveal", "refused"), ["refused"]),
        (event("vault.set_expiry"), ["expiry set"]),
        (event("vault.erase_handle", counts={"PERSON": 1}), ["erased"]),
        (event("vault.erase_scope", counts={"PERSON": 1}), ["erased"]),
    ],
)
def test_an_event_says_what_it_did(happened: AuditEvent, words: list[str]) -> None:
    assert words_of(happened) == words


def test_looks_of_one_key_that_follow_each_other_are_one_step() -> None:
    looks = [event("vault.entries", minute=minute) for minute in (9, 8, 7)]
    other = event("vault.entries", minute=6, actor="0000000b")
    reveal = event("vault.reveal", minute=5)
    steps = timeline(
        [*looks, other, reveal, event("vault.reveal", minute=4), event("vault.entries", minute=3)]
    )
    assert [(step.event.id.int, step.times, step.since.minute) for step in steps] == [
        (9, 3, 7),
        (6, 1, 6),
        (5, 1, 5),
        (4, 1, 4),
        (3, 1, 3),
    ]
