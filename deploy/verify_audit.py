"""Verify a file of Sluice's audit proofs (``sluice audit prove``) without Sluice: needs Python 3.11 and cryptography.

    python verify_audit.py proofs.jsonl --key "sluice/0123456789abcdef+01234567+AQ..."

The key is what ``sluice audit key`` printed, or a witness's that cosigned the checkpoint. Prints what is proven.
Exit codes: 0 all holds, 1 something does not, 2 the file or a key cannot be read.

Read this file before you trust it: it is short on purpose. Trees and proofs are those of RFC 6962 and RFC 9162,
checkpoints and signatures those of C2SP's signed-note, tlog-checkpoint and tlog-cosignature.
"""

import argparse
import base64
import hashlib
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORM = "sluice audit proofs 1"
SIGNATURE, COSIGNATURE = 1, 4
VERSION = b"\x01"


class Key(NamedTuple):
    """A public key: whose, which kind of signatures, and its bytes."""

    name: str
    kind: int
    public: bytes

    @property
    def id(self) -> bytes:
        """Return what its signatures begin with."""
        text = self.name.encode() + b"\n" + bytes([self.kind]) + self.public
        return hashlib.sha256(text).digest()[:4]


class Checkpoint(NamedTuple):
    """The head of the log of heads."""

    origin: str
    size: int
    root: bytes
    signers: str


class NotProvenError(Exception):
    """Something does not hold."""


def parse_key(text: str) -> Key:
    """Return the key that a line such as ``name+01234567+AQ...`` names, or raise ValueError."""
    name, _, rest = text.strip().partition("+")
    identifier, _, encoded = rest.partition("+")
    try:
        material = base64.b64decode(encoded, validate=True) or b"\0"
    except ValueError:  # a part of a line may end anywhere
        material = b"\0"
    key = Key(name, material[0], material[1:])
    if key.id.hex() != identifier or key.kind not in {SIGNATURE, COSIGNATURE}:
        raise ValueError("The key is no whole line of `sluice audit key`, or was changed.")
    return key


def open_checkpoint(note: str, keys: Sequence[Key]) -> Checkpoint:
    """Return the checkpoint, or raise NotProvenError unless one of the keys signed it."""
    text, _, lines = note.rpartition("\n\n")
    text += "\n"
    signers = [key.name for key in keys if any(_signed(text, line, key) for line in lines.splitlines())]
    if not signers:
        raise NotProvenError("No key that you gave signed the checkpoint.")
    origin, size, root = text.split("\n")[:3]
    return Checkpoint(origin, int(size), base64.b64decode(root, validate=True), ", ".join(signers))


def _signed(text: str, line: str, key: Key) -> bool:
    name, _, encoded = line.removeprefix("\u2014 ").partition(" ")
    raw = base64.b64decode(encoded, validate=True)
    if name != key.name or raw[:4] != key.id:
        return False
    message, signature = text.encode(), raw[4:]
    if key.kind == COSIGNATURE:
        moment = int.from_bytes(signature[:8], "big")
        message, signature = f"cosignature/v1\ntime {moment}\n{text}".encode(), signature[8:]
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(signature, message)
    except InvalidSignature:
        raise NotProvenError(f"The signature of {key.name} on the checkpoint is wrong.") from None
    return True


def root_of(entry: bytes, position: int, size: int, proof: Sequence[bytes]) -> bytes:
    """Return the root of the tree that has ``entry`` at ``position``, by its proof (RFC 9162, 2.1.3.2)."""
    if not 0 <= position < size:
        raise NotProvenError(f"A log of {size} entries has none at {position}.")
    at, last = position, size - 1
    computed = hashlib.sha256(b"\x00" + entry).digest()
    for sibling in proof:
        if last == 0:
            raise NotProvenError(f"The proof of position {position} is too long.")
        if at & 1 or at == last:
            computed = hashlib.sha256(b"\x01" + sibling + computed).digest()
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            computed = hashlib.sha256(b"\x01" + computed + sibling).digest()
        at, last = at >> 1, last >> 1
    if last:
        raise NotProvenError(f"The proof of position {position} is too short.")
    return computed


def verify(lines: Sequence[str], keys: Sequence[Key]) -> str:
    """Return in one sentence what the file proves, or raise NotProvenError."""
    head = json.loads(lines[0])
    if head.get("form") != FORM:
        raise ValueError(f"The first line is not the head of {FORM!r}.")
    checkpoint = open_checkpoint(head["checkpoint"], keys)
    entry = bytes.fromhex(head["entry"])
    if root_of(entry, head["position"], checkpoint.size, hashes_of(head["proof"])) != checkpoint.root:
        raise NotProvenError("The tenant's head is not in the log of heads that was signed.")
    stated = json.loads(entry.removeprefix(VERSION))
    if (stated["tenant"], stated["size"]) != (head["tenant"], head["size"]):
        raise NotProvenError("The signed head is of another tenant or size than the file says.")
    root, seen = bytes.fromhex(stated["root"]), -1
    numbers: dict[str, list[int]] = {}
    positions, pruned, actions = list[int](), list[range](), set[str]()
    for number, line in enumerate(lines[1:], 2):
        proven = json.loads(line)
        if proven["position"] <= seen:
            raise NotProvenError(f"Line {number}: an event twice, or in another order than the log's.")
        event = json.loads(proven["event"])
        leaf = bytes([event["v"]]) + proven["event"].encode()
        if root_of(leaf, proven["position"], stated["size"], hashes_of(proven["proof"])) != root:
            raise NotProvenError(f"Line {number}: this event is not at that position of the log.")
        if event["tenant"] != stated["tenant"]:
            raise NotProvenError(f"Line {number}: this event is of another tenant.")
        seen = proven["position"]
        positions.append(seen)
        actions.add(event["action"])
        if event["v"] > 1:
            numbers.setdefault(event["writer"], []).append(event["writer_seq"])
        if event["action"] == "audit.purge":
            pruned = pruned_runs(event["details"], seen)
    count, gone = len(positions), sum(len(run) - sum(at in run for at in positions) for run in pruned)
    if count == stated["size"]:
        _check_whole(numbers, actions)
    whole = "all of them" if count + gone == stated["size"] else "not all of them: others may say more"
    whole += f"; {gone} were pruned, as the newest audit.purge among these says" if gone else ""
    moment = datetime.fromtimestamp(stated["at"] // 1_000_000, UTC).isoformat()
    return (
        f"{count} events of {stated['tenant']} are in its log of {stated['size']} events ({whole}) as of {moment}, "
        f"whose head is in {checkpoint.origin} at size {checkpoint.size}, signed by {checkpoint.signers}."
    )


def _check_whole(numbers: Mapping[str, Sequence[int]], actions: Collection[str]) -> None:
    if "audit.altered" in actions:
        raise NotProvenError("Events were changed before they were sealed, as an audit.altered says.")
    for writer, own in numbers.items():
        if sorted(own) != list(range(1, len(own) + 1)):
            raise NotProvenError(f"Events of the writer {writer} were deleted before they were sealed.")


def pruned_runs(details: Mapping[str, object], position: int) -> list[range]:
    """Return the runs of positions that a statement, itself at ``position``, says were deleted after their time."""
    runs = (run.split("-") for run in str(details["pruned"]).split(","))
    return [range(int(first), min(int(last) + 1, position)) for first, last in runs]


def hashes_of(proof: Sequence[str]) -> list[bytes]:
    """Return the hashes of a proof, which are hexadecimal."""
    return [bytes.fromhex(sibling) for sibling in proof]


def main() -> None:
    """Read the arguments and the file, and say what is proven."""
    parser = argparse.ArgumentParser(description="Verify a file of Sluice's audit proofs.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--key", action="append", required=True, help="public key to trust; may be repeated")
    arguments = parser.parse_args()
    try:
        keys = [parse_key(text) for text in arguments.key]
        print(f"PROVEN: {verify(arguments.file.read_text('utf-8').splitlines(), keys)}")
    except NotProvenError as error:
        print(f"NOT PROVEN: {error}")
        sys.exit(1)
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        print(f"cannot be read: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
