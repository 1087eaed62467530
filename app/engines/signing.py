"""Ed25519 keys that sign the checkpoints of the audit log, and the check of such signatures."""

import secrets
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from app.core.transparency.notes import ED25519, Check, Note, VerifierKey

SEED_BYTES = 32


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key under the name of the log that it signs; ``seed`` are 32 secret bytes (RFC 8032)."""

    name: str
    seed: bytes = field(repr=False)

    @classmethod
    def create(cls, name: str) -> "SigningKey":
        """Return a new random key."""
        return cls(name, secrets.token_bytes(SEED_BYTES))

    @property
    def public(self) -> VerifierKey:
        """Return the key that checks its signatures."""
        return VerifierKey(self.name, ED25519, self._private().public_key().public_bytes_raw())

    def signed(self, text: str) -> Note:
        """Return ``text`` as a note with this key's signature."""
        return Note(text).signed(self.public, self.sign)

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message, 64 bytes."""
        return self._private().sign(message)

    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)


def checker(key: VerifierKey) -> Check:
    """Return the function that says whether ``key`` signed a message."""
    public = Ed25519PublicKey.from_public_bytes(key.public)

    def check(message: bytes, signature: bytes) -> bool:
        try:
            public.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    return check
