"""Follow a text from handle to handle: shell commands, program calls and formulas that send what they are given.

Each reader gets the text between two handles, of any length, keeps only its state, and takes linear time.
"""

import re
from typing import Final

# Each alternative of these patterns needs a certain word, or signs that are rare. Trying them all at each character is
# what reading positions costs; where a text has none of these, the patterns need not be tried. A new alternative needs
# its word here: a test makes a text for each.
_WORD: Final = re.compile(r"\w++(?:\s*+\()?+")
_LONG: Final = 2**18
_FOLDED: Final = re.compile("[\u0130\u0131\u017f\u212a]")
"""Characters that patterns without case take for ASCII letters, and that lower case does not turn into them."""

_COMMANDS: Final = frozenset(
    {
        *("curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "scp", "sftp", "rsync", "tftp", "ftp"),
        *("aria2c", "lynx", "w3m", "xh", "httpie", "httpsie", "webrequest", "restmethod", "iwr", "irm"),
        *("bitstransfer", "bitsadmin", "certutil", "mailmessage", "mailx", "sendmail", "swaks", "mutt"),
        *("ssh", "dig", "nslookup", "mosquitto_pub", "websocat", "grpcurl", "kcat", "kafkacat"),
        *("redis", "mysql", "psql", "smbclient", "rclone", "aws", "gcloud", "gh", "glab", "nats", "ping"),
        *(
            "whois",
            "traceroute",
            "traceroute6",
            "tracepath",
            "mtr",
            "ping6",
            "kdig",
            "delv",
            "resolvectl",
            "nmap",
            "nping",
        ),
        *(
            "hping3",
            "lftp",
            "ncftp",
            "axel",
            "curlie",
            "mongosh",
            "sqlcmd",
            "sqlplus",
            "cqlsh",
            "ldapsearch",
            "snmpget",
        ),
        *(
            "snmptrap",
            "s3cmd",
            "twurl",
            "ntfy",
            "mosquitto_sub",
            "hurl",
            "wrk",
            "vegeta",
            "rlogin",
            "az",
            "kubectl",
            "oci",
        ),
        *("doctl", "ibmcloud", "host", "logger"),
        *("gsutil", "mail", "openssl", "tcp", "udp", "net", "powershell", "pwsh", "cmd", "bash", "sh", "zsh"),
        *("python", "python3", "perl", "ruby", "node", "php"),
    }
)
"""Words of which one is in each command."""

_OUTPUTS: Final = frozenset(
    {
        *("echo", "printf", "print", "cat", "tee", "base64", "xxd", "env", "export", "set", "output", "host"),
        *("content", "python", "python3", "perl", "openssl", "gzip", "tar", "jq", "sed", "awk"),
        *("grep", "yes"),
    }
)
"""Words of commands whose output the rest of a line may send."""

_CALLED: Final = frozenset(
    {
        *("get", "post", "put", "patch", "delete", "head", "options", "request", "send", "stream", "connect"),
        *("ajax", "getjson", "fetch", "urlopen", "urlretrieve", "sendbeacon", "websocket", "eventsource"),
        *("axios", "curl_init", "curl_setopt", "file_get_contents", "fsockopen", "downloadstring"),
        *("uploadstring", "downloadfile", "gethostbyname", "getaddrinfo", "create_connection", "sendmail"),
        *("send_message", "hyperlink", "image", "webservice", "importxml", "importdata", "importhtml"),
        *("importfeed", "importrange", "importjson", "filterxml", "encodeurl", "rtd", "dde", "call", "exec"),
        *(
            "run",
            "popen",
            "check_output",
            "check_call",
            "system",
            "execsync",
            "execfile",
            "execfilesync",
            "spawn",
        ),
        *(
            "spawnsync",
            "shell_exec",
            "passthru",
            "proc_open",
            "mail",
            "dblink",
            "dblink_connect",
            "dblink_exec",
        ),
        *("register", "id", "sendall", "sendto", "postasync", "putasync", "sendasync", "put_object"),
    }
)
"""Words in front of the bracket of a call."""

_SCHEMES: Final = ("", "http:", "https:", "ws:", "wss:", "ftp:", "ftps:")
_QUOTED_ADDRESS: Final = re.compile(
    "//(?i:" + "|".join(rf"(?<=[\"'`]{scheme}//)" for scheme in _SCHEMES) + ")"
)
_HTTPIE: Final = re.compile(r"(?:https?|xh)[ \t]+[A-Za-z]", re.IGNORECASE)
_FORMULA: Final = re.compile(
    r"[=+@\uff1d\uff0b\uff20\uff0d-](?<![^ \t\n,;|\"'].)(?:[ ]?[A-Za-z_][\w.]*+\s*+\(|[\w.]{1,40}\|[\"'])",
    re.DOTALL,
)
"""What is no rare word: an address behind a quote, a command, and a sign that begins a formula in a cell.

They begin with the signs themselves, so that the regex engine skips to those.
"""


def _words_of(text: str) -> set[str]:
    if len(text) <= _LONG:
        return set(_WORD.findall(text))
    return {word[0] for word in _WORD.finditer(text)}  # slower, without all words in memory


class TextWords:
    """What a text may begin: a ``command``, a ``call`` or ``output``; False only where no pattern of it can match."""

    def __init__(self, text: str) -> None:
        if not text.isascii() and _FOLDED.search(text):
            self.command = self.call = self.output = True
            return
        words = _words_of(text.lower())
        called = {word[:-1].rstrip() for word in words if word[-1] == "("}
        words |= called
        self.command = not _COMMANDS.isdisjoint(words) or _HTTPIE.search(text) is not None
        self.call = (
            not _CALLED.isdisjoint(called)
            or ("location" in words and "=" in text)
            or _QUOTED_ADDRESS.search(text) is not None
            or _FORMULA.search(text) is not None
        )
        ends_open = text[-1:] in {"'", '"'} or "=" in text[-3:]
        self.output = ends_open or "<<<" in text or not _OUTPUTS.isdisjoint(words)


_CALLERS: Final = r"requests|httpx2?|axios|got|ky|superagent|aiohttp|urllib3?|http|net|\$|jQuery"
_METHODS: Final = r"get|post|put|patch|delete|head|options|request|send|stream|connect"
_FUNCTIONS: Final = (
    r"fetch|urlopen|urlretrieve|sendBeacon|WebSocket|EventSource|axios|curl_init|curl_setopt|file_get_contents|fsockopen"
    r"|sendall|sendto|PostAsync|PutAsync|SendAsync|put_object"
    r"|dblink(?:_connect|_exec)?|shell_exec|passthru|proc_open|exec(?:File)?Sync|mail"
    r"|DownloadString|UploadString|DownloadFile|gethostbyname|getaddrinfo|create_connection|sendmail|send_message"
)
_FORMULAS: Final = (
    r"HYPERLINK|IMAGE|WEBSERVICE|IMPORT(?:XML|DATA|HTML|FEED|RANGE|JSON)|FILTERXML|ENCODEURL|RTD|DDE|CALL|EXEC"
    r"|REGISTER(?:\.ID)?"
)
_ADDRESS: Final = r"(?:(?:https?|wss?|ftps?):)?//"
_CALL_BEGIN: Final = re.compile(
    rf"(?<![\w.$])(?:{_CALLERS})\.(?:{_METHODS})\s*+\((?!\s*+\))"
    rf"|(?<!\w)(?:{_FUNCTIONS})(?:\s*+\((?=\s*+[\"'`])|\((?!\s*+\)))"
    rf"|\.\w+\((?=\s*+[bfru]{{0,2}}[\"'`]{_ADDRESS})"
    r"|\.(?:ajax|getJSON)\s*+\("
    r"|(?<![\w.])(?:subprocess\.(?:run|call|Popen|check_output|check_call)|os\.(?:system|popen)|child_process\.(?:exec|execFile|spawn)(?:Sync)?"
    r"|Runtime\.getRuntime\(\)\.exec)\s*+\((?!\s*+\))"
    r"|(?<![\w.])(?:session|client|conn(?:ection)?|http_?client|xhr|ws|web_?socket|sock(?:et)?|x(?:ml)?http)"
    r"\.(?:post|put|patch|request|send)\s*+\((?!\s*+\))"
    r"|(?<![\w.])(?:(?:window|document|self|top|parent)\.location(?:\.href)?|location\.href|new Image\(\)\.src)"
    r"\s*+=(?!=)"
    rf"|[\"'`]{_ADDRESS}[^\"'`\s]*+[\"'`](?:\s*+(?:\+|&|\|\||\.\.|%|<>)\s*+|\s+\.\s+|\.(?=[\"'`$])|\.format\()"
    rf"|=\s*+(?:{_FORMULAS})\s*+\("
    r"|(?:^[ \t]*+|(?<=[\t,;|\"']))(?:[=\uff1d][ ]?[A-Za-z_][\w.]*+\s*+\("
    rf"|[+@\uff0b\uff20\uff0d-][ ]?(?:(?-i:[A-Z][A-Z0-9_.]++)|{_FORMULAS})\s*+\("
    r"|[=+@\uff1d\uff0b\uff20\uff0d-][\w.]{1,40}\|[\"'])",
    re.IGNORECASE | re.MULTILINE,
)
_CALL_TOKEN: Final = re.compile(r"([\"'`])|([(\[{])|([)\]}])|\n")
_STRING_TOKEN: Final = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in "\"'`"}
_LINE_STRING_TOKEN: Final = {quote: re.compile(rf"\\.|{quote}|\n", re.DOTALL) for quote in "\"'`"}


class ProgramCalls:
    """Calls that open an address, addresses joined from strings, and formulas of spreadsheets.

    Active to the end of the line in which all brackets are closed. ``strings_end_with_lines`` reads a quote that is not
    closed in its line as a mistake; one reader of each kind finds what the other would take for a string.
    """

    def __init__(self, *, strings_end_with_lines: bool = False) -> None:
        self.active = False
        self._lines = strings_end_with_lines
        self._depth = 0
        self._quote = ""

    def read(self, text: str, words: TextWords) -> None:
        """Follow the next part of the text, which has these words."""
        place = 0
        while self.active or words.call:
            strings = _LINE_STRING_TOKEN if self._lines else _STRING_TOKEN
            pattern = strings[self._quote] if self._quote else _CALL_TOKEN
            token = (pattern if self.active else _CALL_BEGIN).search(text, place)
            if token is None:
                return
            place = token.end()
            if not self.active:
                self.active, self._depth, self._quote = True, int(token[0][-1] == "("), ""
            elif self._quote:
                if token[0] in {self._quote, "\n"}:
                    self._quote = ""
            elif token[1]:
                self._quote = token[1] if self._depth else ""
            elif token[2]:
                self._depth += 1
            elif token[3]:
                self._depth = max(0, self._depth - 1)
            elif not self._depth:
                self.active = False


_NET: Final = (
    r"curl|wget|nc|ncat|netcat|socat|telnet|scp|sftp|rsync|tftp|ftp|aria2c|lynx|w3m|xh|https?ie"
    r"|Invoke-(?:WebRequest|RestMethod)|iwr|irm|Start-BitsTransfer|bitsadmin|certutil|Send-MailMessage|mailx|sendmail"
    r"|swaks|mutt|ssh|dig|nslookup|mosquitto_pub|websocat|grpcurl|kcat|kafkacat|redis-cli|mysql|psql|smbclient|rclone"
    r"|whois|traceroute6?|tracepath|mtr|ping6|kdig|delv|resolvectl|nmap|nping|hping3|lftp|ncftp|axel|curlie|mongosh|sqlcmd"
    r"|sqlplus|cqlsh|ldapsearch|snmpget|snmptrap|s3cmd|twurl|ntfy|mosquitto_sub|hurl|wrk|vegeta|rlogin"
)
_BARE_NET: Final = (
    r"scp|sftp|rsync|nslookup|curl|wget|nc|ncat|netcat|socat|iwr|irm|Invoke-WebRequest|Invoke-RestMethod"
)
_ARGUMENT: Final = (
    r"[ \t]+(?=-{1,2}[A-Za-z]|[\"'$@(\\{]|\w+://|//|\d+\.\d|localhost\b|[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2}"
    r"|[\w.-]+[ \t]+\d|[\w.-]+@\w)"
)
_PIPED: Final = (
    rf"[|&;(`][ \t]*+(?:sudo[ \t]+)?(?:xargs[^\n|]{{0,200}}?[ \t])?(?:{_NET}|ssh|aws|gsutil|mail|openssl)[ \t]+"
    r"(?=[^\s|])"
)
_SUBCOMMAND: Final = (
    r"(?:aws|gcloud|gh|glab|az|kubectl|oci|doctl|ibmcloud)(?:[ \t]+[a-z][\w-]*+){1,4}[ \t]+(?=-{1,2}[a-z]|[\"'])"
    r"|nats[ \t]+(?:pub|publish|req|request)[ \t]|mail[ \t]+-[a-z]|ping[ \t]+-p"
    r"|(?-i:https?|xh)[ \t]+(?:(?-i:GET|POST|PUT|PATCH|DELETE)[ \t]+(?=\S*[.:/])"
    r"|[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}(?:[:/]\S*)?[ \t]+(?=\S*[=:@]))"
)
"""Commands whose names are other words, too, with what follows only where they are commands."""

_COMMAND: Final = (
    rf"(?<![\w.@\\-])(?:(?:{_NET})(?:\.exe)?{_ARGUMENT}|{_SUBCOMMAND})|/dev/(?:tcp|udp)/|{_PIPED}"
)
_COMMAND_BEGIN: Final = re.compile(
    rf"{_COMMAND}"
    rf"|(?<![\w.@\\-])(?-i:{_BARE_NET})[ \t]+\Z"
    r"|^[ \t>]*+(?:[$#%] ?|PS[^>\n]{0,80}> ?)?(?:(?:sudo|exec|time)[ \t]+){0,3}"
    r"(?-i:curl|wget|nc|ncat|netcat|socat|host|logger[ \t]+-\w|whois)[ \t]"
    r"|(?<![\w.@\\-])(?:powershell|pwsh|cmd|bash|sh|zsh|python3?|perl|ruby|node|php)(?:\.exe)?[ \t]+[-/][A-Za-z]\w*"
    r"[ \t]+(?=[\"'$]|\Z)"
    r"|(?:New-Object[ \t]+|\[)(?:System\.)?Net\.",
    re.IGNORECASE | re.MULTILINE,
)
_COMMAND_AHEAD: Final = re.compile(_COMMAND, re.IGNORECASE)
_COMMAND_TOKEN: Final = re.compile(
    r"[\\`]\r?\n|(?:\||&&|,)[ \t]*+\r?\n|\\.|<<-?[ \t]*+[\"']?(\w+)|([\"'`])|\n", re.DOTALL
)
_QUOTED_TOKEN: Final = {
    "'": re.compile(r"'|\n[ \t]*+```"),
    '"': re.compile(r"\\.|\"|\n[ \t]*+```", re.DOTALL),
}
_CONTRACTION: Final = re.compile(r"(?<=[A-Za-z])'(?:t|s|re|ve|ll|d|m)\b")
_OUTPUT: Final = re.compile(
    r"\b(?:echo|printf)\b"
    r"|(?:^|[$#%>`|;&(])[ \t]*+(?:sudo[ \t]+)?(?:print|cat|tee|base64|xxd|env|export|set|Write-(?:Output|Host)"
    r"|Get-Content|python3?|perl|openssl|gzip|tar|jq|sed|awk|grep|yes)\b"
    r"|<<<"
    r"|(?:^|[\s;&(])\$?[A-Za-z_]\w*[ ]?=[ ]?[\"']?\Z"
    r"|^[ \t>$#%`]*+[\"']\Z",
    re.MULTILINE,
)
"""What may stand in front of a text that the rest of the line sends away."""

LINE_REACH: Final = 1_024
"""How many characters of the line after a handle are read; a longer rest of a line with output is not trusted."""


class Commands:
    """Shell commands that send: to the end of the line, its quotes, continuations and here-documents."""

    def __init__(self) -> None:
        self.active = False
        self._quote = ""
        self._inline = False
        self._word = ""
        self._in_document = False
        self._line_has_output = False
        self._rest, self._command_from_end = "", -1

    def read(self, text: str, words: TextWords) -> None:
        """Follow the next part of the text, which has these words."""
        line = text[text.rfind("\n") + 1 :]
        has_output = words.output and _OUTPUT.search(line) is not None
        self._line_has_output = has_output or (self._line_has_output and len(line) == len(text))
        place = 0
        while self.active or words.command:
            if not self.active:
                begin = _COMMAND_BEGIN.search(text, place)
                if begin is None:
                    return
                self.active, self._quote, self._word, self._in_document = True, "", "", False
                self._inline = "`" in text[max(0, begin.start() - 1) : begin.start() + 1]
                place = begin.end()
            end = self._end_of_command(text, place)
            if end is None:
                return
            self.active, place = False, end

    def _end_of_command(self, text: str, place: int) -> int | None:
        while (mark := self._next_mark().search(text, place)) is not None:
            place = mark.end()
            if self._ends_with(mark, text):
                return place
        return None

    def _next_mark(self) -> re.Pattern[str]:
        if self._quote:
            return _QUOTED_TOKEN[self._quote]
        if self._in_document:
            return re.compile(rf"^[ \t]*+{re.escape(self._word)}[ \t]*+(?=\n)", re.MULTILINE)
        return _COMMAND_TOKEN

    def _ends_with(self, mark: re.Match[str], text: str) -> bool:
        if self._quote:
            self._quote = "" if mark[0] == self._quote else self._quote
            return mark[0].endswith("```")
        if self._in_document:
            return True
        if mark[0] == "\n":
            self._in_document = bool(self._word)
            return not self._word
        if mark[1]:
            self._word = mark[1]
        elif mark[2] == "`":
            return self._inline
        elif mark[2] and _CONTRACTION.match(text, mark.start()) is None:
            self._quote = mark[2]
        return False

    def sends_ahead(self, right: str, *, ends: bool) -> bool | None:
        """Return whether the rest of the line after a handle sends it; None while more text must be known.

        ``right`` is at most ``LINE_REACH`` characters; ``ends`` says that the text ends with it.
        """
        if not self._line_has_output:
            return False
        end = right.find("\n")
        while end > 0 and right[end - 1] == "\\":
            end = right.find("\n", end + 1)
        if end < 0:
            if len(right) >= LINE_REACH:
                return True
            if not ends:
                return None
            end = len(right)
        return self._last_command(right[:end]) >= 0

    def _last_command(self, rest: str) -> int:
        """Return where the last command of the rest of a line begins, or -1; a line is searched only once."""
        if not self._rest.endswith(rest):
            self._rest, self._command_from_end = rest, -1
            for command in _COMMAND_AHEAD.finditer(rest):
                self._command_from_end = len(rest) - command.start()
        return len(rest) - self._command_from_end if self._command_from_end >= 0 else -1
