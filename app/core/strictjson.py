"""Read and write JSON strictly: nothing ambiguous, nothing lossy, nothing that a peer could refuse."""

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from app.core.errors import InvalidRequestError, ServiceError, TooLargeError

MAX_INTEGER_DIGITS = 4300
"""The interpreter's own limit for converting between integers and text, which takes quadratic time."""

_NOT_STRUCTURAL = bytes(code for code in range(256) if code not in b'[]{}"')
_BRACES_TO_BRACKETS = bytes.maketrans(b"{}", b"[]")
# Everything except an escaped NUL and a lone surrogate.
_VALID_ESCAPES = re.compile(
    r"(?:[^\\]++|\\[^u]|\\u(?!0000|[dD][89a-fA-F])|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)*+", re.DOTALL
)
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)


class _RefusedError(Exception):
    """A hook of the decoder found something that JSON's grammar allows but this module refuses."""


def loads(body: bytes, *, max_depth: int = 64) -> Any:
    """Parse ``body`` or raise InvalidRequestError, or TooLargeError if it nests deeper than ``max_depth``.

    Integers keep every digit. Duplicate member names, NaN and infinities, floats that overflow, lone surrogates,
    NUL, a byte order mark, bytes that are not UTF-8 and anything after the value are refused. The error's
    ``details["position"]`` is an offset in bytes (for the encoding) or characters; no error quotes the body.
    """
    if body.startswith(b"\xef\xbb\xbf"):
        raise _invalid("The body starts with a byte order mark; send plain UTF-8.", 0)
    check_depth(body, max_depth)
    text = _decode_text(body)
    value = _parse_text(text)
    if b"\\u0000" in body or b"\\ud" in body or b"\\uD" in body:
        _check_escapes(text)
    return value


def dumps(value: Any) -> bytes:
    """Return ``value`` as compact UTF-8 JSON with its key order and every digit of integers."""
    return "".join(_encode(value, 0)).encode()


def depth_exceeds(body: bytes, limit: int) -> bool:
    """Return whether brackets outside strings nest deeper than ``limit``, without parsing or recursion."""
    if body.count(b"[") + body.count(b"{") <= limit:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Every second part between quotes is a string (or, in a malformed body, comes after the fault).
    brackets = b"".join(unescaped.translate(_BRACES_TO_BRACKETS, _NOT_STRUCTURAL).split(b'"')[::2])
    for _ in range(limit):
        # Each pass removes the innermost pairs, so brackets that survive `limit` passes nest deeper.
        fewer = brackets.replace(b"[]", b"")
        if len(fewer) == len(brackets):
            break
        brackets = fewer
    return brackets.count(b"[") > limit or b"[]" in brackets


def check_depth(body: bytes, max_depth: int) -> None:
    """Raise TooLargeError if ``body``, which may be no JSON at all, nests deeper than ``max_depth``."""
    if depth_exceeds(body, max_depth):
        raise TooLargeError(
            f"The JSON nests deeper than {max_depth} levels.",
            details={"limit": "depth", "maximum": max_depth},
        )


def _decode_text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        position = error.start
    # Raise outside the handler: the decoding error contains the body, and a chained error would keep it.
    raise _invalid("The body is not valid UTF-8.", position)


def _parse_text(text: str) -> Any:
    position = None
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        position = error.pos
    except (_RefusedError, ValueError):
        pass
    # Raise outside the handlers, and what no local holds: a chained error, or a frame that holds its own error, would
    # keep the body.
    raise _locate_fault(text) if position is None else _invalid("The body is not valid JSON.", position)


def _check_escapes(text: str) -> None:
    valid = _VALID_ESCAPES.match(text)
    end = valid.end() if valid else 0
    if end == len(text):
        return
    if text.startswith("\\u0000", end):
        raise _invalid("A string contains the character NUL.", end)
    raise _invalid("A string contains half of a surrogate pair.", end)


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RefusedError
    return members


def _finite_float(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise _RefusedError
    return value


def _no_constant(_: str) -> NoReturn:
    raise _RefusedError


def _locate_fault(text: str) -> ServiceError:
    """Find again, slowly, what a hook of the decoder refused, since hooks do not know their position."""
    names: list[set[str] | None] = []
    expects_name = False
    for token in _TOKEN.finditer(text):
        word, position = token[0], token.start()
        if word in "{[":
            names.append(set() if word == "{" else None)
            expects_name = word == "{"
        elif word in "}]":
            names.pop()
            expects_name = False
        elif word == ",":
            expects_name = bool(names) and names[-1] is not None
        elif word[0] == '"':
            seen = names[-1] if names else None
            if not expects_name or seen is None:
                continue
            name = json.loads(word, strict=False)
            if name in seen:
                return _invalid("An object has two members of the same name.", position)
            seen.add(name)
            expects_name = False
        elif (fault := _number_fault(word, position)) is not None:
            return fault
    return _invalid("The body is not valid JSON.", 0)


def _number_fault(word: str, position: int) -> ServiceError | None:
    if word in {"NaN", "Infinity", "-Infinity"}:
        return _invalid("NaN and infinities are not JSON.", position)
    if word.lstrip("-").isdigit():
        digits = len(word.lstrip("-"))
        if digits > MAX_INTEGER_DIGITS:
            return _invalid(f"An integer has more than {MAX_INTEGER_DIGITS} digits.", position)
        return None
    try:
        overflows = math.isinf(float(word))
    except ValueError:
        return None
    return _invalid("A number is too large for a 64-bit float.", position) if overflows else None


def _invalid(message: str, position: int) -> InvalidRequestError:
    return InvalidRequestError(message, details={"position": position})


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_float=_finite_float, parse_constant=_no_constant
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"))


def _encoding() -> Callable[[Any, int], Iterable[str]]:
    """Return what writes a value in pieces; the library would make it anew for each value."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without the library's part in C
        return lambda value, _level: _ENCODER.iterencode(value)
    quote = json.encoder.encode_basestring
    made: Callable[[Any, int], Iterable[str]] = make(
        *(None, _ENCODER.default, quote, None, _ENCODER.key_separator, _ENCODER.item_separator),
        *(_ENCODER.sort_keys, _ENCODER.skipkeys, _ENCODER.allow_nan),
    )
    return made


_encode = _encoding()
