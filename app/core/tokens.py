"""Signed tokens: the contract behind which a library reads, verifies and refuses them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from app.core.access import Caller
from app.core.identities import TrustedIssuer

TokenFault = Literal[
    "token",
    "inactive",
    "issuer",
    "signature",
    "audience",
    "token_expired",
    "token_early",
    "token_old",
    "unmapped",
]
"""Why a token is refused.

It is malformed, its issuer says that it counts no more, or is not trusted; no key of the issuer signed it; it is for
somebody else; its times; no rule maps it.
"""


class TokenRefusedError(Exception):
    """A token is not taken; the message is the reason alone and holds nothing of the token."""

    def __init__(self, reason: TokenFault) -> None:
        super().__init__(reason)
        self.reason: TokenFault = reason


class CallerRefusedError(Exception):
    """A token names nobody who may call; ``caller`` is whom it would have been, where that is clear."""

    def __init__(
        self, reason: TokenFault | Literal["malformed", "ended", "address"], caller: Caller | None = None
    ) -> None:
        super().__init__(reason)
        self.reason: TokenFault | Literal["malformed", "ended", "address"] = reason
        self.caller = caller


class TokenHead(NamedTuple):
    """What an unverified token says of itself: which issuer, key and algorithm to check it with."""

    issuer: str
    algorithm: str
    key_id: str | None


class VerifyingKey(Protocol):
    """A public key of an issuer."""

    @property
    def key_id(self) -> str | None:
        """Return the name that the issuer has for the key."""
        ...

    @property
    def algorithms(self) -> frozenset[str]:
        """Return the algorithms whose signatures it may verify."""
        ...


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """The claims of a token whose signature, issuer, audience and times hold, and until when they do.

    ``until`` is in seconds since 1970.
    """

    claims: Mapping[str, Any]
    until: float


class TokenReader(Protocol):
    """Reads tokens and keys. Nothing that a token says of itself chooses more than one of the issuer's own keys."""

    def looks_signed(self, text: str) -> bool:
        """Return whether ``text`` has the shape of a signed token."""
        ...

    def head(self, token: str, *, logout: bool = False) -> TokenHead:
        """Return what to check a token with, or raise TokenRefusedError; ``logout``: a logout token."""
        ...

    def keys(self, document: Any) -> Sequence[VerifyingKey]:
        """Return the keys for signatures in a key set (RFC 7517), without those that cannot be used."""
        ...

    def verified(
        self, token: str, head: TokenHead, keys: Sequence[VerifyingKey], issuer: TrustedIssuer, now: float
    ) -> VerifiedToken:
        """Return the claims, or raise TokenRefusedError; ``now`` is in seconds since 1970."""
        ...

    def logout(
        self, token: str, head: TokenHead, keys: Sequence[VerifyingKey], issuer: TrustedIssuer, now: float
    ) -> VerifiedToken:
        """Return the claims of a logout token, which may name a session and no subject; else as ``verified``."""
        ...

    def introspected(self, claims: Mapping[str, Any], issuer: TrustedIssuer, now: float) -> VerifiedToken:
        """Return what an issuer said of a token (RFC 7662) as its claims, or raise TokenRefusedError."""
        ...
