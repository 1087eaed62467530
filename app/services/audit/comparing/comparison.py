"""Compare the events of a tenant, as stored, with the hashes of its tree: piece by piece, then as a whole."""

import json
from collections import Counter
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
from app.store.audit.counts import StoredCounts
from app.store.audit.raw_rows import COLUMNS
from app.store.bulk import moment

_UNREADABLE: Final = b""
"""The hash of a row that no event was stored as: no leaf has it."""
_NAMED: Final = 100
_POSITION, _EVENT, _AT, _TENANT, _ACTION, _DETAILS, _WRITER, _NUMBER, _MAC = map(
    COLUMNS.index,
    ("position", "event", "leaf_at", "tenant", "action", "details", "writer", "writer_seq", "mac"),
)
_OUTCOME, _ACTOR, _LEAF = map(COLUMNS.index, ("outcome", "actor", "leaf"))


class LogPart(NamedTuple):
    """Positions of a tenant's log, from ``start`` to below ``end``.

    Of the events, those ``since`` a moment are compared, and those from the position ``recent`` on, which were sealed
    since then. Those below ``counted`` are counted.
    """

    tenant: str
    start: int
    end: int
    since: datetime | None
    recent: int = 0
    counted: int = 0


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
    counts: dict[tuple[Any, ...], int] = field(default_factory=dict)


class PartComparison:
    """Compares rows, in order, with the hashes at their positions; ``part`` says what was seen."""

    def __init__(self, keys: RecordKeys, part: LogPart) -> None:
        self.part = ComparedPart()
        self._tenant = tenant = part.tenant
        self._since, self._recent, self._counted = part.since, part.recent, part.counted
        self._leaves = StoredLeaves(COLUMNS)
        self._mac: Callable[[bytes], bytes] = lambda data: keys.mac(tenant, data)

    def compare(self, rows: Iterable[Sequence[Any]], start: int, end: int, hashes: bytes) -> None:
        """Compare the rows at the positions from ``start`` to below ``end``, whose ``hashes`` stand in the tree."""
        expected = start
        for row in rows:
            position = row[_POSITION]
            if type(position) is not int:  # SQLite's columns take any type
                meaning = f"It stands at {position!r}, which is no position of a log."
                self.part.findings.append(LogFinding("inserted", self._tenant, f"event {_id(row)}", meaning))
                continue
            if position > expected:
                self._miss(expected, position - 1)
            expected = position + 1
            if row[_TENANT] is None:
                meaning = f"The event at position {position} is no longer in the record."
                self.part.findings.append(LogFinding("missing", self._tenant, f"event {_id(row)}", meaning))
                self.part.numbers.passed += 1
                continue
            self._take_number(row)
            is_own = True
            if (
                self._since is None
                or position >= self._recent
                or _moment(row[_AT], self._since) >= self._since
            ):
                at = (position - start) * HASH_BYTES
                is_own = self._compare(row, hashes[at : at + HASH_BYTES])
            if is_own and position < self._counted:
                self._count(row)
        if expected < end:
            self._miss(expected, end - 1)

    def _compare(self, row: Sequence[Any], expected: bytes) -> bool:
        """Return whether an event is what was sealed."""
        self.part.events += 1
        try:
            leaf, signed = self._leaves(row)
            computed = leaf_hash(leaf)
        except (TypeError, ValueError, AttributeError):
            signed, computed = None, _UNREADABLE
        if computed != expected:
            self.part.mismatches.append(Mismatch(row[_POSITION], _id(row), expected, computed))
            return False
        if row[_MAC] != self._mac(computed if signed is None else signed):
            self._name_changed(row, "Its authentication code is not its own.")
        elif row[_LEAF] not in (None, computed):
            self._name_changed(row, "The hash that is stored with it is not its own.")
        return True

    def _name_changed(self, row: Sequence[Any], meaning: str) -> None:
        self.part.findings.append(LogFinding("changed", self._tenant, f"event {_id(row)}", meaning))

    def _count(self, row: Sequence[Any]) -> None:
        at = row[_AT]
        day = at[:10] if isinstance(at, str) else at.date()
        key = (day, row[_ACTION], row[_OUTCOME], row[_ACTOR])
        self.part.counts[key] = self.part.counts.get(key, 0) + 1

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
        self._counts: Counter[tuple[str, ...]] = Counter()

    @property
    def is_incomplete(self) -> bool:
        """Return whether no event stands at some position."""
        return bool(self._absent)

    def take(self, part: ComparedPart) -> None:
        """Take in the next part."""
        self._result.events += part.events
        self._result.unnumbered += part.unnumbered
        self._result.findings += part.findings
        self._mismatches += part.mismatches
        self._search.take(part.numbers)
        self._gaps |= part.gaps
        self._absent += part.absent
        for (day, *others), events in part.counts.items():
            self._counts[str(day), *others] += events

    def check_counts(self, stored: StoredCounts, size: int) -> None:
        """Name counts that are not those of the events of a log of ``size``.

        Events that are gone, or are not what was sealed, may each be in one of them.
        """
        lacking = Counter(self._counts)
        lacking.subtract(stored.events)
        unknown = stored.counted - self._counts.total()
        is_more = stored.counted > size or -lacking.total() > unknown
        if is_more or any(events > 0 for events in lacking.values()):
            meaning = "The counts by day, action, outcome and actor are not those of the events."
            self._result.add("miscounted", self._tenant, f"counts of {stored.counted} events", meaning)

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


class LooseEvents:
    """Looks at events of a tenant that are not in its log: who waits for the sealer has its own code."""

    def __init__(self, keys: RecordKeys, result: Verification, tenant: str) -> None:
        self._keys, self._result, self._tenant = keys, result, tenant
        self._leaves = StoredLeaves(COLUMNS)
        self._named: set[str] = set()

    def take(self, rows: Iterable[Sequence[Any]], again: str | None) -> None:
        """Take in rows as `COLUMNS`, behind which stands whether the sealer is yet to pass them.

        The event with the id ``again`` came by before.
        """
        for row in rows:
            is_own, is_ahead = self._is_authentic(row), row[-1]
            if is_own and is_ahead:
                self._result.waiting += str(row[_EVENT]) != again
            elif is_own:
                self._name(row, "The sealer has passed where it is, and it is not in the log.")
            else:
                self._name(
                    row, "It is not in the log, and its code is not its own: it was put there, or changed."
                )

    def finish(self) -> None:
        """Say how many more there are than were named one by one."""
        more = len(self._named) - _NAMED
        if more > 0:
            self._result.add(
                "inserted", self._tenant, f"{more} events", "So are these; the first were named."
            )

    def _name(self, row: Sequence[Any], meaning: str) -> None:
        event = f"event {_id(row)}"
        if event not in self._named and len(self._named) < _NAMED:
            self._result.add("inserted", self._tenant, event, meaning)
        self._named.add(event)

    def _is_authentic(self, row: Sequence[Any]) -> bool:
        try:
            leaf, signed = self._leaves(row[:-1])
        except (TypeError, ValueError, AttributeError):
            return False
        code = self._keys.mac(self._tenant, leaf_hash(leaf) if signed is None else signed)
        return bool(row[_MAC] == code)


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
    try:
        return str(UUID(row[_EVENT]) if isinstance(row[_EVENT], str) else row[_EVENT])
    except ValueError:
        return repr(row[_EVENT])
