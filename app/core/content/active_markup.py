"""Follow a text from handle to handle: addresses in it, and the tags and link targets around it.

Each reader gets the text between two handles, of any length, keeps only its state, and takes linear time. Where markup
can be read in several ways it follows all of them: a position is safe only if it is safe in each.
"""

import re
from collections import Counter
from typing import Final

_TAG_TOKEN: Final = re.compile(r"<!--|-->|<[A-Za-z/!?][^\s<>/=\"'|]*|=\s*+[\"']|[\"']|/?>")
_INERT_ELEMENTS: Final = frozenset(
    {
        *("script", "style", "textarea", "select", "datalist", "iframe", "noembed", "noframes", "noscript"),
        *("template", "plaintext", "xmp", "object", "applet"),
    }
)
"""Elements whose content is run, sent with a form, or read by something else than the reader of the page."""

_CALL_ELEMENT: Final = re.compile(
    r"(?!tooltip|toolbar).*tool.*|.*functions?(?:calls?)?|invoke|invocation|parameters?|arguments?|k?wargs|args|calls?"
    r"|apicalls?|actioninput|usemcp.*|execute(?:bash|command|code|ipython|python|browse)?|writetofile|replaceinfile"
    r"|browseraction"
)
"""Names of elements, without separators, with which models write tool calls."""


class Tags:
    """HTML tags, comments, and elements that act; ``closed_at`` is the offset after the last tag that ended.

    In a tag, a quote may or may not begin a value, and a tag may begin anywhere, also inside what could be a comment:
    the reader keeps every state that is possible.
    """

    def __init__(self) -> None:
        self.closed_at = 0
        self._plain = self._double = self._single = self._comment = False
        self._open: Counter[str] = Counter()
        self._newest_call: str | None = None

    @property
    def active(self) -> bool:
        """Return whether the text so far ends in a tag, in a comment, or in an element that acts."""
        return self._in_tag or any(self._open.values())

    @property
    def _in_tag(self) -> bool:
        return self._plain or self._double or self._single or self._comment

    def read(self, text: str) -> None:
        """Follow the next part of the text."""
        self.closed_at = place = 0
        while True:
            if self._in_tag:
                token = _TAG_TOKEN.search(text, place)
                if token is None:
                    return
            else:
                place = text.find("<", place)
                if place < 0:
                    return
                token = _TAG_TOKEN.match(text, place)
                if token is None:
                    place += 1
                    continue
            place = token.end()
            self._follow(token[0], place)

    def _follow(self, mark: str, end: int) -> None:
        match mark[0], mark[-1]:
            case "<", _:
                self._comment = self._comment or mark == "<!--"
                self._plain = True
                self._note_element(mark)
            case _, ">":
                self._end_tag(mark, end)
            case "=", '"':
                self._plain, self._double = self._plain or self._double, self._plain
            case "=", _:
                self._plain, self._single = self._plain or self._single, self._plain
            case '"', _:
                self._plain, self._double = self._plain or self._double, False
            case _:
                self._plain, self._single = self._plain or self._single, False

    def _end_tag(self, mark: str, end: int) -> None:
        if mark == "-->":
            self._comment = False
        if self._plain:
            self.closed_at = end
            if mark == "/>" and self._newest_call is not None:
                self._open[self._newest_call] -= 1
        self._plain = False
        self._newest_call = None

    def _note_element(self, mark: str) -> None:
        name = re.sub(r"[^a-z0-9]", "", mark.rpartition(":")[2].lower())
        closing = mark[1] == "/"
        is_call = name not in _INERT_ELEMENTS and _CALL_ELEMENT.fullmatch(name) is not None
        self._newest_call = name if is_call and not closing else None
        if is_call or name in _INERT_ELEMENTS:
            self._open[name] = max(0, self._open[name] + (-1 if closing else 1))


_TARGET_BEGIN: Final = re.compile(r"\]\(")
_ANGLE: Final = re.compile(r"\s*+<")
_TARGET_TOKEN: Final = re.compile(r"\\.|\s[\"']|[()<>\"']|\n[ \t\r]*+\n", re.DOTALL)


class Targets:
    """Targets of Markdown links and images with their titles; parentheses nest, a blank line ends them."""

    def __init__(self) -> None:
        self._depth = 0
        self._until = ""

    @property
    def active(self) -> bool:
        """Return whether the text so far ends in a target."""
        return self._depth > 0

    def read(self, text: str) -> None:
        """Follow the next part of the text."""
        place = 0
        while True:
            pattern = _TARGET_TOKEN if self._depth else _TARGET_BEGIN
            token = pattern.search(text, place)
            if token is None:
                return
            place = token.end()
            if not self._depth:
                self._depth, self._until = 1, ""
                bracket = _ANGLE.match(text, place)
                if bracket is not None:
                    self._until, place = ">", bracket.end()
            elif token[0][0] == "\n" and token[0][-1] == "\n":
                self._depth = 0
            else:
                self._follow(token[0])

    def _follow(self, mark: str) -> None:
        if self._until:
            if mark[-1] == self._until and mark[0] != "\\":
                self._until = ""
        elif mark[0].isspace():
            self._until = mark[-1]
        elif mark == "(":
            self._depth += 1
        elif mark == ")":
            self._depth -= 1


_URL_MARK: Final = re.compile(
    r":[\\/]{2}"
    r"|(?<![A-Za-z0-9])(?:(?:https?|wss?|ftps?):[\\/]?|www\.)"
    r"|(?<![\w-])(?:mailto|javascript|cid|blob|sips?|xmpp|callto|magnet|view-source|data|file):"
    r"|(?<![\w-])(?:vbscript|facetime(?:-audio)?|skype|geo|bitcoin|ethereum|litecoin|intent|steam|spotify|whatsapp):(?=\S|\Z)"
    r"|(?<![\w-])(?-i:tel|sms):|(?<![\w-])(?:tel|sms):\S"
    r"|(?:^|[(\[=,;:{|>\"'`])//"
    r"|(?:[\w-]|[^\x00-\x7f])\.(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59}|[^\x00-\x7f]{2,63})\.?(?::\d{1,5})?[/?#]"
    r"|(?<![\w.])(?:\d{1,3}|0x[\da-f]{1,2}|0[0-7]{2,3})(?:\.(?:\d{1,3}|0x[\da-f]{1,2}|0[0-7]{2,3})){3}(?::\d{1,5})?[/?#]"
    r"|\[[0-9a-f:.]{2,45}\](?::\d{1,5})?[/?#]"
    r"|(?<!\w)localhost(?::\d{1,5})?[/?#]"
    r"|\\\\[\w-]+(?:\.[\w-]+)+[\\/@]"
    r"|[\w.+%-]@[\w.-]*\Z",
    re.IGNORECASE,
)
"""What makes a run of characters an address: a scheme, a host with a path, a share, or a mail domain at its end."""

_RUN_BREAKS: Final = " \t\n\r\x0b\x0c<"
_QUOTES: Final = "\"'`"
_BEFORE_MARK: Final = re.compile(r"[A-Za-z0-9+.-]")
_TAIL: Final = 80
"""More characters than a mark of an address has."""

_LONGEST_SCHEME: Final = 64
_ADDRESSES: Final = frozenset({"URL"})
_POSSIBLE_HOSTS: Final = frozenset({"IP", "CUSTOM", "LITERAL", "DOMAIN", "HOSTNAME"})


class Runs:
    """The characters since the last blank, as they are made a link wherever text is shown.

    Only ASCII blanks and ``<`` end an address, and a quote if one stands before it.
    """

    def __init__(self) -> None:
        self._run = ""
        self._is_url = False
        self._quote = ""

    @property
    def active(self) -> bool:
        """Return whether the text so far ends in an address."""
        return self._is_url

    def read(self, text: str, closed_at: int) -> None:
        """Follow the next part of the text, in which a tag ended at ``closed_at`` (0: none did)."""
        begin = max([closed_at, *(text.rfind(blank) + 1 for blank in _RUN_BREAKS)])
        if begin:
            self._is_url, self._quote, self._run = False, "", ""
        self._judge(text[begin:])

    def pass_handle(self, label: str) -> None:
        """Follow a handle, whose original may itself be an address."""
        if label in _ADDRESSES:
            self._is_url, self._quote = True, ""
        elif not self._is_url:
            self._run += "x.xx" if label in _POSSIBLE_HOSTS else "x"

    def _judge(self, text: str) -> None:
        run = text if self._is_url else self._run + text
        place = 0
        while True:
            if self._is_url:
                end = run.find(self._quote, place) if self._quote else -1
                if end < 0:
                    self._run = ""
                    return
                self._is_url, self._quote, place = False, "", end + 1
            mark = _URL_MARK.search(run, place)
            if mark is None:
                self._run = run[max(place, len(run) - _TAIL) :]
                return
            self._is_url, self._quote, place = True, _quote_before(run, mark.start()), mark.end()


def _quote_before(run: str, mark: int) -> str:
    """Return the quote in front of the address with a mark at ``mark``, if there is one."""
    if run[mark] in _QUOTES:
        return run[mark]
    start = mark
    while start > max(0, mark - _LONGEST_SCHEME) and _BEFORE_MARK.match(run, start - 1):
        start -= 1
    return run[start - 1] if start and run[start - 1] in _QUOTES else ""
