"""Find values after a name: ``password = …``, ``api_key: …``, ``--token …``; judge them by how random they look."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from app.engines.secrets.checks import is_random
from app.engines.secrets.placeholders import is_filled_in, is_identifier, is_sequence, is_words
from app.engines.secrets.spotting import SecretRule, Spot, compiled

_NAME: Final = r"[A-Za-z0-9_\-]{0,24}"
_SIGNED: Final = (
    rf"""{_NAME}(?:[ \t]?:[ \t]?[A-Za-z][A-Za-z\[\]|. ]{{1,24}})?["'\]\\]{{0,3}}[ \t]{{0,12}}"""
    r"""(?:=>|:=|===|==|=|:|["'][ \t]{1,4}value=|\|)[ \t]{0,12}\\?"""
)
_STRING_PREFIX: Final = re.compile(rb"""[bBrRuU]{1,2}(?=["'])""")
_SPOKEN: Final = rf"""{_NAME}["']?[ \t]+(?i:is|are|was)[ \t]*[:=]?[ \t]+["'\x60]?"""
_OPTION: Final = rf"""{_NAME}[ \t=]["']?"""
_ELEMENT: Final = rf"{_NAME}>"
_BARE_VALUE: Final = re.compile(rb"""[^\s"'`<>(){}\[\],;&|\\]{2,200}""")
_AMPERSANDS: Final = re.compile(rb"""(?:&[^\s"'`<>(){}\[\],;&=|\\]{0,60}){1,4}(?=\s|\Z|\\[nr])""")
_SPOKEN_VALUE: Final = re.compile(rb"""[^\s"'`,;<>]{6,200}""")
_QUOTED_VALUES: Final = {
    quote: re.compile(rb"([^%b\s\\]{6,200})\\?%b" % (quote, quote)) for quote in (b'"', b"'", b"`")
}
_ELEMENT_VALUE: Final = re.compile(rb"([^<>\s]{6,200})</")
_HEAD: Final = 100
"""Longest name, type and sign together."""
_WORD: Final = re.compile(rb"[A-Za-z0-9_\-]{0,24}")
_CALLS: Final = (b"(", b"[", b"{")
_OTHER_NAMES: Final = re.compile(
    r"(?i)name|url|uri|path|file|type|len|count|hash|regex|pattern|label|field|policy|error|msg|message|prefix|header"
    r"|format|class|expir|ttl|reset|hint|public|_id|version|column|param|env|var$|arn|digest|manager|store$|endpoint"
)
_OTHER_OWNERS: Final = re.compile(
    rb"(?i)(?:csrf|public|sha\d*|hash|cache|next_?page|page|continuation|sync|etag|cancel)[_-]?$"
)
_CODE: Final = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)*\d?")
_ODD: Final = re.compile(r"[!@#$%^&*+=~?]")
_PLACE: Final = re.compile(r"(?i)(?:https?|file|ftp|arn|urn|data):|[/.~]{1,2}[/A-Za-z]|[A-Za-z]:\\|#/|--")
_PUNCTUATED: Final = b".,;:!?)"
_PASSWORD_LEAST, _PASSWORD_MOST, _KEY_LEAST = 6, 128, 16
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_HEXADECIMAL_LEAST: Final = 24
"""Shorter hexadecimal values are more often checksums and ids than keys."""
_CHANGES: Final = 0.2
_LONG: Final = 24

_DRAWN: Final = 4
"""More changes between letters and digits than almost any variable name has."""

_CLASS_NAME: Final = re.compile(r"[A-Z][A-Z0-9]{0,3}(?:[A-Z][a-z]{2,}){2,}\d?")
"""``S3CredentialProvider``: capitalised words behind a short prefix, as types are named."""


@dataclass(slots=True, eq=False)
class Assigned:
    """Checks the value assigned to a name that contains ``keyword``; people choose passwords, machines draw keys."""

    keyword: str
    kind: Literal["password", "key"]
    label: str
    last: bool = False
    """Whether the keyword must be the last word of the name: DB_PASS, but not passenger or bypass."""

    def __call__(self, data: bytes, at: int) -> Spot | None:
        """Return the value that is assigned to the name at ``at``, or None."""
        behind = at + len(self.keyword)
        rest = _WORD.match(data, behind)
        if rest is None or _OTHER_NAMES.search(rest[0].decode("ascii")):
            return None
        if self.last and (rest[0] or data[max(0, at - 1) : at].isalnum()):
            return None
        value = _value(data, at, behind)
        if value is None or _OTHER_OWNERS.search(data, max(0, at - _LONG), at):
            return None
        text = data[value.start : value.end].decode("ascii")
        bare = value.bare and not data[at : at + 1].isupper() and not _is_entry(data, at, value)
        holds = is_password(text) if self.kind == "password" else is_key(text)
        if not holds or (bare and _is_code(text, self.kind)):
            return None
        return Spot(value.start, value.end, self.label, 0.6)


@dataclass(frozen=True, slots=True)
class _Value:
    start: int
    end: int
    bare: bool = False


def _value(data: bytes, at: int, behind: int) -> _Value | None:
    """Return the value assigned to the name at ``at``, whose keyword ends at ``behind``."""
    match = compiled(_SIGNED).match(data, behind, behind + _HEAD)
    if match is not None:
        prefix = _STRING_PREFIX.match(data, match.end())
        start = prefix.end() if prefix is not None else match.end()
        return _assigned(data, start, compared=b"==" in data[behind : match.end()])
    match = compiled(_SPOKEN).match(data, behind, behind + _HEAD)
    if match is not None:
        phrase = _SPOKEN_VALUE.match(data, match.end())
        return _Value(phrase.start(), phrase.start() + len(phrase[0].rstrip(_PUNCTUATED))) if phrase else None
    match = compiled(_ELEMENT).match(data, behind, behind + _HEAD)
    if match is not None:
        inside = _ELEMENT_VALUE.match(data, match.end())
        return _Value(*inside.span(1)) if inside else None
    match = compiled(_OPTION).match(data, behind, behind + _HEAD)
    if match is not None and _is_option(data, at):
        value = _bare(data, match.end())
        return _Value(value.start, value.end) if value else None
    return None


def _assigned(data: bytes, at: int, *, compared: bool) -> _Value | None:
    quoted = _QUOTED_VALUES.get(data[at : at + 1])
    if quoted is not None:
        content = quoted.match(data, at + 1)
        return _Value(*content.span(1)) if content else None
    # An unquoted value in a comparison is code.
    return None if compared else _bare(data, at)


def _bare(data: bytes, at: int) -> _Value | None:
    run = _BARE_VALUE.match(data, at)
    if run is None or data[run.end() : run.end() + 1] in _CALLS:
        return None
    # In a URL an ampersand ends a value and is followed by a name and a sign; elsewhere it is part of the value.
    more = _AMPERSANDS.match(data, run.end())
    return _Value(run.start(), more.end() if more else run.end(), bare=True)


def _is_entry(data: bytes, at: int, value: _Value) -> bool:
    """Return whether a line is only ``name: value`` or ``name=value``, as in YAML, properties and notes."""
    line = max(data.rfind(b"\n", max(0, at - _LONG), at) + 1, at - _LONG, 0)
    alone = data[value.end : value.end + 1] in (b"", b"\n", b"\r") and not data[line:at].strip(b" \t-_")
    signs = data[at : value.start]
    # Code puts spaces around the sign of an assignment.
    return alone and b"\n" not in signs and (b":" in signs or (signs.endswith(b"=") and b" " not in signs))


def _is_code(value: str, kind: str) -> bool:
    """Return whether an unquoted value may be a variable, an attribute or a type."""
    if _CODE.fullmatch(value) is None:
        return False
    if "." in value or sum(char.isdigit() for char in value) <= 1:
        return True
    changes = sum(char.isdigit() != other.isdigit() for char, other in pairwise(value))
    return kind == "password" and changes < _DRAWN


def is_password(value: str) -> bool:
    """Return whether a person may have chosen this: not a word, but letters with a digit or a special character."""
    if not _PASSWORD_LEAST <= len(value) <= _PASSWORD_MOST or not _is_value(value):
        return False
    letters = sum(char.isalpha() for char in value)
    return letters > 1 and (any(char.isdigit() for char in value) or _ODD.search(value) is not None)


def _is_value(value: str) -> bool:
    return (
        is_filled_in(value)
        and not is_words(value.rstrip("?"))
        and not is_identifier(value)
        and not is_sequence(value)
        and _PLACE.match(value) is None
    )


def is_key(value: str) -> bool:
    """Return whether a machine drew this: characters that change between letters and digits often."""
    if len(value) < _KEY_LEAST or not _is_value(value) or not is_random(value):
        return False
    if len(value) < _HEXADECIMAL_LEAST and _HEXADECIMAL.fullmatch(value):
        return False
    if _CLASS_NAME.fullmatch(value):
        return False
    kinds = [
        "d" if char.isdigit() else "u" if char.isupper() else "l" if char.isalpha() else "" for char in value
    ]
    classified = [kind for kind in kinds if kind]
    changes = sum(kind != other for kind, other in pairwise(classified))
    return (
        "d" in classified and len(classified) >= 0.65 * len(value) and changes >= _CHANGES * len(classified)
    )


def _is_option(data: bytes, at: int) -> bool:
    """Return whether the name at ``at`` is an option of a command: ``--db-password``."""
    begin = max(data.rfind(b" ", max(0, at - _LONG), at), data.rfind(b"\n", max(0, at - _LONG), at)) + 1
    return data.startswith(b"--", begin)


_PASSWORDS: Final = ("password", "passwd", "passphrase", "passwort", "pwd", "passcode")
_LAST_WORDS: Final = ("pass", "psk", "pw")
_KEYS: Final = (
    *("secret", "token", "api_key", "apikey", "api-key", "api key", "access_key", "accesskey", "access-key"),
    *("auth_key", "authkey", "private_key", "encryption_key", "signing_key", "master_key", "client_key"),
    *("credential", "x-api-key"),
)
ASSIGNMENTS: Final[tuple[SecretRule, ...]] = (
    *(
        SecretRule("password", word, Assigned(word, "password", "SECRET_PASSWORD"), entropy=True)
        for word in _PASSWORDS
    ),
    *(
        SecretRule("password", word, Assigned(word, "password", "SECRET_PASSWORD", last=True), entropy=True)
        for word in _LAST_WORDS
    ),
    *(SecretRule("token", word, Assigned(word, "key", "SECRET_TOKEN"), entropy=True) for word in _KEYS),
)
"""The rules that depend on a name; a caller can switch them off."""
