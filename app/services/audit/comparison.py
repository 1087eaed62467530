"""Compare the events of a tenant, as stored, with the hashes of its tree: piece by piece, then as a whole."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from app.core.audit import GAP_ACTION, WriterNumber
from app.core.transparency.gaps import GapSearch, NumberRange, NumberRuns, WriterGap
from app.core.transparency.hashing import HASH_BYTES, leaf_hash
from app.core.transparency.runs import PositionRuns, Run
from app.engines.cipher import RecordKeys
from app.services.audit.findings import LogFinding, Verification
from app.services.audit.leaves import StoredLeaves
from app.store.audit.standing import COLUMNS
from app.store.bulk import moment

_UNREADABLE: Final = b""
"""The hash of a row that no event was stored as: no leaf has it."""
_POSITION, _EVENT, _AT, _TENANT, _ACTION, _DETAILS, _WRITER, _NUMBER, _MAC = map(
    COLUMNS.index,
    ("position", "event", "leaf_at", "tenant", "action", "details", "writer", "writer_seq", "mac"),
)


class Mismatch(NamedTuple):
    """An event that is not what was sealed at its position."""

    position: int
    event: str
    expected: bytes
    computed: bytes


@dataclass(slots=True)
class ComparedPart:
    """What was seen in a range of a tenant's log; it takes little room where all holds."""

    events: int = 0
    unnumbered: int = 0
    findings: list[LogFinding] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    gaps: set[WriterGap] = field(default_factory=set)
    absent: list[Run] = field(default_factory=list)
    numbers: NumberRuns = field(default_factory=NumberRuns)


class PartComparison:
    """Compares rows, in order, with the hashes at their positions; ``part`` says what was seen."""

    def __init__(self, keys: RecordKeys, tenant: str, since: datetime | None) -> None:
        self.part = ComparedPart()
        self._tenant = tenant
        self._since = since
        self._leaves = StoredLeaves(COLUMNS)
        self._mac: Callable[[bytes], bytes] = lambda data: keys.mac(tenant, data)

    def compare(self, rows: Iterable[Sequence[Any]], start: int, end: int, hashes: bytes) -> None:
        """Compare the rows at the positions from ``start`` to below ``end``, whose ``hashes`` stand in the tree."""
        expected = start
        for row in rows:
            position = row[_POSITION]
            if position > expected:
                self._miss(expected, position - 1)
            expected = position + 1
            if row[_TENANT] is None:
                meaning = f"The event at position {position} is no longer in the record."
                self.part.findings.append(LogFinding("missing", self._tenant, f"event {_id(row)}", meaning))
                self.part.numbers.passed += 1
                continue
            self._take_number(row)
            if self._since is None or _moment(row[_AT], self._since) >= self._since:
                at = (position - start) * HASH_BYTES
                self._compare(row, hashes[at : at + HASH_BYTES])
        if expected < end:
            self._miss(expected, end - 1)

    def _compare(self, row: Sequence[Any], expected: bytes) -> None:
        self.part.events += 1
        try:
            leaf, signed = self._leaves(row)
            computed = leaf_hash(leaf)
        except (TypeError, ValueError, AttributeError):
            signed, computed = None, _UNREADABLE
        if computed != expected:
            self.part.mismatches.append(Mismatch(row[_POSITION], _id(row), expected, computed))
        elif row[_MAC] != self._mac(computed if signed is None else signed):
            meaning = "Its authentication code is not its own."
            self.part.findings.append(LogFinding("changed", self._tenant, f"event {_id(row)}", meaning))

    def _miss(self, first: int, last: int) -> None:
        absent = self.part.absent
        if absent and absent[-1][1] == first - 1:
            absent[-1] = absent[-1][0], last
        else:
            absent.append((first, last))
        self.part.numbers.passed += last - first + 1

    def _take_number(self, row: Sequence[Any]) -> None:
        writer, number = row[_WRITER], row[_NUMBER]
        if writer is None:
            self.part.unnumbered += 1
        elif type(number) is not int:
            self.part.numbers.passed += 1
        else:
            self.part.numbers.add(writer, number)
            if row[_ACTION] == GAP_ACTION:
                self.part.gaps |= _gap(row[_DETAILS])


class TenantComparison:
    """Joins the parts of a tenant's log, in their order; finish it to name what differs."""

    def __init__(self, result: Verification, tenant: str) -> None:
        self._result = result
        self._tenant = tenant
        self._mismatches: list[Mismatch] = []
        self._search = GapSearch()
        self._gaps: set[WriterGap] = set()
        self._absent: list[Run] = []

    def take(self, part: ComparedPart) -> None:
        """Take in the next part."""
        self._result.events += part.events
        self._result.unnumbered += part.unnumbered
        self._result.findings += part.findings
        self._mismatches += part.mismatches
        self._search.take(part.numbers)
        self._gaps |= part.gaps
        self._absent += part.absent

    def finish(self, unsealed: Sequence[WriterNumber], pruned: PositionRuns) -> None:
        """Name what differs, and numbers that neither the log nor what is still ``unsealed`` has.

        At positions that were ``pruned`` no event is missed.
        """
        for position in (position for first, last in self._absent for position in range(first, last + 1)):
            if position in pruned:
                self._result.pruned += 1
            else:
                self._result.add("missing", self._tenant, f"position {position}", "No event stands there.")
        for number in sorted(unsealed):
            self._search.add(*number)
        for writer, (first, last) in sorted(self._gaps | set(self._search.gaps())):
            meaning = f"Its events {first} to {last} were deleted before they were sealed."
            self._result.add("gap", self._tenant, f"writer {writer}", meaning)
        wanted = {mismatch.expected for mismatch in self._mismatches}
        for mismatch in self._mismatches:
            if mismatch.computed in wanted:
                meaning = f"It stands at position {mismatch.position}, where another was sealed."
                self._result.add("reordered", self._tenant, f"event {mismatch.event}", meaning)
            else:
                meaning = "It is not what was sealed."
                self._result.add("changed", self._tenant, f"event {mismatch.event}", meaning)


def _gap(details: str) -> set[WriterGap]:
    """Return the gap that an event of the sealer names."""
    try:
        named = json.loads(details)
        writer, first, last = (named[name] for name in ("writer", "first", "last"))
    except (ValueError, TypeError, LookupError):
        return set()
    fits = isinstance(writer, str) and isinstance(first, int) and isinstance(last, int)
    return {WriterGap(writer, NumberRange(first, last))} if fits else set()


def _moment(stored: Any, otherwise: datetime) -> datetime:
    try:
        return moment(stored) or otherwise
    except (TypeError, ValueError):
        return otherwise


def _id(row: Sequence[Any]) -> str:
    return str(UUID(row[_EVENT]) if isinstance(row[_EVENT], str) else row[_EVENT])
