"""Distinguish real values from stand-ins: placeholders, variables, calls, words."""

import re
from typing import Final

_HOLDS: Final = re.compile(
    r"""\$\{|\$\(|\{\{|\}\}|<[A-Za-z]|%\(|#\{|@\{|\*\*\*|\.\.\.|[xX]{4}"""
    r"""|(?i:your|change[_-]?me|replace_?me|example|placeholder|redacted|dummy|insert|fake"""
    r"""|todo|sample|undefined|not_?set|masked|hidden|removed|filtered)"""
)
_STANDS_FOR: Final = re.compile(
    r"""(?ix)
    (?: \$[a-z_]\w* | %[a-z_]\w*% | %[sdr] | \{[a-z_0-9]*\} | @[a-z_]\w* | \[[a-z_ -]+\] | :[a-z_]+ | \W* | _+
    | x+
    | (?: the_? | my_? | some_? | new_? | old_? | user_? | test_? | db_? | root_? | admin_? | super_? ){0,3}
      (?: pass | passwd | password | passphrase | pwd | pw | secret | token | key | api_?key | user | username | login
        | credentials? | auth | value | string | text | test | foo | bar | baz | none | null | nil | true | false
        | yes | no | empty | default | env | environ | required | optional )
      [0-9]?
    )"""
)
_WORDS: Final = re.compile(r"[A-Za-z]+(?:[ _.\-/:][A-Za-z]*)*")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SEQUENCE: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyz",
    "abcdefghijklmnopqrstuvwxyz0123456789",
    "qwertyuiop",
)


def is_filled_in(text: str) -> bool:
    """Return whether ``text`` is a value rather than a stand-in for one."""
    if _HOLDS.search(text) is not None or _STANDS_FOR.fullmatch(text) is not None:
        return False
    return len(set(text)) > 2  # noqa: PLR2004 - xyxyxy is no value


def is_words(text: str) -> bool:
    """Return whether ``text`` is only words: letters with blanks, dots, dashes or slashes between them."""
    return _WORDS.fullmatch(text) is not None


def is_identifier(text: str) -> bool:
    """Return whether ``text`` is a UUID, which names something and is rarely a secret."""
    return _UUID.fullmatch(text) is not None


def is_sequence(text: str) -> bool:
    """Return whether ``text`` follows the alphabet or the digits in order, as in documentation."""
    low = text.lower()
    return any(low in row or (len(low) > 8 and low[:8] in row) for row in _SEQUENCE)  # noqa: PLR2004 - eight in a row
