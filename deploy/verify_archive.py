"""Verify an archive of Sluice's audit record without Sluice: needs verify_audit.py beside it, pyarrow and cryptography.

    python verify_archive.py /mnt/archive --key "sluice/0123456789abcdef+01234567+AQ..."

The argument is the archive's folder, a tenant's folder in it, or one file; of a bucket, a copy. The key is what
``sluice audit key`` printed, or a witness's that cosigned the checkpoints. Prints what is proven.
Exit codes: 0 all holds, 1 something does not, 2 nothing there or no key can be read.

Every column of a file goes into the hashes of its rows (RFC 6962), and these, with the hashes beside them in the log,
make the tenant's head that was signed. So a row that was changed, added, removed or moved is found, and so is a file in
another's place. What nobody can see is that files behind the last one were removed: keep a checkpoint, or the last
position, elsewhere.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from verify_audit import (
    VERSION,
    Key,
    NotProvenError,
    hashes_of,
    open_checkpoint,
    parse_key,
    pruned_runs,
    root_of,
)

FORM = "sluice audit archive 1"
PROOF = b"sluice.archive"
PURGE = "audit.purge"
NUMBERED, IDENTIFIED = 2, 3
WRITER = ("writer", "writer_seq")
IDENTITY = ("on_behalf_of", "key_name", "address_class", "decision", "versions")
MEMBERS = [
    "id",
    "at",
    "tenant",
    "actor",
    "roles",
    "action",
    "outcome",
    "middleware",
    "policy_version",
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
    "sealed",
]
COLUMNS = ("position", "leaf", "v", *MEMBERS, *IDENTITY, *WRITER)
UNREADABLE = (OSError, pa.ArrowException, ValueError, TypeError, LookupError, AttributeError, StopIteration)
WARNINGS = ("audit.gap", "audit.altered")


class Part(NamedTuple):
    """What one file has: its place in the log, and what of it is there."""

    tenant: str
    month: str
    number: int
    first: int
    end: int
    month_end: int
    events: int
    warnings: int
    absent: tuple[int, ...]
    pruned: tuple[range, ...]


def canonical(row: Mapping[str, Any]) -> bytes:
    """Return the bytes of an event as an entry of the log: a version byte, and JSON with sorted names."""
    version = row["v"]
    names = [
        *MEMBERS,
        *(IDENTITY if version == IDENTIFIED else ()),
        *(WRITER if row["writer"] is not None else ()),
    ]
    if version not in {1, NUMBERED, IDENTIFIED} or (version == NUMBERED and row["writer"] is None):
        raise ValueError("it has no form that Sluice wrote")
    if (
        any(row[name] is not None for name in (*IDENTITY, *WRITER) if name not in names)
        or row["leaf"] is not None
    ):
        raise ValueError("it has members that its form has not")
    document = {name: row[name] for name in names}
    document |= {"v": version, "id": row["id"].replace("-", ""), "counts": dict(row["counts"])}
    document["details"] = json.loads(row["details"])
    if document.get("versions") is not None:
        document["versions"] = json.loads(row["versions"])
    return bytes([version]) + json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def range_root(first: int, size: int, leaves: Sequence[bytes], beside: Iterator[bytes]) -> bytes:
    """Return the root of the tree of ``size`` entries by the hashes of those from ``first`` on, and those beside."""
    end = first + len(leaves)

    def root(start: int, stop: int) -> bytes:
        if stop <= first or end <= start:
            return next(beside)
        if stop - start == 1:
            return leaves[start - first]
        middle = start + (1 << ((stop - start - 1).bit_length() - 1))
        return hashlib.sha256(b"\x01" + root(start, middle) + root(middle, stop)).digest()

    return root(0, size)


def verify_file(path: Path, keys: Sequence[Key]) -> Part:
    """Return what a file proves, or raise NotProvenError."""
    with pq.ParquetFile(path) as file:
        proof = json.loads(file.metadata.metadata[PROOF])
        if proof["form"] != FORM or set(file.schema_arrow.names) != set(COLUMNS):
            raise ValueError(f"it is not in the form {FORM!r}")
        tenant, first, end = proof["tenant"], proof["first"], proof["end"]
        if (path.parent.resolve().name, path.name) != (
            tenant,
            f"{proof['month']}-{proof['number']:03d}.parquet",
        ):
            raise NotProvenError(
                f"it is the file {tenant}/{proof['month']}-{proof['number']:03d}, in another's place"
            )
        checkpoint = open_checkpoint(proof["checkpoint"], keys)
        entry = bytes.fromhex(proof["entry"])
        if root_of(entry, proof["position"], checkpoint.size, hashes_of(proof["proof"])) != checkpoint.root:
            raise NotProvenError("its tenant's head is not in the log of heads that was signed")
        head = json.loads(entry.removeprefix(VERSION))
        if (head["tenant"], head["size"]) != (tenant, proof["size"]):
            raise NotProvenError("the signed head is of another tenant or size")
        if _has_statistics(file.metadata):
            raise NotProvenError("it has statistics, which nothing proves and by which readers skip rows")
        rows = _Rows(tenant, first)
        for group in range(file.num_row_groups):
            rows.take(file.read_row_group(group, use_threads=False))
    if not 0 <= first < end <= head["size"] or len(rows.leaves) != end - first:
        raise NotProvenError(f"it has {len(rows.leaves)} rows for the positions {first} to {end - 1}")
    root = bytes.fromhex(head["root"])
    if range_root(first, head["size"], rows.leaves, iter(hashes_of(proof["siblings"]))) != root:
        raise NotProvenError("its rows are not what was sealed: one was changed, added, removed or moved")
    if rows.ends() != (proof["times"], proof["ids"]):
        raise NotProvenError("the times and ids that it names are not those of its rows")
    pruned = _statement(proof.get("statement"), head["size"], root, tenant)
    part = Part(
        *(tenant, proof["month"], proof["number"], first, end, proof["month_end"]),
        *(end - first - len(rows.absent), rows.warnings, tuple(rows.absent), tuple(pruned)),
    )
    if (at := unnamed(part, part.absent)) is not None:
        raise NotProvenError(f"no {PURGE} says that the event at position {at} was deleted")
    return part


def _has_statistics(metadata: pq.FileMetaData) -> bool:
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    columns = (group.column(number) for group in groups for number in range(group.num_columns))
    return any(column.is_stats_set or column.has_column_index for column in columns)


class _Rows:
    """The hashes of the rows that were read, and what they say of themselves."""

    def __init__(self, tenant: str, first: int) -> None:
        self._tenant, self._next = tenant, first
        self.leaves: list[bytes] = []
        self.absent: list[int] = []
        self.warnings = 0
        self._times: list[Any] = []
        self._ids: list[str] = []

    def take(self, group: pa.Table) -> None:
        """Take in the rows of a group, whose times are read as microseconds since 1970."""
        times = group["at"].cast(pa.int64())
        rows = group.set_column(group.schema.get_field_index("at"), "at", times).to_pylist()
        for row in rows:
            if row["position"] != self._next:
                raise NotProvenError(f"the row of position {self._next} is not where it belongs")
            self._next += 1
            self.leaves.append(self._absent(row) if row["id"] is None else self._leaf(row))
        present = [row for row in rows if row["id"] is not None]
        self.warnings += sum(row["action"] in WARNINGS for row in present)
        self._times = _ends([*self._times, *(row["at"] for row in present)])
        self._ids = _ends([*self._ids, *(row["id"] for row in present)])

    def ends(self) -> tuple[list[int] | None, list[str] | None]:
        """Return the first and the last time and id; None where no event is left."""
        return self._times or None, self._ids or None

    def _absent(self, row: Mapping[str, Any]) -> bytes:
        if any(row[name] is not None for name in COLUMNS[2:]):
            raise NotProvenError(f"the row of position {row['position']} is no deleted event")
        self.absent.append(row["position"])
        return bytes(row["leaf"])

    def _leaf(self, row: Mapping[str, Any]) -> bytes:
        if row["tenant"] != self._tenant:
            raise NotProvenError(f"the event {row['id']} is of another tenant")
        try:
            return hashlib.sha256(b"\x00" + canonical(row)).digest()
        except (ValueError, TypeError, AttributeError) as error:
            raise NotProvenError(f"the event {row['id']} is not what was sealed: {error}") from None


def verify_order(parts: Sequence[Part]) -> str:
    """Return in a sentence what the files of a tenant prove together, or raise NotProvenError."""
    parts = sorted(parts, key=lambda part: (part.month, part.number))
    begin, last = parts[0], parts[-1]
    if begin.number != 1 or unnamed(begin, range(begin.first)) is not None:
        raise NotProvenError(
            f"files before {begin.month}-{begin.number:03d} are missing or in another's place: it begins at position "
            f"{begin.first}"
        )
    for before, part in pairwise(parts):
        same = (part.month, part.number) == (before.month, before.number + 1)
        ended = before.end == before.month_end and part.number == 1
        if part.first != before.end or not (same or ended):
            raise NotProvenError(
                f"between {before.month}-{before.number:03d} and {part.month}-{part.number:03d} a file is missing or "
                f"in another's place: the one ends before position {before.end}, the other begins at {part.first}"
            )
    events, positions = sum(part.events for part in parts), last.end
    gone = f"; {positions - events} were deleted before, as the log says" if positions > events else ""
    warnings = sum(part.warnings for part in parts)
    alarms = f"; {warnings} events say that rows were deleted or changed before they were sealed" * (
        warnings > 0
    )
    open_end = f"; {last.month} is not whole yet" if last.end < last.month_end else ""
    return f"{events} events, the first {positions} of the log, {begin.month} to {last.month}{gone}{alarms}{open_end}"


def unnamed(part: Part, positions: Sequence[int]) -> int | None:
    """Return the first of the positions that the statement in a file does not name as deleted."""
    return next((at for at in positions if not any(at in run for run in part.pruned)), None)


def _statement(proven: Mapping[str, Any] | None, size: int, root: bytes, tenant: str) -> list[range]:
    """Return the positions that a statement names as deleted, which is in the log itself."""
    if proven is None:
        return []
    event = json.loads(proven["event"])
    leaf = bytes([event["v"]]) + proven["event"].encode()
    if root_of(leaf, proven["position"], size, hashes_of(proven["proof"])) != root:
        raise NotProvenError("the statement about deleted events is not in the log")
    if (event["action"], event["tenant"]) != (PURGE, tenant):
        raise NotProvenError("the statement about deleted events is another event")
    return pruned_runs(event["details"], proven["position"])


def _ends(values: Sequence[Any]) -> list[Any]:
    return [min(values), max(values)] if values else []


def verify(path: Path, keys: Sequence[Key]) -> tuple[list[str], list[str]]:
    """Return sentences about what is proven, and about what is not."""
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    parts: dict[Path, list[Part]] = {}
    proven: list[str] = []
    refused: dict[Path, list[str]] = {}
    for file in files:
        try:
            part = verify_file(file, keys)
            parts.setdefault(file.parent, []).append(part)
        except NotProvenError as error:
            refused.setdefault(file.parent, []).append(f"{file}: {error}.")
        except UNREADABLE as error:
            sentence = f"{file}: cannot be read ({type(error).__name__})."
            refused.setdefault(file.parent, []).append(sentence)
    for folder, own in parts.items():
        if path.is_file():
            part = own[0]
            proven.append(f"{path}: {part.events} events of {part.tenant}, from position {part.first} on.")
        elif folder not in refused:
            try:
                proven.append(f"{folder}: {verify_order(own)}.")
            except NotProvenError as error:
                refused[folder] = [f"{folder}: {error}."]
    return proven, [sentence for own in refused.values() for sentence in own]


def main() -> NoReturn:
    """Read the arguments and the files, and say what is proven."""
    parser = argparse.ArgumentParser(description="Verify an archive of Sluice's audit record.")
    parser.add_argument("archive", type=Path)
    parser.add_argument("--key", action="append", required=True, help="public key to trust; may be repeated")
    arguments = parser.parse_args()
    try:
        keys = [parse_key(text) for text in arguments.key]
    except (ValueError, IndexError) as error:
        print(f"no key: {error}", file=sys.stderr)
        sys.exit(2)
    proven, refused = verify(arguments.archive, keys)
    if not proven and not refused:
        print(f"{arguments.archive} has no file of an archive.", file=sys.stderr)
        sys.exit(2)
    for sentence in proven:
        print(f"PROVEN: {sentence}")
    for sentence in refused:
        print(f"NOT PROVEN: {sentence}")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
