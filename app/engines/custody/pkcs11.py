"""Open the key ring with a key in a security module, by PKCS#11 (extra ``pkcs11``); the key never leaves the module.

The key is an AES key of a token, found by the labels of both, which encrypts with GCM.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, unquote

import pkcs11
from pkcs11.exceptions import (
    EncryptedDataInvalid,
    EncryptedDataLenRange,
    GeneralError,
    PinIncorrect,
    PKCS11Error,
)

from app.engines.cipher import KeyRingError
from app.engines.custody.sealed_ring import CONTEXT, CustodianDownError

_NONCE_BYTES: Final = 12
_TAG_BITS: Final = 128
_CHANGED: Final = (EncryptedDataInvalid, EncryptedDataLenRange)


@dataclass(frozen=True, slots=True)
class Pkcs11Custodian:
    """A key of a token; ``uri`` is as in RFC 7512, ``pkcs11:token=…;object=…?module-path=…``, without a PIN."""

    uri: str
    pin: str = field(repr=False)

    @property
    def name(self) -> str:
        """Return where the key is."""
        return self.uri

    def seal(self, content: bytes) -> bytes:
        """Return ``content`` sealed."""
        nonce = os.urandom(_NONCE_BYTES)
        with self._key() as key:
            sealed: bytes = key.encrypt(
                content, mechanism=pkcs11.Mechanism.AES_GCM, mechanism_param=_gcm(nonce)
            )
        return nonce + sealed

    def open(self, sealed: bytes) -> bytes:
        """Return what was sealed."""
        nonce, body = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        with self._key() as key:
            try:
                content: bytes = key.decrypt(
                    body, mechanism=pkcs11.Mechanism.AES_GCM, mechanism_param=_gcm(nonce)
                )
            except (*_CHANGED, GeneralError):
                raise KeyRingError(
                    "The key ring was not sealed by this key of the token, or was changed."
                ) from None
        return content

    @contextmanager
    def _key(self) -> Iterator[Any]:
        parts = dict(
            part.partition("=")[::2] for part in self.uri.removeprefix("pkcs11:").partition("?")[0].split(";")
        )
        module = parse_qs(self.uri.partition("?")[2])["module-path"][0]
        try:
            token = pkcs11.lib(module).get_token(token_label=unquote(parts["token"]))
            with token.open(user_pin=self.pin) as session:
                yield session.get_key(
                    object_class=pkcs11.ObjectClass.SECRET_KEY, label=unquote(parts["object"])
                )
        except PinIncorrect:
            raise CustodianDownError("The token refuses the PIN in SLUICE_KEYS__PIN.") from None
        except (PKCS11Error, RuntimeError) as error:
            if isinstance(error, KeyRingError):
                raise
            raise CustodianDownError(f"The security module does not help ({type(error).__name__}).") from None


def _gcm(nonce: bytes) -> Any:
    return pkcs11.GCMParams(nonce=nonce, aad=CONTEXT, tag_bits=_TAG_BITS)
