"""What became of a conversation, step by step, as the record tells it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.core.audit import OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_SENT, AuditEvent
from app.services.vault.reveals import REVEAL

_LOOK: Final = "vault.entries"
_ACTIONS: Final = {REVEAL: "revealed", "vault.set_expiry": "expiry set"}
_ERASES: Final = "vault.erase_"
_RESTORES: Final = "pii_restoration"
_ANSWERS: Final = frozenset({"gateway.answer", "gateway.restore"})
_LEFT: Final = "egress_"
"""What stands before a type that the gateway masked in the very bytes that leave."""


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """An event with the words for what it did; ``times``: how many of the same kind stand together, ``event`` newest.

    ``since`` is when the oldest of them happened.
    """

    words: Sequence[str]
    event: AuditEvent
    times: int
    since: datetime


def timeline(events: Iterable[AuditEvent]) -> list[TimelineStep]:
    """Return events (newest first) as steps; looks of one key that follow each other are one step."""
    steps: list[TimelineStep] = []
    for event in events:
        words = words_of(event)
        last = steps[-1] if steps else None
        if last and words == ["looked"] == last.words and event.actor == last.event.actor:
            steps[-1] = TimelineStep(words, last.event, last.times + 1, event.at)
        else:
            steps.append(TimelineStep(words, event, 1, event.at))
    return steps


def words_of(event: AuditEvent) -> list[str]:
    """Return the words for what an event did to a conversation, one at least."""
    if event.outcome in {OUTCOME_REFUSED, OUTCOME_FAILED}:
        return [event.outcome]
    if event.action == _LOOK:
        return ["revealed" if event.details.get("originals") else "looked"]
    if event.action in _ACTIONS:
        return [_ACTIONS[event.action]]
    if event.action.startswith(_ERASES):
        return ["erased"]
    words = ["sent"] if event.outcome == OUTCOME_SENT else []
    # Types are written large, numbers of other things small. Answers of the gateway count the types that came back.
    has_types = any(number and name.removeprefix(_LEFT).isupper() for name, number in event.counts.items())
    is_answer = event.action in _ANSWERS
    if has_types and not is_answer:
        words.append("masked")
    if event.middleware == _RESTORES or event.counts.get("restored") or (has_types and is_answer):
        words.append("restored")
    return words or ["passed"]
