"""Distinguish random characters from words and placeholders, and right checksums from wrong ones."""

import base64
import binascii
import json
import math
import re
import zlib
from collections import Counter
from typing import Final

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_CHECK_LENGTH: Final = 6
_LEAST_RATIO: Final = 0.72
_PLACEHOLDER: Final = re.compile(
    r"(?i)x{4}|\*{3}|\.{3}|0{8}|placeholder|redacted|your[_-]|change[_-]?me|insert[_-]|replace[_-]?(?:me|with)"
    r"|abcdefgh|12345678901|foobar"
)


def entropy(text: str) -> float:
    """Return Shannon's entropy of the characters, in bits for each."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values()) if size else 0.0


def is_random(text: str, alphabet: int = 0) -> bool:
    """Return whether the characters look randomly drawn; ``alphabet`` 0: hexadecimal or base64, whichever matches."""
    if not alphabet:
        alphabet = 16 if _HEXADECIMAL.fullmatch(text) else 64
    if len(text) < 2:  # noqa: PLR2004 - one character proves nothing
        return False
    return entropy(text) >= _LEAST_RATIO * math.log2(min(len(text), alphabet))


def is_placeholder(text: str) -> bool:
    """Return whether a text is a placeholder for a key."""
    return _PLACEHOLDER.search(text) is not None


def base62_crc(text: str) -> str:
    """Return the CRC-32 of ``text`` as six digits of base62, as GitHub and npm append it to their tokens."""
    number = zlib.crc32(text.encode("ascii"))
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = _BASE62[rest] + digits
    return digits.rjust(_CHECK_LENGTH, "0")


def crc_holds(token: str) -> bool:
    """Return whether the last six characters are the checksum of the text between them and the prefix."""
    return base62_crc(token.rpartition("_")[2][:-_CHECK_LENGTH]) == token[-_CHECK_LENGTH:]


def crc_signed(token: str) -> str:
    """Return ``token`` with the right checksum."""
    return token[:-_CHECK_LENGTH] + base62_crc(token.rpartition("_")[2][:-_CHECK_LENGTH])


def is_base32(token: str) -> bool:
    """Return whether an AWS key id is base32 after its four letters, as all are since 2016."""
    return set(token[4:]) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")


def decoded(text: str) -> bytes | None:
    """Return the decoded bytes of base64 or base64url, or None."""
    try:
        return base64.b64decode(
            text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True
        )
    except (binascii.Error, ValueError):
        return None


def is_token_header(text: str) -> bool:
    """Return whether ``text`` is the first part of a JSON web token: an object that names an algorithm."""
    raw = decoded(text)
    if raw is None:
        return False
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and isinstance(header.get("alg", header.get("typ")), str)


def is_user_and_password(text: str) -> bool:
    """Return whether ``text`` is ``user:password`` in base64, both printable."""
    raw = decoded(text.rstrip("="))
    if raw is None or b":" not in raw:
        return False
    try:
        user, _, password = raw.decode("utf-8").partition(":")
    except UnicodeDecodeError:
        return False
    return bool(password) and (user + password).isprintable()
