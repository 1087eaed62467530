"""Follow a text from handle to handle: tool calls that are written as text, in JSON and in other forms.

Each reader gets the text between two handles, of any length, keeps only its state, and takes linear time.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal

_STRONG_MEMBERS: Final = frozenset(
    {
        *("arguments", "args", "kwargs", "actioninput", "toolinput", "toolargs", "toolarguments"),
        *("toolparameters", "toolname", "toolcall", "toolcalls", "tooluse", "functioncall", "functioncalls"),
        *("functionname", "functionarguments", "recipientname", "callarguments"),
    }
)
"""Members that only calls have; names are without case and separators."""

_WEAK_MEMBERS: Final = frozenset({"input", "inputs", "parameters", "params"})
"""Members that calls have, and other data too."""

_NAMING_MEMBERS: Final = frozenset({"name", "tool", "function", "method", "type", "action", "command"})
_CALL_VALUES: Final = {
    "tool": re.compile(r"[\w./:-]+"),
    "function": re.compile(r"\w*[_./:][\w./:-]*"),
    "type": re.compile(r"(?i)(?:server_)?tool_?(?:use|call)|(?:custom_tool_|mcp_|function_?)call|function"),
    "method": re.compile(r"tools/call"),
}
BLANK: Final = r"(?:\s|\\+[nrt])*+"
"""Pattern of what may stand between the parts of an object, also where it is in a string of JSON."""

MEMBER_KEY: Final = re.compile(
    rf"[{{,]{BLANK}(?:(\\*+)([\"'])((?:[\w. -]|\\+u[0-9a-fA-F]{{4}}){{2,160}}+)\1\2|([A-Za-z_]\w{{1,40}}+))"
    rf"{BLANK}:{BLANK}"
)
"""A bracket or comma and the name of a member: its backslashes, its quote, the name, or the name without quotes."""
_ESCAPED: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")
_SHORT_VALUE: Final = re.compile(r"\\*+[\"']([^\"'\\\s]{1,100})\\*+[\"']")
_BRACKET_OR_QUOTE: Final = re.compile(r"(\\*+)([\"'])|([{\[])|([}\]])|(,)")


def member_name(spelled: str) -> str:
    """Return a member's name without escapes, case and separators: ``toolCalls`` and ``tool_calls`` are one."""
    name = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), spelled)
    return re.sub(r"[^a-z]", "", name.lower())


def is_call(members: Mapping[str, str]) -> bool:
    """Return whether a JSON object with these members is a tool call; values are needed only of short strings."""
    named = {member_name(key): value for key, value in members.items()}
    if not _STRONG_MEMBERS.isdisjoint(named):
        return True
    if not _WEAK_MEMBERS.isdisjoint(named) and not _NAMING_MEMBERS.isdisjoint(named):
        return True
    return any(name in named and shape.fullmatch(named[name]) for name, shape in _CALL_VALUES.items())


class JsonCalls:
    """Objects that are tool calls, anywhere in a text and in strings of JSON; active from the member that shows it.

    The region ends with the object, or with the value of a member that other data has too.
    """

    def __init__(self) -> None:
        self.active = False
        self._value_only = False
        self._depth = 0
        self._escapes = 0
        self._quotes = ""
        self._string = ""

    def read(self, text: str) -> None:
        """Follow the next part of the text."""
        place = 0
        while True:
            if self.active:
                place = self._follow(text, place)
                if self.active:
                    return
            key = MEMBER_KEY.search(text, place)
            if key is None:
                return
            place = key.end()
            self._begin(key, text)

    def _begin(self, key: re.Match[str], text: str) -> None:
        name = member_name(key[3] or key[4])
        if shows_call(key, text) or (name in _WEAK_MEMBERS and _has_value(key, text)):
            self.active, self._value_only = True, name in _WEAK_MEMBERS
            self._depth, self._string = 0, ""
            self._escapes, self._quotes = len(key[1] or ""), '"' if key[2] == '"' else "\"'"

    def _follow(self, text: str, place: int) -> int:
        """Follow the object to its end; return the offset after it."""
        period = 2 * (self._escapes + 1)  # each level of JSON in a string doubles the backslashes
        for token in _BRACKET_OR_QUOTE.finditer(text, place):
            if token[2]:
                if len(token[1]) % period != self._escapes:
                    continue
                if self._string:
                    self._string = "" if token[2] == self._string else self._string
                elif token[2] in self._quotes:
                    self._string = token[2]
            elif self._string:
                continue
            elif token[3]:
                self._depth += 1
            elif token[4]:
                self._depth -= 1
                if self._depth < 0:
                    self.active = False
                    return token.end()
            elif self._value_only and self._depth == 0:
                self.active = False
                return token.start()  # the comma begins the next member
        return len(text)


def _has_value(key: re.Match[str], text: str) -> bool:
    """Return whether a value follows the member: a name without quotes is one only in front of such."""
    return key[2] is not None or text[key.end() : key.end() + 1] in {"", "{", "[", '"', "'"}


def kind_of_member(key: re.Match[str], text: str) -> Literal["weak", "naming"] | None:
    """Return the kind of a member of which two together show a call: one that names, and one with a value for it."""
    name = member_name(key[3] or key[4])
    if name in _WEAK_MEMBERS and _has_value(key, text):
        return "weak"
    return "naming" if name in _NAMING_MEMBERS else None


def needs_value(key: re.Match[str]) -> bool:
    """Return whether it depends on the member's value whether its object is a call."""
    return member_name(key[3] or key[4]) in _CALL_VALUES


def shows_call(key: re.Match[str], text: str) -> bool:
    """Return whether this member says that its object is a call."""
    name = member_name(key[3] or key[4])
    if name in _STRONG_MEMBERS:
        return _has_value(key, text)
    shape = _CALL_VALUES.get(name)
    if shape is None:
        return False
    following = text[key.end() : key.end() + 120]
    value = _SHORT_VALUE.match(following)
    if name in {"tool", "function"} and (following[:1] == "{" or (not following and name == "tool")):
        return True
    return value is not None and shape.fullmatch(value[1]) is not None


_BLANK_LINE: Final = r"\n[ \t\r]*+\n"
_SPANS: Final = tuple(
    (needed, re.compile(begin), re.compile(end))
    for needed, begin, end in (
        (
            "<",
            r"<[|\uff5c][^\n<>]{0,60}?(?:tool|function|python)[^\n<>]{0,60}?[|\uff5c]>",
            r"<[|\uff5c][^\n<>]{0,60}(?:end|eom|eot)",
        ),
        ("[TOOL_", r"\[TOOL_(?:CALLS|REQUEST)\]", r"\[END_TOOL_REQUEST\]"),
        (
            "to=",
            r"<[|\uff5c](?:start|channel)[|\uff5c]>[^\n<]{0,60}(?:<[|\uff5c]channel[|\uff5c]>[^\n<]{0,60})?\bto=\w",
            r"<[|\uff5c](?:call|end|return)[|\uff5c]>",
        ),
        (
            "<",
            r"<[|\uff5c]recipient[|\uff5c]>[ ]?(?!all\b)\w",
            r"<[|\uff5c](?:from|stop|eot_id)[|\uff5c]>",
        ),
        (
            "<",
            r"<[|\uff5c]\w{1,20}[|\uff5c](?:function_calls|tool_calls|invoke)\b",
            r"</[|\uff5c]\w{1,20}[|\uff5c](?:function_calls|tool_calls|invoke)>",
        ),
        (">>>", r"(?m)^>>>(?!all\b)[\w.]{1,80}\n\s{0,9}\{", r"\n>>>"),
        (
            ":",
            (
                r"(?mi)^[ \t>*_`-]{0,20}(?:Action|Call|API[ _]Call)[*_`]{0,4}[ \t]?:[ \t*_`]{0,9}"
                r"(?!(?:finish|final|answer|respond))[a-z_][\w.]{0,80}[(\[{]"
            ),
            r"[)\]}][*_`]{0,4}[ \t]*+\n",
        ),
        (
            ":",
            (
                r"(?mi)^[ \t-]{0,20}(?:arguments|args|kwargs|(?:tool|action)_(?:input|args|arguments|parameters)):"
                r"[ \t]*+\n[ \t]{1,20}(?:- )?[\w\"'.-]{1,80}[ ]?:"
            ),
            r"\n(?=[^\s])",
        ),
        (
            "HTTP/",
            r"[ ]HTTP/[123](?:\.\d)?[ \t]*+\r?\n",
            r"\n[ \t>]{0,20}(?:`{3,}|~{3,}|###)|(?:\n[ \t\r]*+){3}",
        ),
        (" /", r"(?m)^[ \t>$`]{0,9}(?:GET|POST|PUT|PATCH|DELETE|HEAD)[ ]/", r"\s"),
        ("✿", r"✿(?:FUNCTION|ARGS)✿", r"✿(?:RESULT|RETURN)✿"),
        ("functools[", r"(?m)^\s{0,9}functools\[", _BLANK_LINE),
        (
            "nput",
            r"(?mi)^[ \t>*_`-]{0,20}(?:Action|Tool)[ _]Input[*_`]{0,4}[ \t]?:",
            rf"{_BLANK_LINE}|\n\W{{0,9}}(?:Observation|Thought|Final Answer)",
        ),
        (
            "(",
            r"(?m)^[ \t]{0,20}\[[a-z_][\w.]{0,80}\([a-z_]\w{0,80} ?=",
            rf"\)\][ \t]*+(?=\n)|{_BLANK_LINE}",
        ),
        (
            "`",
            r"(?mi)^[ \t>]{0,20}`{3,}[ \t]{0,9}(?:tool|function)[\w-]{0,20}",
            r"\n[ \t>]{0,20}`{3,}[ \t]*+(?=\n)",
        ),
        (
            "~",
            r"(?mi)^[ \t>]{0,20}~{3,}[ \t]{0,9}(?:tool|function)[\w-]{0,20}",
            r"\n[ \t>]{0,20}~{3,}[ \t]*+(?=\n)",
        ),
        ("[", r"(?i)\[(?:url|img|iframe|media|video|audio|email)[ ]?[=\]]", rf"\[/|{_BLANK_LINE}"),
        (
            "\\",
            (
                r"\\(?:href|url|hyperlink|html(?:Data|Style)|include(?:graphics|pdf|svg)?|input|lstinputlisting"
                r"|write18)\s{0,9}(?:\[[^\]\n]{0,100}\])?\{"
            ),
            r"\}",
        ),
        ("(", r"(?i)(?<![\w-])url\(", r"[)\n]"),
        ("@import", r"(?i)@import\s", r"[;\n]"),
        (
            "..",
            (
                r"(?m)^[ \t]{0,20}\.\.[ ]+(?:(?:image|figure|include|raw|literalinclude|csv-table|video)::"
                r"|_[^\n:]{1,200}:)(?=\s)"
            ),
            r"\n(?![ \t]+:)",
        ),
        (":", r"(?<![\w/])(?:link|image|include|video|audio):(?::|(?=[./\w]))(?!\s)", r"[\[\s]"),
        ("[[", r"\[\[(?:[A-Za-z]{2,20}:|/)", rf"\]\]|{_BLANK_LINE}"),
        ('":/', r'"[^"\n]{1,200}":/', r"\s"),
        ("=>", r"(?m)^=>[ \t]*+/", r"\n"),
        ("]:", r"(?m)^[ \t>*+.)\d-]{0,20}\[(?!\^)[^\]\n]{1,200}\]:[ \t]*+\n?[ \t]*+(?=[^\s\[])", r"\s"),
    )
)
"""What must be in the text, the begin and the end of texts of one kind: calls in the forms that models are trained on,
requests as they go over the wire, and addresses that have blanks in them or need no scheme (BBCode, LaTeX, style
sheets, reStructuredText, AsciiDoc, Textile, wikis, definitions of Markdown links)."""


class Spans:
    """Texts between a begin and an end; each kind is followed by itself, so that none can hide another."""

    def __init__(self) -> None:
        self._open = [False] * len(_SPANS)

    @property
    def active(self) -> bool:
        """Return whether the text so far ends between a begin and its end."""
        return any(self._open)

    def read(self, text: str) -> None:
        """Follow the next part of the text."""
        for kind, (needed, begin, end) in enumerate(_SPANS):
            if not self._open[kind] and needed not in text:
                continue
            place = 0
            while (border := (end if self._open[kind] else begin).search(text, place)) is not None:
                self._open[kind] = not self._open[kind]
                place = border.end()
