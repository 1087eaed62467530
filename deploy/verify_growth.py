"""Verify that Sluice's audit log only grew since a checkpoint that you kept: needs verify_audit.py beside it.

    python verify_growth.py checkpoint.txt grown.txt --key "sluice/0123456789abcdef+01234567+AQ..."

The first file is what you kept, the second what ``sluice audit checkpoint --continues checkpoint.txt`` printed later:
the newest checkpoint with a proof (RFC 9162, 2.1.4.2), as a witness gets them (C2SP's tlog-witness).
Exit codes: 0 all holds, 1 something does not, 2 a file or a key cannot be read.
"""

import argparse
import base64
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from verify_audit import Checkpoint, NotProvenError, open_checkpoint, parse_key


def check_growth(old: Checkpoint, new: Checkpoint, proof: Sequence[bytes]) -> None:
    """Raise NotProvenError unless the log of ``new`` begins with all entries of ``old``."""
    if old.origin != new.origin:
        raise NotProvenError(f"The checkpoints are of two logs: {old.origin} and {new.origin}.")
    if not 0 < old.size <= new.size:
        raise NotProvenError(
            f"The log has {new.size} entries and had {old.size}: it was set back, or cut off."
        )
    at, last = (old.size - 1, new.size - 1) if old.size < new.size else (0, 0)
    while at & 1:
        at, last = at >> 1, last >> 1
    hashes = proof if at else (old.root, *proof)
    if not hashes:
        raise NotProvenError("The proof is too short.")
    older = newer = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            raise NotProvenError("The proof is too long.")
        if at & 1 or at == last:
            older, newer = _node(sibling, older), _node(sibling, newer)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            newer = _node(newer, sibling)
        at, last = at >> 1, last >> 1
    if last or (older, newer) != (old.root, new.root):
        raise NotProvenError("The log does not continue the one of the checkpoint that you kept.")


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def main() -> NoReturn:
    """Read the arguments and the files, and say what is proven."""
    parser = argparse.ArgumentParser(description="Verify that Sluice's audit log only grew.")
    parser.add_argument("kept", type=Path)
    parser.add_argument("grown", type=Path)
    parser.add_argument("--key", action="append", required=True, help="public key to trust; may be repeated")
    arguments = parser.parse_args()
    try:
        keys = [parse_key(text) for text in arguments.key]
        old = open_checkpoint(arguments.kept.read_text("utf-8"), keys)
        head, _, note = arguments.grown.read_text("utf-8").partition("\n\n")
        _old, *lines = head.split("\n")
        new = open_checkpoint(note, keys)
        check_growth(old, new, [base64.b64decode(line, validate=True) for line in lines])
    except NotProvenError as error:
        print(f"NOT PROVEN: {error}")
        sys.exit(1)
    except (OSError, ValueError, IndexError) as error:
        print(f"cannot be read: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
    print(
        f"PROVEN: {new.origin} grew from {old.size} to {new.size} entries, and none of the first {old.size} changed."
    )
    sys.exit(0)


if __name__ == "__main__":
    main()
