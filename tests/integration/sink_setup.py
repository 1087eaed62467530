"""What tests of sinks share: events of three tenants, a sink in memory."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK, OUTCOME_REFUSED
from app.core.contracts.sinks import SinkBatch, SinkError, SinkTooLargeError
from app.core.request import RequestInfo
from tests.integration.access_setup import Replica
from tests.integration.sealing import seal_all

TENANTS = ("acme", "borealis", "cedar")
REQUEST = RequestInfo("0193b2f0-7c1d", f"00-{'ab' * 16}-{'cd' * 8}-01", None, math.inf)


class Kept:
    """A sink that keeps what it gets, unless it is told to fail: after so many events of a batch, or bytes."""

    name = "kept"

    def __init__(self) -> None:
        self.events: list[str] = []
        self.lines: list[bytes] = []
        self.fails_after: int | None = None
        self.wait_s = 0
        self.most_bytes = 1 << 30
        self.rejects = 0
        self.refused: list[int] = []

    async def deliver(self, batch: SinkBatch) -> int:
        if sum(len(event.line) for event in batch.events) > self.most_bytes:
            self.refused.append(len(batch.events))
            raise SinkTooLargeError("It takes less.")
        taken = batch.events if self.fails_after is None else batch.events[: self.fails_after]
        self.events += [event.uid for event in taken]
        self.lines += [event.line for event in taken]
        if self.fails_after is not None:
            raise SinkError("It is away.", self.wait_s)
        return self.rejects


async def record(replica: Replica, count: int, *, seal: bool = True) -> None:
    """Record events of all tenants, and seal them in more than one step."""
    for number in range(count):
        user = "somebody" if number > 9 else None
        roles = frozenset({Role.INVOKER, Role.AUDITOR})
        caller = Caller(TENANTS[number % 7 % 3], "00000001", roles, key_name="desk", end_user=user)
        event = replica.audit.new_event(
            *(caller, ("middleware.invoke", "key.revoke", "policy.update", "audit.gap")[number % 4]),
            (OUTCOME_OK, OUTCOME_REFUSED, OUTCOME_FAILED)[number % 3],
            REQUEST if number % 2 else None,
            middleware=("pii_redaction", None, "pii_restoration")[number % 3],
            error_code=None if number % 3 == 0 else "forbidden",
            scope_ref="ab" * 32 if number % 5 else None,
            counts={"PERSON": 2, "ÉTAT": 1} if number % 4 == 0 else {},
            details={"provider": "openai", "model": "gpt", "number": number} if number % 2 else {},
            policy_version=number or None,
            sealed=b"kept content" if number == 1 else None,
            decision=("allow", "flag", "change", "block", None)[number % 5],
        )
        await replica.audit.record(event)
        if seal and number % 5 == 4:
            await seal_all(replica.audit)
    if seal:
        await seal_all(replica.audit)


async def in_log(replica: Replica) -> list[str]:
    """Return the ids of all sealed events by tenant and position."""
    async with replica.database.connection() as tx:
        raw = await tx.exec_driver_sql("SELECT event FROM log_leaf ORDER BY tenant, position")
        return [str(row[0]).replace("-", "") for row in raw]


def documents(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def by_tenant(delivered: Sequence[dict[str, Any]]) -> list[str]:
    """Return the ids of what was delivered, first time each, by tenant in the order of delivery."""
    first = {each["metadata"]["uid"]: each["metadata"]["tenant_uid"] for each in delivered}
    return [uid.replace("-", "") for uid, _ in sorted(first.items(), key=lambda pair: pair[1])]


async def record_large(replica: Replica, text: str) -> str:
    """Record and seal an event whose details have a text; return its id."""
    caller = Caller("acme", "00000001", frozenset({Role.INVOKER}), key_name="desk")
    event = replica.audit.new_event(
        caller, "middleware.invoke", OUTCOME_OK, REQUEST, details={"text": text, "n": 1}
    )
    await replica.audit.record(event)
    await seal_all(replica.audit)
    return str(event.id)
