"""Values in the context of a name: ``password = …``, ``api_key: …``, ``--token …``; judged by how random they look."""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal

from app.engines.secrets.checks import is_random
from app.engines.secrets.placeholders import is_filled_in, is_identifier, is_sequence, is_words
from app.engines.secrets.spotting import Rule, Spot

_REACH: Final = 420
_PATTERN: Final = (
    r"""(?i)([A-Za-z0-9_\-]{0,24})(?:"""
    r"""(?:[ \t]?:[ \t]?[A-Za-z][A-Za-z\[\]|. ]{1,24})?["'\]\\]{0,3}[ \t]{0,12}(?:=>|:=|==|=|:)[ \t]{0,12}"""
    r"""(?:\\?[bru]{0,2}(?:\\?"([^"\s\\]{6,200})\\?"|'([^'\s\\]{6,200})'|\x60([^\x60\s\\]{6,200})\x60)"""
    r"""|([^\s"'\x60<>(){}\[\],;&|\\]{6,200}))"""
    r"""|["']?[ \t]+(?:is|are|was)[ \t]*[:=]?[ \t]+["'\x60]?([^\s"'\x60,;]{6,200})"""
    r"""|[ \t=]["']?([^\s"'<>(){}\[\],;&|]{6,200})"""
    r"""|>([^<>\s]{6,200})</)"""
)
_QUOTED, _BARE, _SAID, _OPTION, _ELEMENT = (2, 3, 4), 5, 6, 7, 8
_CALLS: Final = frozenset(b"([{")
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
_PUNCTUATED: Final = ".,;:!?)"
_PASSWORD_LEAST, _KEY_LEAST = 6, 16
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_HEXADECIMAL_LEAST: Final = 24
"""Shorter ones are checksums and ids more often than keys."""
_CHANGES: Final = 0.2
_LONG: Final = 24


@dataclass(slots=True, eq=False)
class Assigned:
    """Looks at what is assigned to a name with ``keyword`` in it; people choose passwords, machines draw keys."""

    keyword: str
    kind: Literal["password", "key"]
    label: str
    _compiled: Any = field(default=None)

    def __call__(self, data: bytes, at: int) -> Spot | None:
        """Return the value that is assigned to the name at ``at``, or None."""
        if self._compiled is None:
            import re2  # noqa: PLC0415 - loaded when a keyword is seen, not when the service starts

            self._compiled = re2.compile(_PATTERN.encode("ascii"))
        behind = at + len(self.keyword)
        found = self._compiled.match(data, behind, behind + _REACH)
        if found is None or _OTHER_NAMES.search(found[1].decode("ascii")):
            return None
        if _OTHER_OWNERS.search(data, max(0, at - _LONG), at):
            return None
        group = next(number for number in range(2, _ELEMENT + 1) if found.span(number)[0] >= 0)
        start, end = found.span(group)
        value = data[start:end].decode("ascii")
        if group == _OPTION and not _is_option(data, at):
            return None
        if group not in (*_QUOTED, _ELEMENT):
            if end < len(data) and data[end] in _CALLS:
                return None
            value = value.rstrip(_PUNCTUATED) if group == _SAID else value
        bare = group == _BARE and not data[at : at + 1].isupper()
        holds = _is_password(value) if self.kind == "password" else _is_key(value)
        if not holds or (bare and _is_code(value, self.kind)):
            return None
        return Spot(start, start + len(value), self.label, 0.6)


def _is_code(value: str, kind: str) -> bool:
    """Say whether an unquoted value may as well be a variable, an attribute or a type."""
    if _CODE.fullmatch(value) is None:
        return False
    return kind == "password" or "." in value or sum(char.isdigit() for char in value) <= 1


def _is_password(value: str) -> bool:
    """Say whether a person may have chosen this: no word, but letters with a digit or an odd sign among them."""
    if len(value) < _PASSWORD_LEAST or not _is_value(value):
        return False
    letters = sum(char.isalpha() for char in value)
    return letters > 1 and (any(char.isdigit() for char in value) or _ODD.search(value) is not None)


def _is_value(value: str) -> bool:
    return (
        is_filled_in(value)
        and not is_words(value)
        and not is_identifier(value)
        and not is_sequence(value)
        and _PLACE.match(value) is None
    )


def _is_key(value: str) -> bool:
    """Say whether a machine drew this: mixed characters that change between letters and digits all the time."""
    if len(value) < _KEY_LEAST or not _is_value(value) or not is_random(value):
        return False
    if len(value) < _HEXADECIMAL_LEAST and _HEXADECIMAL.fullmatch(value):
        return False
    kinds = [
        "d" if char.isdigit() else "u" if char.isupper() else "l" if char.isalpha() else "" for char in value
    ]
    told = [kind for kind in kinds if kind]
    changes = sum(one != other for one, other in pairwise(told))
    return "d" in told and len(told) >= 0.8 * len(value) and changes >= _CHANGES * len(told)


def _is_option(data: bytes, at: int) -> bool:
    """Say whether the name at ``at`` is an option of a command: ``--db-password``."""
    begin = max(data.rfind(b" ", max(0, at - _LONG), at), data.rfind(b"\n", max(0, at - _LONG), at)) + 1
    return data.startswith(b"--", begin)


_PASSWORDS: Final = ("password", "passwd", "passphrase", "passwort", "pwd", "passcode")
_KEYS: Final = (
    *("secret", "token", "api_key", "apikey", "api-key", "api key", "access_key", "accesskey", "access-key"),
    *("auth_key", "authkey", "private_key", "encryption_key", "signing_key", "master_key", "client_key"),
    *("credential", "x-api-key"),
)
ASSIGNMENTS: Final[tuple[Rule, ...]] = (
    *(
        Rule("password", word, Assigned(word, "password", "SECRET_PASSWORD"), entropy=True)
        for word in _PASSWORDS
    ),
    *(Rule("token", word, Assigned(word, "key", "SECRET_TOKEN"), entropy=True) for word in _KEYS),
)
"""The rules that go by a name; a caller can switch them off."""
