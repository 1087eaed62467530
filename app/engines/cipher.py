"""Seal originals under data keys, and data keys under a ring of keys that is never stored in the database."""

import base64
import binascii
import hmac
import itertools
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from app.core.content.handles import Handle
from app.core.errors import StoreUnavailableError

KEY_BYTES, LOOKUP_BYTES = 32, 16
CANARY = b"sluice key canary, version 1 ..."
"""What each key version wraps once, so that a start with a wrong key is refused (AES-KW wants whole blocks)."""

_FORMAT, _NONCE_BYTES = b"\x01", 12
_LEAST_DISTINCT = 12
_TAG_BITS, _TAG_ALPHABET = 20, "abcdefghijklmnopqrstuvwxyz234567"
_OWNER_ONLY = 0o077
_CACHED_KEYS, _CACHED_S, _ADMITTED = 4096, 300.0, 16_384
_OWN = _DIGEST, _BLIND, _KEPT = "sluice audit digest", "sluice blind index", "sluice kept content"


class KeyRingError(RuntimeError):
    """The key ring is missing, readable by others, or contains a weak key."""


class SealBrokenError(Exception):
    """A stored ciphertext does not belong to its place, or was changed."""


class KeyProvider(Protocol):
    """Where key-encryption keys come from: our ring, or a key service.

    Calls must answer from memory, since they happen inside short transactions: a provider that stands for a
    remote service unwraps its ring when the process starts.
    """

    @property
    def active(self) -> int:
        """Return the version that wraps new keys."""

    @property
    def versions(self) -> frozenset[int]:
        """Return every version that can unwrap."""

    def wrap(self, key: bytes) -> tuple[int, bytes]:
        """Return the version and the wrapped form of ``key``."""

    def unwrap(self, version: int, wrapped: bytes) -> bytes:
        """Return the key; raises ``KeyRingError``."""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Key-encryption keys by version, in memory."""

    keys: dict[int, bytes] = field(repr=False)
    active: int

    def __post_init__(self) -> None:
        if self.active not in self.keys:
            raise KeyRingError(f"The key ring has no key of its active version {self.active}.")
        for version, key in self.keys.items():
            if version < 1:
                raise KeyRingError("Key versions are numbers from 1.")
            if len(key) != KEY_BYTES:
                raise KeyRingError(f"Key {version} has {len(key)} bytes; a key has 32.")
            if is_sample_key(key):
                raise KeyRingError(
                    f"Key {version} is a sample, not a random key: make one with sluice vault new-ring."
                )

    @property
    def versions(self) -> frozenset[int]:
        """Return every version that can unwrap."""
        return frozenset(self.keys)

    def wrap(self, key: bytes) -> tuple[int, bytes]:
        """Wrap ``key`` (AES-KW, RFC 3394) under the active version."""
        return self.active, aes_key_wrap(self.keys[self.active], key)

    def unwrap(self, version: int, wrapped: bytes) -> bytes:
        """Return the key that ``wrap`` was given."""
        if version not in self.keys:
            raise KeyRingError(f"Key version {version} is not in the key ring.")
        try:
            return aes_key_unwrap(self.keys[version], wrapped)
        except InvalidUnwrap:
            raise KeyRingError(f"Key version {version} is not the key that wrapped this.") from None

    @classmethod
    def parse(cls, text: str) -> "KeyRing":
        """Read ``1:<base64>,2:<base64>``; the highest version is active unless a part ``active=1`` names another."""
        keys: dict[int, bytes] = {}
        active: int | None = None
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            try:
                if part.startswith("active="):
                    active = int(part.removeprefix("active="))
                    continue
                version, _, encoded = part.partition(":")
                keys[int(version)] = base64.b64decode(encoded, validate=True)
            except (ValueError, binascii.Error):
                raise KeyRingError("A key ring is written 1:<base64 of 32 bytes>,2:<base64>.") from None
        if not keys:
            raise KeyRingError("The key ring is empty.")
        return cls(keys, max(keys) if active is None else active)

    @classmethod
    def load(cls, path: Path) -> "KeyRing":
        """Read a ring file, refusing one that others can read or that another user owns."""
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                body = file.read()
        except OSError as error:
            raise KeyRingError(f"The key ring {path} cannot be read: {error.strerror}.") from None
        if status.st_mode & _OWNER_ONLY:
            raise KeyRingError(f"The key ring {path} is open to others: chmod 400 {path}.")
        if status.st_uid != os.geteuid():
            raise KeyRingError(
                f"The key ring {path} belongs to another user than the one that runs the service."
            )
        try:
            read = json.loads(body)
            keys = {int(name): base64.b64decode(value, validate=True) for name, value in read["keys"].items()}
            active = int(read["active"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise KeyRingError(f"The key ring {path} is damaged.") from None
        return cls(keys, active)

    @classmethod
    def create(cls, path: Path) -> "KeyRing":
        """Return the ring at ``path``, creating it where there is none; safe when many processes start at once."""
        if not path.exists():
            ring = cls({1: secrets.token_bytes(KEY_BYTES)}, 1)
            path.parent.mkdir(parents=True, exist_ok=True)
            ring._write(path, replace=False)
        return cls.load(path)

    def with_new_version(self) -> "KeyRing":
        """Return a ring with one more random key that is not active yet: distribute it, then activate it."""
        return KeyRing({**self.keys, max(self.keys) + 1: secrets.token_bytes(KEY_BYTES)}, self.active)

    def activated(self, version: int) -> "KeyRing":
        """Return a ring that wraps under ``version``."""
        return KeyRing(self.keys, version)

    def without(self, version: int) -> "KeyRing":
        """Return a ring without ``version``; first re-wrap everything, until that version wraps nothing."""
        return KeyRing({number: key for number, key in self.keys.items() if number != version}, self.active)

    def save(self, path: Path) -> None:
        """Replace the ring at ``path`` by this one, atomically."""
        self._write(path, replace=True)

    def _write(self, path: Path, *, replace: bool) -> None:
        keys = {str(version): base64.b64encode(key).decode() for version, key in sorted(self.keys.items())}
        body = json.dumps({"active": self.active, "keys": keys}, indent=1).encode()
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o400)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                draft.replace(path)
            else:
                # Linking fails where the name exists, so of many first starts exactly one creates the ring.
                try:
                    path.hardlink_to(draft)
                except FileExistsError:
                    return
            _sync_folder(path.parent)
        finally:
            draft.unlink(missing_ok=True)


def is_sample_key(key: bytes) -> bool:
    """Return whether ``key`` was typed or counted rather than drawn at random."""
    few = len(set(key)) < _LEAST_DISTINCT
    steps = {(after - before) % 256 for before, after in itertools.pairwise(key)}
    return few or len(steps) == 1 or all(0x20 <= byte < 0x7F for byte in key)  # noqa: PLR2004 - printable


def derived(key: bytes, purpose: str, context: bytes = b"") -> bytes:
    """Return 32 bytes for one purpose (HKDF-SHA256, RFC 5869, one block)."""
    extracted = hmac.digest(b"\0" * 32, key, "sha256")
    return hmac.digest(extracted, purpose.encode() + b"\0" + context + b"\x01", "sha256")


class ScopeKeys:
    """Look-ups, seals and tags under one scope's data key; bound to tenant, scope and key generation."""

    __slots__ = ("_aead", "_bound", "_lookup", "_tag")

    def __init__(self, dek: bytes, tenant: str, scope: str, generation: int) -> None:
        self._aead = AESGCM(derived(dek, "sluice entry"))
        self._lookup = derived(dek, "sluice lookup")
        self._tag = derived(dek, "sluice tag")
        self._bound = _framed(tenant.encode(), scope.encode("utf-8", "surrogatepass"), b"%d" % generation)

    def lookup(self, label: str, payload: bytes, *, canonical: bool) -> bytes:
        """Return the keyed look-up of a value; exact and canonical look-ups never collide."""
        kind = b"c" if canonical else b"x"
        return hmac.digest(self._lookup, kind + label.encode() + b"\0" + payload, "sha256")[:LOOKUP_BYTES]

    def seal(self, label: str, ordinal: int, payload: bytes) -> bytes:
        """Return the ciphertext of ``payload``, valid for this tenant, scope, label and ordinal only."""
        nonce = os.urandom(_NONCE_BYTES)
        return _FORMAT + nonce + self._aead.encrypt(nonce, payload, self._data(label, ordinal))

    def open(self, label: str, ordinal: int, sealed: bytes) -> bytes:
        """Return the sealed payload; raises ``SealBrokenError``."""
        if sealed[:1] != _FORMAT:
            raise SealBrokenError("The ciphertext has an unknown format.")
        nonce, body = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        try:
            return self._aead.decrypt(nonce, body, self._data(label, ordinal))
        except (InvalidTag, ValueError):
            raise SealBrokenError("The ciphertext does not belong to this place, or was changed.") from None

    def tag(self, label: str, ordinal: int, payload: bytes) -> str:
        """Return four letters bound to the value: a handle with them can never name another value."""
        digest = hmac.digest(self._tag, b"%s\0%d\0" % (label.encode(), ordinal) + payload, "sha256")
        bits = int.from_bytes(digest[:4]) & ((1 << _TAG_BITS) - 1)
        return "".join(_TAG_ALPHABET[bits >> shift & 31] for shift in (15, 10, 5, 0))

    def handle(self, label: str, ordinal: int, payload: bytes, *, tagged: bool) -> Handle:
        """Return the handle of an entry, with its tag where requested."""
        return Handle(label, ordinal, self.tag(label, ordinal, payload) if tagged else None)

    def _data(self, label: str, ordinal: int) -> bytes:
        return self._bound + b"%s\0%d" % (label.encode(), ordinal)


class KeyKeeper:
    """Creates and opens data keys; keeps opened ones in memory for at most five minutes."""

    def __init__(self, provider: KeyProvider) -> None:
        self.provider = provider
        self._open: OrderedDict[tuple[str, str], tuple[float, int, ScopeKeys]] = OrderedDict()

    def create(self, tenant: str, scope: str, generation: int) -> tuple[int, bytes, ScopeKeys]:
        """Create a data key; return the wrapping version, the wrapped key and the opened key."""
        dek = secrets.token_bytes(KEY_BYTES)
        version, wrapped = self.provider.wrap(dek)
        return version, wrapped, ScopeKeys(dek, tenant, scope, generation)

    def open(self, tenant: str, scope: str, generation: int, version: int, wrapped: bytes) -> ScopeKeys:
        """Unwrap a stored data key and return the opened key."""
        cached = self.recall(tenant, scope)
        if cached is not None and cached[0] == generation:
            return cached[1]
        keys = ScopeKeys(self.provider.unwrap(version, wrapped), tenant, scope, generation)
        self.keep((tenant, scope, generation), keys)
        return keys

    def recall(self, tenant: str, scope: str) -> tuple[int, ScopeKeys] | None:
        """Return the generation and the opened key in memory: another process may have given the scope a new one."""
        cached = self._open.get((tenant, scope))
        if cached is None or cached[0] <= monotonic():
            return None
        self._open.move_to_end((tenant, scope))
        return cached[1:]

    def keep(self, name: tuple[str, str, int], keys: ScopeKeys) -> None:
        """Cache the opened ``keys`` of a scope that is now stored."""
        tenant, scope, generation = name
        self._open[tenant, scope] = (monotonic() + _CACHED_S, generation, keys)
        while len(self._open) > _CACHED_KEYS:
            self._open.popitem(last=False)

    def forget(self, tenant: str, scope: str) -> None:
        """Drop the opened key of a scope that is erased."""
        self._open.pop((tenant, scope), None)


class RecordKeys:
    """Keyed digests, codes and seals of the record, and of the blind index: keys per tenant, from one root key.

    Digests and blind index of a tenant with a key of its own come from that one. Once ``follow`` was called, or with
    ``strict``, a digest of a tenant that is not `ready` raises StoreUnavailableError.
    """

    def __init__(self, root: bytes, *, strict: bool = False) -> None:
        self._root, self._strict, self._roots = root, strict, dict[str, bytes]()
        self._read: Callable[[str], Awaitable[None]] | None = None
        self._peek: Callable[[str], object] = self._roots.get
        self._derived: dict[tuple[str, str], bytes] = {}
        self._keyed: dict[tuple[str, str], hmac.HMAC] = {}

    def __reduce__(self) -> tuple[Callable[[bytes], "RecordKeys"], tuple[bytes]]:
        """Return what makes the same keys in another process of ours, where nobody reads tenants' own."""
        return partial(RecordKeys, strict=True), (self._root,)

    def follow(self, read: Callable[[str], Awaitable[None]], peek: Callable[[str], object]) -> None:
        """Let ``read`` admit the key of a tenant before its digests are made, again once ``peek`` returns None."""
        self._read, self._peek, self._strict = read, peek, True

    async def ready(self, tenant: str) -> None:
        """Have the key of a tenant's digests in memory."""
        if self._read is not None and (tenant not in self._roots or self._peek(tenant) is None):
            await self._read(tenant)

    def admit(self, tenant: str, own: bytes | None) -> None:
        """Make a tenant's digests with its ``own`` key, None: with one that comes from the root; forget the oldest."""
        root = self._root if own is None else own
        if self._roots.get(tenant) != root:
            self.drop(tenant)
        self._roots[tenant] = self._roots.pop(tenant, root)
        while len(self._roots) > _ADMITTED:
            self.drop(next(iter(self._roots)))

    def drop(self, tenant: str) -> None:
        """Forget with which key a tenant's digests are made."""
        self._roots.pop(tenant, None)
        for purpose in _OWN:
            self._derived.pop((tenant, purpose), None)
            self._keyed.pop((tenant, purpose), None)

    def digest(self, tenant: str, data: bytes) -> str:
        """Return the keyed digest (hex) that represents ``data`` in the record."""
        return self._code(tenant, _DIGEST, data).hexdigest()

    def blind(self, tenant: str, data: bytes) -> bytes:
        """Return the keyed digest by which a tenant finds a value of its vault in every scope."""
        return hmac.digest(self._key(tenant, _BLIND), data, "sha256")[:LOOKUP_BYTES]

    def mac(self, tenant: str, data: bytes) -> bytes:
        """Return the authentication code of one record."""
        return self._code(tenant, "sluice audit mac", data).digest()

    def seal(self, tenant: str, name: bytes, data: bytes, *, own: bool = False) -> bytes:
        """Encrypt what is to be kept; ``name`` is its kind. ``own``: under the tenant's own key, where it has one."""
        nonce = os.urandom(_NONCE_BYTES)
        aead = AESGCM(self._sealing_key(tenant, own=own))
        return _FORMAT + nonce + aead.encrypt(nonce, data, _framed(tenant.encode(), name))

    def open(self, tenant: str, name: bytes, sealed: bytes, *, own: bool = False) -> bytes:
        """Return the content that ``seal`` encrypted; raises ``SealBrokenError``."""
        nonce, body = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        aead = AESGCM(self._sealing_key(tenant, own=own))
        try:
            return aead.decrypt(nonce, body, _framed(tenant.encode(), name))
        except (InvalidTag, ValueError):
            raise SealBrokenError("The kept content does not belong to this record.") from None

    def _sealing_key(self, tenant: str, *, own: bool) -> bytes:
        own = own and self._roots.get(tenant, b"") != self._root and self._strict
        return self._key(tenant, _KEPT if own else "sluice audit content")

    def _code(self, tenant: str, purpose: str, data: bytes) -> hmac.HMAC:
        """Return the code of ``data``; a copy of what has taken the key in saves half of the work."""
        keyed = self._keyed.get((tenant, purpose))
        if keyed is None:
            keyed = self._keyed[tenant, purpose] = hmac.new(self._key(tenant, purpose), digestmod="sha256")
        code = keyed.copy()
        code.update(data)
        return code

    def _key(self, tenant: str, purpose: str) -> bytes:
        key = self._derived.get((tenant, purpose))
        if key is None:
            own = self._strict and purpose in _OWN
            root = self._roots.get(tenant) if own else self._root
            if root is None:
                raise StoreUnavailableError(
                    "The key of the tenant's digests is not read yet.", retry_after_s=1.0
                )
            key = self._derived[tenant, purpose] = derived(root, purpose, tenant.encode())
        return key


def _framed(*parts: bytes) -> bytes:
    """Join parts unambiguously: different lists of parts give different bytes."""
    return b"".join(len(part).to_bytes(4) + part for part in parts)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
