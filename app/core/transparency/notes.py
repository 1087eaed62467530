"""Signed notes, checkpoints and cosignatures (C2SP signed-note, tlog-checkpoint, tlog-cosignature): text in and out.

Signing and checking bytes is brought by the caller, so that no key and no library of ciphers is needed here.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.core.transparency.hashing import HASH_BYTES

ED25519: Final = b"\x01"
"""The type of a plain Ed25519 signature, in key ids and verifier keys."""
COSIGNATURE: Final = b"\x04"
"""The type of a timestamped Ed25519 cosignature."""

MOST_SIGNATURES: Final = 64
"""Further signature lines are refused; the text asks for 16 at least."""

_DASH: Final = "\N{EM DASH} "
_ID_BYTES: Final = 4
_TIME_BYTES: Final = 8

Sign = Callable[[bytes], bytes]
Check = Callable[[bytes, bytes], bool]
"""Given the message and the signature, return whether the key signed it."""


class NoteError(ValueError):
    """A note, a checkpoint or a verifier key that is not written as its text says."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key with the name and the type of its signatures; ``str`` writes it as a vkey."""

    name: str
    kind: bytes
    public: bytes

    def __post_init__(self) -> None:
        """Refuse a name that a signature line cannot hold."""
        if not self.name or "+" in self.name or any(sign.isspace() for sign in self.name):
            raise NoteError("The name of a key is not empty and has neither spaces nor plus signs.")

    @property
    def id(self) -> bytes:
        """Return the four bytes that signature lines begin with."""
        return hashlib.sha256(self.name.encode() + b"\n" + self.kind + self.public).digest()[:_ID_BYTES]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{_base64(self.kind + self.public)}"

    @classmethod
    def parse(cls, text: str) -> "VerifierKey":
        """Return the key that a vkey names, or raise NoteError."""
        name, _, rest = text.strip().partition("+")
        identifier, _, encoded = rest.partition("+")
        material = _decoded(encoded)
        key = cls(name, material[:1], material[1:])
        if key.id.hex() != identifier:
            raise NoteError("The verifier key has another id than its name and key make.")
        return key


class Signature(NamedTuple):
    """A signature line: the name of the key, the four bytes of its id, and what it made."""

    name: str
    key_id: bytes
    signature: bytes

    def line(self) -> str:
        """Return the line, with its newline."""
        return f"{_DASH}{self.name} {_base64(self.key_id + self.signature)}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A text, which ends with a newline, and its signatures."""

    text: str
    signatures: tuple[Signature, ...] = ()

    def __str__(self) -> str:
        return self.text + "\n" + "".join(signature.line() for signature in self.signatures)

    @classmethod
    def parse(cls, whole: str) -> "Note":
        """Return the note that ``whole`` is, or raise NoteError."""
        if any(sign < " " and sign != "\n" for sign in whole):
            raise NoteError("A note has no control characters but newlines.")
        text, separator, lines = whole.rpartition("\n\n")
        if not separator or not lines.endswith("\n"):
            raise NoteError("A note ends with an empty line and its signatures, each with a newline.")
        return cls(text + "\n", tuple(_signatures(lines)))

    def signed(self, key: VerifierKey, sign: Sign) -> "Note":
        """Return the note with one more signature."""
        made = Signature(key.name, key.id, sign(self.text.encode()))
        return Note(self.text, (*self.signatures, made))

    def of(self, key: VerifierKey) -> Sequence[Signature]:
        """Return the signatures that claim to be of ``key``."""
        return [made for made in self.signatures if (made.name, made.key_id) == (key.name, key.id)]

    def is_signed(self, key: VerifierKey, check: Check) -> bool:
        """Return whether ``key`` signed the note; a claimed signature that is wrong counts against all."""
        claimed = self.of(key)
        return bool(claimed) and all(check(self.text.encode(), made.signature) for made in claimed)

    def cosigned_at(self, key: VerifierKey, check: Check) -> int | None:
        """Return when a witness cosigned the note, in seconds since 1970, or None if it did not."""
        times = []
        for made in self.of(key):
            moment = int.from_bytes(made.signature[:_TIME_BYTES], "big")
            if not check(cosigned_message(self.text, moment), made.signature[_TIME_BYTES:]):
                return None
            times.append(moment)
        return max(times, default=None)


def cosigned_message(text: str, moment: int) -> bytes:
    """Return what a witness signs: that it saw the checkpoint ``text`` at ``moment``, in seconds since 1970."""
    return f"cosignature/v1\ntime {moment}\n{text}".encode()


def cosigned(note: Note, key: VerifierKey, sign: Sign, moment: int) -> Signature:
    """Return a witness's signature of a checkpoint."""
    made = sign(cosigned_message(note.text, moment))
    return Signature(key.name, key.id, moment.to_bytes(_TIME_BYTES, "big") + made)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The head of a log: its name, how many entries it has, and the root of their tree."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """Return the text that is signed."""
        return f"{self.origin}\n{self.size}\n{_base64(self.root)}\n"

    @classmethod
    def parse(cls, text: str) -> "Checkpoint":
        """Return the checkpoint that the text of a note is, or raise NoteError; extension lines are left out."""
        lines = text.split("\n")
        if len(lines) < 4 or lines[-1] or not all(lines[:-1]):  # noqa: PLR2004 - origin, size, root, end
            raise NoteError("A checkpoint has the lines origin, size and root, none of them empty.")
        origin, written, encoded = lines[:3]
        if not (written.isascii() and written.isdigit()) or str(int(written)) != written:
            raise NoteError("The size of a checkpoint is a decimal number without leading zeroes.")
        root = _decoded(encoded)
        if len(root) != HASH_BYTES:
            raise NoteError("The root of a checkpoint has 32 bytes.")
        return cls(origin, int(written), root)


def _signatures(lines: str) -> list[Signature]:
    signatures = []
    for line in lines.removesuffix("\n").split("\n"):
        name, _, encoded = line.removeprefix(_DASH).partition(" ")
        raw = _decoded(encoded) if line.startswith(_DASH) and name else b""
        if len(raw) <= _ID_BYTES:
            raise NoteError(
                "A signature line is a dash, the name of a key, and its id and signature in base64."
            )
        signatures.append(Signature(name, raw[:_ID_BYTES], raw[_ID_BYTES:]))
    if len(signatures) > MOST_SIGNATURES:
        raise NoteError(f"A note has at most {MOST_SIGNATURES} signatures.")
    return signatures


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        raise NoteError("A key, root or signature is not in base64.") from None
