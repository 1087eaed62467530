"""Tokens: what is taken, and the attacks on how tokens are verified."""

import base64
import hmac
import json
import time
import warnings
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc import jws, jwt
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey
from joserfc.util import int_to_base64

from app.core.identities import TrustedIssuer
from app.core.tokens import TokenRefusedError, VerifiedToken
from app.engines.tokens import LONGEST_TOKEN, JoseReader

ISSUER = "https://login.example.com"
AUDIENCE = "https://sluice.example.com/mcp"
NOW = 1_800_000_000
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
ED = OKPKey.generate_key("Ed25519", {"kid": "ed"})
STRANGER = ECKey.generate_key("P-256", {"kid": "ec"})
READER = JoseReader()
TRUSTED = TrustedIssuer(ISSUER, frozenset({AUDIENCE, "api://sluice"}), ())


def published(*keys: Key, **members: Any) -> dict[str, Any]:
    return {"keys": [{**key.as_dict(private=False), **members} for key in keys]}


def claims(**changed: Any) -> dict[str, Any]:
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": NOW, "exp": NOW + 300}
    return {name: value for name, value in {**good, **changed}.items() if value is not None}


def signed(key: Key = EC, header: dict[str, Any] | None = None, **changed: Any) -> str:
    head = {
        "alg": {"rsa": "RS256", "ed": "EdDSA"}.get(str(key.kid), "ES256"),
        "kid": key.kid,
        **(header or {}),
    }
    with warnings.catch_warnings():  # joserfc warns of the name EdDSA where it signs
        warnings.simplefilter("ignore")
        return jwt.encode(head, claims(**changed), key, algorithms=[head["alg"]])


def raw(payload: bytes, header: bytes | None = None, key: Key = EC) -> str:
    """Return a token with exactly these bytes of JSON, signed as they are."""
    head = header or json.dumps({"alg": "ES256", "kid": key.kid}).encode()
    start = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (head, payload))
    signature = jws.default_registry.get_alg("ES256").sign(start, key)
    return (start + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def read(token: str, *keys: Key, issuer: TrustedIssuer = TRUSTED, now: float = NOW) -> VerifiedToken:
    head = READER.head(token)
    own = [key for key in READER.keys(published(*(keys or (RSA, EC, ED)))) if key.key_id == head.key_id]
    return READER.verified(token, head, own, issuer, now)


def fault(token: str, *keys: Key, issuer: TrustedIssuer = TRUSTED, now: float = NOW) -> str:
    with pytest.raises(TokenRefusedError) as refused:
        read(token, *keys, issuer=issuer, now=now)
    return refused.value.reason


@pytest.mark.parametrize("key", [RSA, EC, ED], ids=lambda key: str(key.kid))
def test_a_token_of_the_issuer_is_taken(key: Key) -> None:
    token = signed(key, aud=["https://other.example.com", "api://sluice"], groups=["a"])
    verified = read(token)
    assert (verified.claims["sub"], verified.claims["groups"]) == ("ada", ["a"])
    assert verified.until == NOW + 300 + TRUSTED.leeway_s


def test_no_token_is_taken_for_longer_than_its_age_may_be() -> None:
    old = TrustedIssuer(ISSUER, TRUSTED.audience, (), max_token_age_s=60, leeway_s=0)
    token = signed(exp=NOW + 86_400)
    assert read(token, issuer=old, now=NOW + 60).until == NOW + 60
    assert fault(token, issuer=old, now=NOW + 61) == "token_old"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"aud": "https://other.example.com"}, "audience"),
        ({"aud": AUDIENCE + "/"}, "audience"),
        ({"aud": {AUDIENCE: True}}, "audience"),
        ({"aud": [AUDIENCE, 7]}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": None}, "token"),
        ({"iss": ISSUER + "/"}, "issuer"),
        ({"iss": "https://evil.example.com"}, "issuer"),
        ({"iss": [ISSUER]}, "issuer"),
        ({"exp": NOW - 31}, "token_expired"),
        ({"exp": str(NOW + 300)}, "token"),
        ({"exp": True}, "token"),
        ({"exp": None}, "token"),
        ({"iat": None}, "token"),
        ({"iat": NOW + 31}, "token_early"),
        ({"iat": 10**400}, "token_early"),
        ({"nbf": NOW + 31}, "token_early"),
        ({"nbf": [0]}, "token_early"),
        ({"sub": None}, "token"),
        ({"sub": ""}, "token"),
        ({"sub": {"id": 1}}, "token"),
        ({"sub": "a" * 257}, "token"),
        ({"sub": "a\u202eb"}, "token"),
        ({"cnf": {"jkt": "of-a-key"}}, "token"),
    ],
)
def test_claims_that_are_not_for_this_service_are_refused(changed: dict[str, Any], reason: str) -> None:
    assert fault(signed(**changed)) == reason


def test_clocks_may_differ_by_the_leeway_and_no_more() -> None:
    for good in ({"exp": NOW - 29}, {"iat": NOW + 30, "nbf": NOW + 30}):
        assert read(signed(**good)).claims["sub"] == "ada"


def test_a_token_without_a_signature_is_refused() -> None:
    for algorithm in ("none", "None", "NONE", ""):
        head = base64.urlsafe_b64encode(json.dumps({"alg": algorithm, "kid": "ec"}).encode()).rstrip(b"=")
        body = base64.urlsafe_b64encode(json.dumps(claims()).encode()).rstrip(b"=")
        for end in (b"", b"AAAA"):
            assert fault((head + b"." + body + b"." + end).decode()) == "signature"
    assert fault(signed().rpartition(".")[0] + ".") == "signature"


def test_a_public_key_is_never_taken_for_a_shared_secret() -> None:
    for key in (RSA, EC):
        for secret in (key.as_pem(private=False), json.dumps(key.as_dict(private=False)).encode()):
            for algorithm in ("HS256", "HS384", "HS512"):
                start = raw(
                    json.dumps(claims()).encode(), json.dumps({"alg": algorithm, "kid": key.kid}).encode()
                )
                start = start.rpartition(".")[0]
                code = hmac.digest(secret, start.encode(), f"sha{algorithm[2:]}")
                token = f"{start}.{base64.urlsafe_b64encode(code).rstrip(b'=').decode()}"
                assert fault(token) == "signature"
    assert READER.keys({"keys": [OctKey.generate_key(256, {"kid": "oct"}).as_dict()]}) == []


def test_a_key_verifies_its_own_algorithm_only() -> None:
    assert fault(signed(EC, {"kid": "rsa"})) == "signature"
    assert fault(signed(RSA, {"kid": "ec"})) == "signature"
    assert fault(signed(RSA, {"alg": "RS512"})) == "signature"  # not among the issuer's algorithms
    (bound,) = READER.keys(published(RSA, alg="RS512"))
    assert bound.algorithms == {"RS512"}


def test_a_foreign_key_verifies_nothing_wherever_the_token_says_it_is() -> None:
    own = STRANGER.as_dict(private=False)
    for header in (
        {},
        {"jku": "https://evil.example.com/keys"},
        {"x5u": "https://evil.example.com/chain"},
        {"jwk": own},
        {"x5c": ["MIIB"]},
    ):
        assert fault(signed(STRANGER, header)) == "signature"
        # What stands there does no harm where the issuer itself has signed.
        assert read(signed(EC, header)).claims["sub"] == "ada"


@pytest.mark.parametrize(
    "kid", ["../../dev/null", "' OR 1=1 --", "ec\0", "http://evil.example.com", "e" * 513, ""]
)
def test_the_name_of_a_key_is_only_compared(kid: str) -> None:
    assert fault(signed(EC, {"kid": kid})) in {"signature", "token"}


def test_a_name_of_a_key_that_is_no_text_is_refused() -> None:
    for kid in (b"7", b"null", b'["ec"]', b'{"a":1}'):
        token = raw(json.dumps(claims()).encode(), b'{"alg":"ES256","kid":' + kid + b"}")
        if kid != b"null":
            assert fault(token) == "token"


def test_members_that_stand_there_twice_are_refused() -> None:
    good = json.dumps(claims())
    assert read(raw(good.encode())).claims["sub"] == "ada"
    for doubled in (
        good[:-1] + ', "sub": "root"}',
        good[:-1] + ', "realm_access": {"roles": ["a"], "roles": ["admin"]}}',
        good[:-1] + ', "exp": 9e9}',
    ):
        assert fault(raw(doubled.encode())) == "token"
    head = b'{"alg":"none","alg":"ES256","kid":"ec"}'
    assert fault(raw(good.encode(), head)) == "token"


@pytest.mark.parametrize(
    "payload",
    [
        b"[]",
        b'"text"',
        b"7",
        b"",
        b"{",
        b'{"exp": NaN}',
        b"\xff",
        b"[" * 5000,
        b'{"a":' * 40 + b"1" + b"}" * 40,
    ],
)
def test_what_is_no_object_is_refused(payload: bytes) -> None:
    assert fault(raw(payload)) == "token"


def test_what_calls_itself_something_else_is_no_access_token() -> None:
    for kind in ("logout+jwt", "dpop+jwt", "secevent+jwt", "JWE"):
        assert fault(signed(EC, {"typ": kind})) == "token"
    for kind in ("JWT", "at+jwt", "AT+JWT", "application/at+jwt"):
        assert read(signed(EC, {"typ": kind})).claims["sub"] == "ada"


def test_an_extension_that_must_be_understood_is_refused() -> None:
    header = json.dumps({"alg": "ES256", "kid": "ec", "b64": False, "crit": ["b64"]}).encode()
    assert fault(raw(json.dumps(claims()).encode(), header)) == "token"


def test_what_is_too_long_is_not_parsed() -> None:
    assert fault(signed(padding="x" * LONGEST_TOKEN)) == "token"


def test_only_sound_keys_of_a_set_are_used() -> None:
    small = rsa.generate_private_key(65537, 1024).public_key().public_numbers().n  # noqa: S505 - a weak key, to be refused
    weak = {"kty": "RSA", "kid": "weak", "n": int_to_base64(small), "e": "AQAB"}
    good = EC.as_dict(private=False)
    wrong: list[Any] = [
        *(
            7,
            None,
            {},
            {"kty": "EC"},
            {**good, "x": "!"},
            {**good, "use": "enc"},
            {**good, "key_ops": ["sign"]},
        ),
        {**good, "key_ops": "verify"},
        {**good, "crv": "P-999"},
        {**good, "kid": 7},
        weak,
        {**RSA.as_dict(private=False), "e": "AQAB" * 40},
        {**good, "alg": ["ES256"]},
    ]
    assert [key.key_id for key in READER.keys({"keys": [*wrong, good]})] == ["ec"]
    for document in (None, [], {}, {"keys": {}}, {"keys": "x"}):
        assert READER.keys(document) == []


def test_the_shape_tells_a_token_from_a_key() -> None:
    assert READER.looks_signed(signed())
    for other in ("slc_0123abcd_" + "A" * 43, "opaque", "a.b.c", "", signed() + ".x"):
        assert not READER.looks_signed(other)


def test_a_moment_is_compared_with_the_clock_that_runs() -> None:
    now = time.time()
    fresh = signed(iat=int(now), exp=int(now) + 60)
    assert read(fresh, now=now).until > now
