"""Verify a receipt of an erasure (``sluice subjects receipt``) without Sluice: needs Python 3.11 and cryptography.

    python verify_receipt.py receipt.txt --key "sluice/0123456789abcdef+01234567+AQ..."

The key is what ``sluice audit key`` printed. Prints what the receipt states.
Exit codes: 0 the key signed it, 1 it did not, 2 the file or the key cannot be read.

A receipt is a signed note (C2SP signed-note, Ed25519): a first line, a line of JSON, an empty line, a signature.
"""

import argparse
import base64
import hashlib
import json
import sys
from pathlib import Path
from typing import NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORM = "sluice erasure receipt 1"
ED25519 = 1


def main() -> None:
    """Verify the receipt that the arguments name."""
    parser = argparse.ArgumentParser(description="Verify a receipt of an erasure.")
    parser.add_argument("receipt", type=Path, help="file with the receipt")
    parser.add_argument("--key", required=True, help="public key, as sluice audit key prints it")
    arguments = parser.parse_args()
    try:
        text, _, signatures = arguments.receipt.read_text("utf-8").rpartition("\n\n")
        name, identifier, material = arguments.key.strip().split("+", 2)
        raw = base64.b64decode(material, validate=True)
        own = hashlib.sha256(name.encode() + b"\n" + raw).hexdigest()[:8]
        public = Ed25519PublicKey.from_public_bytes(raw[1:])
        lines = [line.split(" ") for line in signatures.splitlines()]
        signed = [base64.b64decode(line[2], validate=True) for line in lines if line[1:2] == [name]]
        form, stated = text.split("\n")
    except (OSError, ValueError, IndexError):
        end(2, "The receipt or the key cannot be read.")
    if own != identifier or raw[0] != ED25519:
        end(2, "This is no public key of an audit log: its id does not fit.")
    claimed = [made[4:] for made in signed if made[:4].hex() == identifier]
    if not claimed or form != FORM:
        end(1, "NOT PROVEN: no signature of this key is on it.")
    try:
        for signature in claimed:
            public.verify(signature, f"{text}\n".encode())
    except InvalidSignature:
        end(1, "NOT PROVEN: the text is not the one that was signed.")
    print(json.dumps(json.loads(stated), indent=2, ensure_ascii=False))
    end(0, f"Signed by {name}.")


def end(code: int, sentence: str) -> NoReturn:
    """Print ``sentence`` on standard error and end."""
    print(sentence, file=sys.stderr)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
