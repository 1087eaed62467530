"""Credentials with a typical structure: private keys, web tokens, URLs, headers, configuration files of tools."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.engines.secrets.assignments import ASSIGNMENTS
from app.engines.secrets.checks import decoded, is_random, is_token_header, is_user_and_password
from app.engines.secrets.placeholders import is_filled_in, is_words
from app.engines.secrets.spotting import Find, SecretRule, Spot, compiled, stands_alone

_LONGEST_KEY: Final = 16_384
_LONGEST_TOKEN: Final = 16_384
_LEAST_KEY: Final = 64
"""Base64 characters of the shortest private key; anything shorter is a line of a program that reads keys."""
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/=]{16,}")
_DASHES: Final = b"-----"
_BEARER_LEAST: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Anchored:
    """RE2 patterns of the text from a keyword to a credential (``head``), and of the credential itself (``value``).

    ``follows`` must match after it, and ``holds`` makes the final decision. ``longest`` bounds both parts.
    """

    label: str
    head: str
    value: str
    longest: int
    holds: Callable[[str], bool]
    score: float = 0.9
    alone: bool = False
    follows: str = ""

    def __call__(self, data: bytes, at: int) -> Spot | None:
        """Return the credential whose keyword begins at ``at``, or None."""
        hopeless = self.follows and data.find(b"@", at, at + 2 * self.longest) < 0
        if hopeless or (self.alone and not stands_alone(data, at)):
            return None
        front = compiled(self.head).match(data, at, at + self.longest) if self.head else None
        if self.head and front is None:
            return None
        start = front.end() if front is not None else at
        value = compiled(self.value).match(data, start, start + self.longest)
        if value is None:
            return None
        end = value.end()
        if self.follows:
            end = data.rfind(b"@", start, end)
            if end <= start or compiled(self.follows).match(data, end, end + _AFTER) is None:
                return None
        if not self.holds(data[start:end].decode("ascii")):
            return None
        return Spot(start, end, self.label, self.score)


_AFTER: Final = 8
_HOST: Final = r"@(?:[A-Za-z0-9_%.-]|\[[0-9A-Fa-f:])"
_PEM: Final = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(rb"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_CUT_KEY: Final = re.compile(rb"(?:[A-Za-z0-9+/=]|\\[nr]|\s)*")


def _private_key(data: bytes, at: int) -> Spot | None:
    r"""Return a private key in PEM or PGP armour, whole: line breaks may be spelled ``\n``; its end may be cut off."""
    begin = _PEM.match(data, at)
    if begin is None:
        return None
    body = begin.end()
    dashes = data.find(_DASHES, body, body + _LONGEST_KEY)
    end = _PEM_END.match(data, dashes) if dashes >= 0 else None
    cut = _CUT_KEY.match(data, body, body + _LONGEST_KEY)
    stop = end.end() if end else (cut.end() if cut else body)
    inside = data[body : end.start() if end else stop]
    if sum(len(run) for run in _BASE64.findall(inside)) < _LEAST_KEY:
        return None
    return Spot(at, stop, "SECRET_PRIVATE_KEY", 1.0)


def _is_wrapped_key(text: str) -> bool:
    raw = decoded(text[: len(text) // 4 * 4].rstrip("="))
    return raw is not None and _PEM.match(raw) is not None


def _is_web_token(text: str) -> bool:
    header, _, rest = text.partition(".")
    return is_token_header(header) and rest.count(".") in (1, 3)


def _is_bearer(text: str) -> bool:
    return is_filled_in(text) and is_random(text) and any(char.isdigit() for char in text)


def _is_mixed(text: str) -> bool:
    return is_random(text)


def _is_password(text: str) -> bool:
    return is_filled_in(text.strip("[](),"))


def _connection(data: bytes, at: int) -> Spot | None:
    """Return the password of a connection string, which must also name a server or a user and not be code."""
    spot = _CONNECTION(data, at)
    if spot is None or compiled(_BESIDE).search(data, max(0, at - _NEAR), spot.end + _NEAR) is None:
        return None
    value = data[spot.start : spot.end].decode("ascii")
    return None if data[spot.end : spot.end + 1] == b"(" or ("." in value and is_words(value)) else spot


_NEAR: Final = 160
_BESIDE: Final = (
    r"(?i)(?:server|data source|host|addr(?:ess)?|driver|dsn|uid|user ?id|database|initial catalog|dbname)\s?="
    r"|jdbc:|odbc:"
)
_CONNECTION: Final = Anchored(
    "SECRET_DATABASE",
    r"""(?i)(?:password|pwd)[ \t]?=[ \t]?["'{]?""",
    r"""[^\s;&"'(){}<>]{3,}""",
    128,
    _is_password,
    0.8,
)
_NETRC: Final = re.compile(rb"(?:login|account|machine)\s{1,20}[^\s]{1,100}\s{1,20}\Z")


def _netrc(data: bytes, at: int) -> Spot | None:
    """Return the password of a line of ``.netrc``, in which words have no signs between them."""
    spot = _WORDS(data, at)
    return spot if spot is not None and _NETRC.search(data, max(0, at - _NEAR), at) else None


_WORDS: Final = Anchored(
    "SECRET_PASSWORD", r"(?i)password[ \t\r\n]+", r"[^\s\"'{}]{3,}", 128, _is_password, 0.7, alone=True
)
_USER: Final = r"""://[^\s/?#:@"'<>\\(){}]*:"""
_UP_TO_HOST: Final = r"""[^\s"'<>/\\{}]+@"""
_LONGEST_PART: Final = 260
_DATABASES: Final = (
    "postgres",
    "postgresql",
    "mysql",
    "mariadb",
    "mongodb",
    "redis",
    "rediss",
    "amqp",
    "amqps",
)


def _database_urls() -> tuple[SecretRule, ...]:
    return tuple(
        SecretRule(
            "database",
            f"{scheme}{mark}",
            Anchored(
                "SECRET_DATABASE",
                rf"(?i){scheme}(?:\+[a-z0-9]+)?{_USER}",
                r"""[^\s"'<>\\]+@""",
                _LONGEST_PART,
                _is_password,
                1.0,
                follows=_HOST,
            ),
        )
        for scheme in _DATABASES
        for mark in (":", "+")
    )


def _rule(provider: str, gate: str, find: Find, *, entropy: bool = False) -> SecretRule:
    return SecretRule(provider, gate, find, entropy)


STRUCTURES: tuple[SecretRule, ...] = (
    _rule("private_key", "-----begin ", _private_key),
    _rule(
        "private_key",
        "ls0tls1crudjti",
        Anchored(
            "SECRET_PRIVATE_KEY",
            "",
            r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{80,}={0,2}",
            _LONGEST_KEY,
            _is_wrapped_key,
            alone=True,
        ),
    ),
    _rule(
        "private_key",
        "private-lines:",
        Anchored(
            "SECRET_PRIVATE_KEY",
            r"Private-Lines: [0-9]{1,3}(?:\r?\n|\\r\\n|\\n)",
            r"(?:[A-Za-z0-9+/=]{20,64}(?:\r?\n|\\r\\n|\\n|$))+",
            _LONGEST_KEY,
            bool,
        ),
    ),
    _rule(
        "jwt",
        "eyj",
        Anchored(
            "SECRET_JWT",
            "",
            r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})?",
            _LONGEST_TOKEN,
            _is_web_token,
            1.0,
            alone=True,
        ),
    ),
    _rule(
        "url", "://", Anchored("SECRET_URL", _USER, _UP_TO_HOST, _LONGEST_PART, _is_password, follows=_HOST)
    ),
    *_database_urls(),
    _rule("database", "password=", _connection),
    _rule("database", "password =", _connection),
    _rule("database", "pwd=", _connection),
    _rule("database", "pwd =", _connection),
    _rule(
        "azure",
        "sig=",
        Anchored("SECRET_AZURE", "sig=", r"[A-Za-z0-9%+/]{43,80}(?:=|%3[Dd])", 100, _is_mixed, alone=True),
    ),
    _rule(
        "basic_auth",
        "basic ",
        Anchored(
            "SECRET_BASIC_AUTH",
            r"(?i)basic +",
            r"[A-Za-z0-9+/_-]{6,}={0,2}",
            400,
            is_user_and_password,
            0.9,
            alone=True,
        ),
    ),
    _rule(
        "docker",
        '"auth"',
        Anchored(
            *(
                "SECRET_DOCKER",
                r'"auth"\s{0,3}:\s{0,3}"',
                r"[A-Za-z0-9+/]{6,}={0,2}",
                400,
                is_user_and_password,
            )
        ),
    ),
    _rule(
        "token",
        "bearer ",
        Anchored(
            "SECRET_TOKEN",
            r"(?i)bearer +",
            rf"[A-Za-z0-9._~+/-]{{{_BEARER_LEAST},}}={{0,2}}",
            4_200,
            _is_bearer,
            0.7,
            alone=True,
        ),
        entropy=True,
    ),
    _rule(
        "password",
        "curl ",
        Anchored(
            "SECRET_PASSWORD",
            r"""(?i)curl[^\n]{0,200}? (?:-u|--user|--proxy-user)[ =]?["']?[^\s:"'-][^\s:"']*:""",
            r"""[^\s"']+""",
            300,
            _is_password,
            0.8,
            alone=True,
        ),
    ),
    _rule("password", "password", _netrc),
    *ASSIGNMENTS,
)
"""All rules that need more than a format."""
