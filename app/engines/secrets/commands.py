"""Find the passwords that are given to commands, statements and configuration files, each in its own place."""

import re
from dataclasses import dataclass
from typing import Final

from app.engines.secrets.placeholders import is_filled_in
from app.engines.secrets.spotting import SecretRule, Spot, stands_alone

_LONGEST: Final = 400
"""Characters of a command that are read."""
_VALUE: Final = rb"""(?:"([^"\n\\]{3,128})\\?"|'([^'\n\\]{3,128})\\?'|([^\s"'`|;&<>()\\]{3,128}))"""
_END: Final = re.compile(rb"\n|\\n|[|;]|&&")
_REFERENCE: Final = re.compile(rb"[$%@<{\-/.\[]")
"""A value that begins so is a variable, an option or a path."""
_QUOTES: Final = (1, 2, 3)

_AFTER: Final[dict[str, str]] = {
    **dict.fromkeys(("mysql", "mariadb"), r"(?i:mysql|mariadb)[a-z_-]*\s(?:[^\n]*?\s)?-p(?=\S)VALUE"),
    "sshpass": r"sshpass\s+(?:-v\s+)?-p\s?VALUE",
    "redis-cli": r"redis-cli\s(?:[^\n]*?\s)?(?:-a|--pass)[ =]VALUE",
    **dict.fromkeys(
        (
            "docker login",
            "podman login",
            "buildah login",
            "nerdctl login",
            "registry login",
            "oc login",
            "cf login",
        ),
        r"[a-z]+ login\s(?:[^\n]*?\s)?(?:-p|--password)[ =]VALUE",
    ),
    **dict.fromkeys(
        ("ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd"),
        r"ldap[a-z]+\s(?:[^\n]*?\s)?-w\s?VALUE",
    ),
    **dict.fromkeys(
        ("mongosh", "mongo ", "mongodump", "mongorestore", "mongoexport", "mongoimport", "cqlsh", "psexec"),
        r"[a-z]+\s(?:[^\n]*?\s)?-p\s?VALUE",
    ),
    "-pass": r"-pass(?:in|out)?\s+pass:VALUE",
    "smbclient": r"smbclient\s(?:[^\n]*?\s)?(?:-U|--user=?)\s?[\"']?[^\s%\"']+%VALUE",
    "net use ": r"(?i:net use)\s[^\n]*?/(?i:user):\S+\s+VALUE",
    "freerdp": r"freerdp[0-9]?\s(?:[^\n]*?\s)?/p:VALUE",
    "rdesktop": r"rdesktop\s(?:[^\n]*?\s)?-p\s?VALUE",
    **dict.fromkeys(
        ("sqlcmd", "osql ", "unzip ", "zip ", "mosquitto_pub", "mosquitto_sub", "ipmitool"),
        r"[a-z_]+\s(?:[^\n]*?\s)?-P\s?VALUE",
    ),
    **dict.fromkeys(("-storepass", "-keypass", "-srcstorepass", "-deststorepass"), r"-[a-z]+[ =]VALUE"),
    "plink": r"plink(?:\.exe)?\s(?:[^\n]*?\s)?-pw\s+VALUE",
    "pscp": r"pscp(?:\.exe)?\s(?:[^\n]*?\s)?-pw\s+VALUE",
    "htpasswd": r"htpasswd\s+(?:-\w+\s+)*(?:-\w*nb\w*\s+\S+|-\w*b\w*\s+\S+\s+\S+)\s+VALUE",
    "rabbitmqctl": r"rabbitmqctl\s(?:[^\n]*?\s)?(?:add_user|change_password)\s+\S+\s+VALUE",
    "wpa_passphrase": r"wpa_passphrase\s+\S+\s+VALUE",
    "nmcli": r"nmcli\s[^\n]*?\spassword\s+VALUE",
    "cmdkey": r"cmdkey\s[^\n]*?/pass:VALUE",
    "lftp": r"lftp\s(?:[^\n]*?\s)?-u\s+[^\s,]+,VALUE",
    "http -a ": r"http -a\s+[^\s:]+:VALUE",
    "rclone obscure": r"rclone obscure\s+VALUE",
    "sqlplus": r"sqlplus\s+(?:-\S+\s+)*[^\s/]+/VALUE(?=@)",
    "jdbc:oracle:": r"jdbc:oracle:[a-z]+:[^/\s\"']+/([^\s@\"']{3,128})()()(?=@)",
    "identified by": r"(?i:identified by)\s+(?i:password\s+)?(?=[\"'])VALUE",
    "identified with": r"(?i:identified with)\s+\S+\s+(?i:by|as)\s+(?=[\"'])VALUE",
    "password '": r"(?i:password)\s+(?=')VALUE(?=\s*(?:;|,|\)|$|[A-Z]))",
    "convertto-securestring": r"(?i:convertto-securestring)\s+(?:-(?i:string)\s+)?(?=[\"'])VALUE",
    "define(": r"define\(\s*[\"']\w*(?:PASS|PWD|SECRET|SALT|TOKEN|KEY)\w*[\"']\s*,\s*(?=[\"'])VALUE",
    **dict.fromkeys(
        ("requirepass", "masterauth", "bindpw", "rootpw", "rootbindpw", "auth_pass"),
        r"(?:requirepass|masterauth|bindpw|rootpw|rootbindpw|auth_pass)[ \t]+VALUE[ \t]*(?:\r|$)",
    ),
    "wpa-psk": r"wpa-psk\s+VALUE[ \t]*(?:\r|$)",
    "enable secret": r"enable secret\s+(?:[0-9]\s+)?VALUE[ \t]*(?:\r|$)",
    "assword:": r"(?i:password:)[\"*]*\s*(?:\}|\n|\\n)?\s*\{?\s*send\s+(?:--\s+)?\"([^\"\\\n]{3,128})()()\\r",
}
"""What follows a keyword up to the value, from the documentation of each command."""

_BEFORE: Final[dict[str, str]] = {
    "sudo -s": r"(?:echo|printf)\s+(?:-[a-z]+\s+)?VALUE\s*\|\s*\Z",
    "chpasswd": r"(?:echo|printf)\s+(?:-[a-z]+\s+)?[\"']?[\w.-]+:([^\s\"'|]{3,128})()()[\"']?\s*\|\s*(?:sudo\s+)?\Z",
}
"""What stands before a keyword, on its line."""


@dataclass(slots=True, eq=False)
class OnCommandLine:
    """Checks one place of a command for a value, after its keyword or on the line before it."""

    pattern: re.Pattern[bytes]
    before: bool = False
    whole: bool = True

    def __call__(self, data: bytes, at: int) -> Spot | None:
        """Return the password of the command whose keyword begins at ``at``, or None."""
        if self.before:
            line = data[max(0, at - _LONGEST) : at].rpartition(b"\n")[2]
            match, start = self.pattern.search(line), at - len(line)
        else:
            if self.whole and not stands_alone(data, at):
                return None
            segment = data[at : at + _LONGEST]
            match, start = self.pattern.match(segment[: _end_of(segment)]), at
        if match is None:
            return None
        group = next((number for number in _QUOTES if match[number]), 0)
        value = match[group]
        if group == 0 or not _is_value(value, quoted=group != _QUOTES[-1]):
            return None
        return Spot(start + match.start(group), start + match.end(group), "SECRET_PASSWORD", 0.8)


def _end_of(segment: bytes) -> int:
    """Return where a command ends: at its line's end, or before the next command, outside quotes."""
    for end in _END.finditer(segment):
        before = segment[: end.start()]
        if before.count(b"'") % 2 == 0 and before.count(b'"') % 2 == 0:
            return end.start()
        if end[0] in (b"\n", b"\\n"):
            return end.start()
    return len(segment)


def _is_value(value: bytes, *, quoted: bool) -> bool:
    if not is_filled_in(value.decode("ascii")) or (not quoted and _REFERENCE.match(value)):
        return False
    return not value.startswith((b"$", b"{{", b"%(", b"<"))


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("ascii").replace(b"VALUE", _VALUE))


def _alone(keyword: str) -> bool:
    return keyword[0].isalpha() and keyword not in {"assword:", "freerdp"}


COMMANDS: Final[tuple[SecretRule, ...]] = (
    *(
        SecretRule("password", keyword, OnCommandLine(_compiled(pattern), whole=_alone(keyword)))
        for keyword, pattern in _AFTER.items()
    ),
    *(
        SecretRule("password", keyword, OnCommandLine(_compiled(pattern), before=True))
        for keyword, pattern in _BEFORE.items()
    ),
)
"""The rules for commands and statements; a value there needs not look random."""
