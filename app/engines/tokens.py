"""Read and verify signed tokens (JWT, RFC 7519) with joserfc: signatures, keys and claims are the library's."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from joserfc import jws
from joserfc.errors import ExpiredTokenError, InvalidClaimError, JoseError, UnsupportedAlgorithmError
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey, import_key
from joserfc.jwt import ClaimsOption, JWTClaimsRegistry
from joserfc.util import urlsafe_b64decode

from app.core.errors import ServiceError
from app.core.identities import LONGEST_SUBJECT, TrustedIssuer
from app.core.strictjson import loads
from app.core.tokens import (
    TokenFault,
    TokenHead,
    TokenRefusedError,
    VerifiedToken,
    VerifyingKey,
)

LONGEST_TOKEN: Final = 16_384
_LONGEST_KEY_ID: Final = 512
_MOST_KEYS: Final = 100
_DEEPEST: Final = 16
_SHAPE: Final = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""What an access token may call itself (RFC 9068); a logout token, an ID token's proof or the like is none."""
_INTROSPECTED_TYPES: Final = frozenset({"bearer", "access_token"})
_LOGOUT_TYPES: Final = frozenset({"jwt", "logout+jwt", "application/logout+jwt"})
_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES: Final = {
    "P-256": frozenset({"ES256"}),
    "P-384": frozenset({"ES384"}),
    "P-521": frozenset({"ES512"}),
    "Ed25519": frozenset({"EdDSA", "Ed25519"}),
}
_ALGORITHMS: Final = _RSA.union(*_CURVES.values())
"""Signatures by key pairs only: a public key is never taken for a shared secret, and no signature for one."""
_RSA_BITS: Final = range(2048, 8193)
_RSA_DIGITS: Final = range(342, 1367)
"""Of such a modulus in base64url, so that no other is parsed."""
_FAR: Final = 1e12
"""In seconds since 1970: a token that names no end, or one beyond all numbers, ends by what else bounds it."""
_EXPONENT_BITS: Final = 32
_PUBLIC: Final = frozenset({"kty", "n", "e", "crv", "x", "y", "kid"})
_CHECKED: Final = ("iss", "aud", "sub", "exp", "iat")
_FAULTS: Final = (JoseError, ValueError, TypeError, KeyError, OverflowError)


class _Registry(jws.JWSRegistry):
    """Headers as long as issuers make them, such as with a chain of certificates, which nobody here looks at."""

    max_header_length = 12_288

    def get_alg(self, name: str) -> Any:
        """Return an allowed algorithm, without joserfc's warning of EdDSA: its keys are of Ed25519 alone here."""
        if name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError(name)
        return self.algorithms[name]


@dataclass(frozen=True, slots=True)
class JoseKey:
    """A public key that joserfc has read."""

    key_id: str | None
    algorithms: frozenset[str]
    key: Key = field(repr=False)


@dataclass(frozen=True, slots=True)
class JoseReader:
    """Verifies tokens by keys that were asked for; the addresses and keys that a token itself names are never used."""

    def looks_signed(self, text: str) -> bool:
        """Return whether ``text`` has the shape of a signed token."""
        return _SHAPE.fullmatch(text) is not None

    def head(self, token: str, *, logout: bool = False) -> TokenHead:
        """Return what to check a token with, or raise TokenRefusedError; ``logout``: a logout token."""
        if len(token) > LONGEST_TOKEN or _SHAPE.fullmatch(token) is None:
            raise TokenRefusedError("token")
        segments = token.encode().split(b".")
        header, claims = _object(segments[0]), _object(segments[1])
        algorithm, key_id = header.get("alg"), header.get("kid")
        kind = header.get("typ", "JWT")
        # An extension that must be understood (crit) is understood by nobody here.
        kinds = _LOGOUT_TYPES if logout else _TYPES
        if "crit" in header or "b64" in header or not isinstance(kind, str) or kind.lower() not in kinds:
            raise TokenRefusedError("token")
        if key_id is not None and not (isinstance(key_id, str) and len(key_id) <= _LONGEST_KEY_ID):
            raise TokenRefusedError("token")
        if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
            raise TokenRefusedError("signature")
        if not isinstance(claims.get("iss"), str):
            raise TokenRefusedError("issuer")
        return TokenHead(claims["iss"], algorithm, key_id)

    def keys(self, document: Any) -> Sequence[JoseKey]:
        """Return the keys for signatures in a key set (RFC 7517), without those that cannot be used."""
        listed = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(listed, list):
            return []
        read = [_key(described) for described in listed[:_MOST_KEYS] if isinstance(described, dict)]
        return [key for key in read if key is not None]

    def verified(
        self, token: str, head: TokenHead, keys: Sequence[VerifyingKey], issuer: TrustedIssuer, now: float
    ) -> VerifiedToken:
        """Return the claims, or raise TokenRefusedError; ``now`` is in seconds since 1970."""
        claims = _claims(token, head, keys, issuer)
        _check_claims(claims, issuer, now, essential=("iss", "aud", "sub", "exp", "iat"))
        return VerifiedToken(claims, _until(claims, issuer))

    def logout(
        self, token: str, head: TokenHead, keys: Sequence[VerifyingKey], issuer: TrustedIssuer, now: float
    ) -> VerifiedToken:
        """Return the claims of a logout token, which may name a session and no subject; else as ``verified``."""
        claims = _claims(token, head, keys, issuer)
        _check_claims(claims, issuer, now, essential=("iss", "aud", "exp", "iat"))
        return VerifiedToken(claims, _until(claims, issuer))

    def introspected(self, claims: Mapping[str, Any], issuer: TrustedIssuer, now: float) -> VerifiedToken:
        """Return what an issuer said of a token (RFC 7662) as its claims, or raise TokenRefusedError.

        Whom it is for must stand there. The token of a service without a subject is about its client.
        """
        if claims.get("active") is not True:
            raise TokenRefusedError("inactive")
        # Some issuers say of refresh tokens, too, that they count; one of DPoP is worth nothing without its proof.
        kind = claims.get("token_type", "bearer")
        is_access = isinstance(kind, str) and kind.lower() in _INTROSPECTED_TYPES
        if not is_access or claims.get("token_use") == "refresh_token":
            raise TokenRefusedError("token")
        named = dict(claims)
        if "sub" not in named and isinstance(named.get("client_id"), str):
            named["sub"] = named["client_id"]
        _check_claims(named, issuer, now, essential=("aud", "sub"))
        return VerifiedToken(named, _until(named, issuer))


def _claims(
    token: str, head: TokenHead, keys: Sequence[VerifyingKey], issuer: TrustedIssuer
) -> dict[str, Any]:
    """Return what a key of the issuer has signed, unchecked beyond that."""
    if head.issuer != issuer.issuer:
        raise TokenRefusedError("issuer")
    if head.algorithm not in issuer.algorithms:
        raise TokenRefusedError("signature")
    fitting = [key.key for key in keys if isinstance(key, JoseKey) and head.algorithm in key.algorithms]
    payload = next((read for key in fitting if (read := _signed(token, head, key)) is not None), None)
    if payload is None:
        raise TokenRefusedError("signature")
    return _parsed(payload)


def _object(segment: bytes) -> dict[str, Any]:
    try:
        return _parsed(urlsafe_b64decode(segment))
    except ValueError:
        raise TokenRefusedError("token") from None


def _parsed(text: bytes) -> dict[str, Any]:
    """Return a JSON object; one with a member twice, which readers take differently, is refused."""
    try:
        value = loads(text, max_depth=_DEEPEST)
    except ServiceError:
        raise TokenRefusedError("token") from None
    if not isinstance(value, dict):
        raise TokenRefusedError("token")
    return value


def _key(described: Mapping[str, Any]) -> JoseKey | None:
    operations = described.get("key_ops", ["verify"])
    modulus = described.get("n")
    if described.get("kty") == "RSA" and not (isinstance(modulus, str) and len(modulus) in _RSA_DIGITS):
        return None
    if described.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    try:
        key = import_key({name: described[name] for name in _PUBLIC & described.keys()})
        algorithms = _algorithms(key)
    except _FAULTS:
        return None
    designed = described.get("alg")
    if designed is not None:
        algorithms &= frozenset({designed} if isinstance(designed, str) else ())
    return JoseKey(key.kid, algorithms, key) if algorithms else None


def _algorithms(key: Key) -> frozenset[str]:
    if isinstance(key, RSAKey):
        public = key.public_key
        sound = isinstance(public, RSAPublicKey) and public.key_size in _RSA_BITS
        # A huge exponent makes every check slow.
        return _RSA if sound and public.public_numbers().e.bit_length() <= _EXPONENT_BITS else frozenset()
    if isinstance(key, ECKey | OKPKey):
        return _CURVES.get(key.curve_name, frozenset())
    return frozenset()


def _signed(token: str, head: TokenHead, key: Key) -> bytes | None:
    """Return the payload of a token that this key has signed, else None."""
    registry = _Registry(algorithms=[head.algorithm], strict_check_header=False)
    try:
        return jws.deserialize_compact(token, key, registry=registry).payload
    except _FAULTS:
        return None


def _until(claims: Mapping[str, Any], issuer: TrustedIssuer) -> float:
    ends = [claims["exp"]] if "exp" in claims else []
    ends += [claims["iat"] + issuer.max_token_age_s] if "iat" in claims else []
    return float(min([*ends, _FAR])) + issuer.leeway_s


def _check_claims(
    claims: dict[str, Any], issuer: TrustedIssuer, now: float, *, essential: Collection[str]
) -> None:
    wanted: dict[str, ClaimsOption] = {name: {"essential": name in essential} for name in _CHECKED}
    wanted["iss"]["value"] = issuer.issuer
    wanted["aud"]["values"] = [*issuer.audience]
    registry = JWTClaimsRegistry(now=int(now), leeway=issuer.leeway_s, **wanted)
    try:
        registry.validate(claims)
    except ExpiredTokenError:
        raise TokenRefusedError("token_expired") from None
    except InvalidClaimError as error:
        raise TokenRefusedError(_fault_of(error.claim)) from None
    except JoseError:
        raise TokenRefusedError("token") from None
    # A token that is bound to a key of its holder is worth nothing without a proof, which is not asked for here.
    subject = claims.get("sub", "-")
    if "cnf" in claims or not 1 <= len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
        raise TokenRefusedError("token")
    if "iat" in claims and claims["iat"] + issuer.max_token_age_s + issuer.leeway_s < now:
        raise TokenRefusedError("token_old")


def _fault_of(claim: str) -> TokenFault:
    if claim == "aud":
        return "audience"
    return "token_early" if claim in {"nbf", "iat"} else "token"
