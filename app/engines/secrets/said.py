"""Find passwords that people tell each other, in the words of a dozen languages, and ``user:password@host``."""

import re
from dataclasses import dataclass
from typing import Final

from app.engines.secrets.assignments import is_password
from app.engines.secrets.spotting import SecretRule, Spot

_TYPOGRAPHY: Final = (
    *(("\u201e", '"'), ("\u201c", '"'), ("\u201d", '"'), ("\u00ab", '"'), ("\u00bb", '"')),
    *(("\u2018", "'"), ("\u2019", "'"), ("\uff1a", ":"), ("\uff1d", "="), ("\u00a0", " "), ("\u3000", " ")),
    *(("\u300c", '"'), ("\u300d", '"'), ("\u3002", " "), ("\u3001", " ")),
    *(("\u30d1\u30b9\u30ef\u30fc\u30c9\u306f", "j-pwd:"), ("\u30d1\u30b9\u30ef\u30fc\u30c9", "j-pwd")),
    *(("\u3067\u3059", "  "), ("\u5bc6\u7801\u662f", "pw:"), ("\u5bc6\u7801", "pw"), ("\u5bc6\u78bc", "pw")),
    *(
        ("\ube44\ubc00\ubc88\ud638\ub294", "k-pw:"),
        ("\ube44\ubc00\ubc88\ud638", "k-pw"),
        ("\uc785\ub2c8\ub2e4", "   "),
    ),
    *(("\u043f\u0430\u0440\u043e\u043b\u044c", "ru-pwd"), ("\u041f\u0430\u0440\u043e\u043b\u044c", "ru-pwd")),
)
"""What is written otherwise before a text becomes ASCII, character for character, so that offsets stay right."""

_CUES: Final = (
    *(
        "password",
        "passphrase",
        "passcode",
        "passwort",
        "kennwort",
        "mot de passe",
        "contrase?a",
        "contrasena",
    ),
    *(
        "senha",
        "palavra-passe",
        "palavra passe",
        "wachtwoord",
        "parola d'ordine",
        "parola chiave",
        "has?o",
        "haslo",
    ),
    *("l?senord", "losenord", "adgangskode", "passord", "salasana", "parol?", "parola", "?ifre", "jelsz?"),
    *("m?t kh?u", "kata sandi", "clave", "pwd", "mdp", "pw", "pass"),
)
"""Words for it; a question mark stands for a letter beyond ASCII."""
_SHORT: Final = 6
"""Cues up to this length are parts of other words and must stand alone."""
_VALUE: Final = (
    rb"""(?:"[ \t]?([^"\s]{4,128})[ \t]?"|'([^'\s]{4,128})'|`([^`\s]{4,128})`"""
    rb"""|((?=[^\s"'`,;<>]{0,128}[0-9!@#$%^&*+=~?])[^\s"'`,;<>]{6,128}))"""
)
_WORD: Final = rb"(?:[ \t]{1,3}[\w?'(][\w?'./-]{0,24}\)?)"
_VERB: Final = (
    rb"(?:is|was|are|ist|lautet|heisst|est|es|era|ser\?|\?|\?s|luidt|blir|\?r|to|jest|on"
    rb"|(?:changed|set|reset|updated)[ ]to)"
)
_TOLD: Final = re.compile(
    rb"(?i)(?:et|en)?[\"'*\x60)]{0,3}(?:"
    rb"(?:" + _WORD + rb"(?<!user)(?<!name)(?<!login)(?<!mail)){0,4}?[ \t]{0,3}[:=][ \t]{0,3}[*]{0,2}"
    rb"|"
    + _WORD
    + rb"{0,6}?[ \t]{1,3}"
    + _VERB
    + rb"(?:[ \t]{1,3}(?:now|nun|jetzt))?[ \t]{0,2}:?[ \t]{1,3}[*]{0,2}"
    rb")" + _VALUE
)
_BESIDE: Final = re.compile(rb"[ \t]{1,3}[*]{0,2}" + _VALUE)
_USED: Final = re.compile(
    rb"(?i)(?:use|used|try|enter|type|mit|with)[ \t]+[\"'\x60]([^\"'\x60\s]{6,128})[\"'\x60][^.\n]{0,24}\Z"
)
_BEHIND: Final = re.compile(rb"(?:\?{2,}|&[\w.%-]{1,60}=).*\Z", re.DOTALL)
"""What is no part of a value: words beyond ASCII that touch it, and the next member of a query."""
_TAIL: Final = b".,;:)]}*"
_NOT: Final = re.compile(
    r"""(?ix) \d{1,2}:\d{2}\S* | \S+@\S+\.\S+ | [a-z]{1,12}-?\d+(?:\.\d+)+\S* | v?\d+(?:[.\-/]\d+)*[a-z]{0,3}
    | .*\.(?:py|js|ts|txt|json|ya?ml|md|html?|xml|csv|conf|cfg|ini|log|sh|php|java|go|rs|pdf|docx?|xlsx?|db|zip|gz)
    | [a-z_]+-\d | \w+=["'].* | .*(?:\(\)|\[\]|=>|::|->|==).* | [\w.]*[\w.{][\[(].* | \d+-\w+ | \W.*\W
    | (?:sha|md|base|utf|aes|rsa|pbkdf|bcrypt|argon|rfc|iso|oauth|http|ipv|win|x)-?\d\S*"""
)
_STRONG: Final = re.compile(
    r"(?=.*[A-Za-z])(?=.*\d).*(?:[!#$%&*+=?~^@-]|\d{3}).*|(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,}"
)
_WORD_BEHIND: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_REACH: Final = 320


def typed(text: str) -> str:
    """Return a text with its quotation marks, and the words of other scripts for a password, in ASCII."""
    if not text.isascii():
        for written, plain in _TYPOGRAPHY:
            if written in text:
                text = text.replace(written, plain)
    return text


@dataclass(slots=True, eq=False)
class Told:
    """Checks what is said behind a word for a password: its value after a colon or a verb, or right behind it."""

    cue: str

    def __call__(self, data: bytes, at: int) -> Spot | None:
        """Return the password that the words at ``at`` tell, or None."""
        behind = at + len(self.cue)
        if len(self.cue) <= _SHORT and not _stands(data, at, behind):
            return None
        if data[behind : behind + 1] in (b"s", b"_"):
            return None
        match = _TOLD.match(data, behind, behind + _REACH)
        if match is not None and (spot := _judged(data, match)) is not None:
            return spot
        match = _BESIDE.match(data, behind, behind + _REACH)
        spot = _judged(data, match) if match is not None else None
        if spot is not None and _STRONG.fullmatch(data[spot.start : spot.end].decode("ascii")):
            return spot
        match = _USED.search(data, max(0, at - _REACH), at)
        if match is not None and is_password(match[1].decode("ascii")):
            return Spot(*match.span(1), "SECRET_PASSWORD", 0.6)
        return None


def _stands(data: bytes, at: int, behind: int) -> bool:
    before = data[at - 1 : at] if at else b""
    return (not before or before[0] not in _WORD_BEHIND) and data[behind : behind + 1] not in {
        bytes([code]) for code in _WORD_BEHIND
    }


def _judged(data: bytes, match: re.Match[bytes]) -> Spot | None:
    group = next(number for number in range(1, 5) if match[number])
    start, end = match.span(group)
    if group == 4:  # noqa: PLR2004 - the value without quotation marks
        end = start + len(_BEHIND.sub(b"", match[group]).rstrip(_TAIL))
        if data[end : end + 1] == b"(":
            return None
    value = data[start:end].decode("ascii")
    # A letter beyond ASCII is a question mark here, which alone makes no word a password.
    if not is_password(value.replace("?", "")) or _NOT.fullmatch(value):
        return None
    return Spot(start, end, "SECRET_PASSWORD", 0.6)


_USER: Final = re.compile(rb"[A-Za-z][A-Za-z0-9_.-]{0,40}\Z")
_PART: Final = re.compile(rb"""[^\s:@/\\"'<>`,;()\[\]{}|]{5,64}""")
_PLACE: Final = re.compile(
    rb"(?:localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,6}|[a-z][a-z0-9-]{1,30})"
    rb"(?![A-Za-z0-9@])"
)
_LABELS: Final = frozenset(
    b"mailto email mail e-mail to cc bcc from sip sips xmpp acct reply-to sender user username login contact name "
    b"skype id by author maintainer owner git npm pkg image docker digest tag account member invoice support "
    b"url scheme mx spf rua ruf via per"
    b"".split()
)
_MAIL: Final = re.compile(
    rb"(?i)(?:gmail|googlemail|yahoo|hotmail|outlook|live|icloud|gmx|web|proton(?:mail)?|aol|mail)\."
)
_PART_OF_ADDRESS: Final = re.compile(rb"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_REACH_BACK: Final = 66


def _at_host(data: bytes, at: int) -> Spot | None:
    """Return the password of ``user:password@host`` whose at sign is at ``at``."""
    colon = data.rfind(b":", max(0, at - _REACH_BACK), at)
    if colon < 1 or _PART.fullmatch(data, colon + 1, at) is None:
        return None
    user = _USER.search(data, max(0, colon - 42), colon)
    if (
        user is None
        or user[0].lower() in _LABELS
        or data[user.start() - 1 : user.start()] in (b"/", b":", b".")
    ):
        return None
    host = _PLACE.match(data, at + 1)
    if host is None or _MAIL.match(host[0]):
        return None
    text = data[colon + 1 : at]
    if not is_password(text.decode("ascii")) or _NOT.fullmatch(text.decode("ascii")):
        return None
    # What may be the first part of a mail address is one, unless the host is none of a mail address.
    named = b"." in host[0] and not host[0].replace(b".", b"").isdigit()
    if named and _PART_OF_ADDRESS.fullmatch(text) and not user[0].islower():
        return None
    return Spot(colon + 1, at, "SECRET_PASSWORD", 0.6)


TOLD: Final[tuple[SecretRule, ...]] = (
    *(SecretRule("password", cue, Told(cue), entropy=True) for cue in _CUES),
    SecretRule("password", "@", _at_host, entropy=True),
)
"""The rules for what is said about a password; a caller can switch them off."""
