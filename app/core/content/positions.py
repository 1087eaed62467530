"""Where an original may be restored in a text from a model: never in an address, in markup that acts, or in a call.

Text from a model is not trusted: an original in such a place would be sent out by the next click, image, import or
tool. Everything before a handle decides, whatever its length, and a bounded piece of what follows it.
"""

import re
from html import unescape
from typing import Final

from app.core.content.active_calls import JsonCalls, Spans
from app.core.content.active_commands import LINE_REACH, Commands, ProgramCalls, TextWords
from app.core.content.active_markup import Runs, Tags, Targets

RIGHT_CONTEXT: Final = LINE_REACH
"""How many characters after a handle can decide whether its position is safe."""

LONGEST_GAP: Final = 4 * 1024 * 1024
"""After so many characters without a handle, nothing is restored any more; the text of a stream must be kept until
the next handle."""

_HOST_REACH: Final = 320
"""A longer run after a handle is not trusted: host names have at most 253 characters."""

_LONGEST_UNIT: Final = 80
_INNER_HANDLE: Final = r"[\[({<][A-Z][A-Z0-9_]{0,40}_[0-9]{1,9}(?:~[a-z2-7]{4})?[\])}>]"
_IGNORED: Final = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
"""Characters that host names ignore or that readers do not see."""

_RIGHT_RUN: Final = re.compile(
    rf"(?:[\w.+%@*`~\\\u3002\uff0e\uff61\uff20{_IGNORED}-]|&(?:[A-Za-z]{{2,8}}|#\w{{2,6}});|{_INNER_HANDLE})*+"
)
_OPEN_UNIT: Final = re.compile(r"(?:&#?\w{0,8}|[\[({<](?:[A-Z][A-Z0-9_]{0,51}(?:~[a-z2-7]{0,4})?)?)\Z")
_UNSEEN: Final = re.compile(rf"[*`~\\{_IGNORED}]")
_WIDE_DOT: Final = re.compile("[\u3002\uff0e\uff61](?=[A-Za-z0-9-])")
_FULL_STOP: Final = re.compile("[\u3002\uff0e\uff61]")
_MAILBOX: Final = re.compile(r"[\w.+%-]*@\w")
_HOST: Final = re.compile(r"[\w%+-]*((?:\.[\w-]+)+)")
_FILE_ENDINGS: Final = frozenset(
    {
        *(
            "pdf",
            "doc",
            "docx",
            "odt",
            "rtf",
            "txt",
            "md",
            "html",
            "htm",
            "xml",
            "json",
            "jsonl",
            "csv",
            "tsv",
            "xls",
        ),
        *(
            "xlsx",
            "ods",
            "ppt",
            "pptx",
            "png",
            "jpg",
            "jpeg",
            "gif",
            "svg",
            "webp",
            "zip",
            "mp3",
            "mp4",
            "wav",
            "yaml",
        ),
        *("yml", "eml", "ics", "vcf", "py", "js", "ts", "sql", "sh", "log"),
    }
)


class PositionReader:
    """Follow one text and judge its handles from left to right.

    ``add`` the text up to a handle, ask ``is_active``, then ``pass_handle``. The result does not depend on how the text
    was cut into pieces.
    """

    def __init__(self) -> None:
        self._tags, self._targets, self._runs = Tags(), Targets(), Runs()
        self._json_calls, self._spans = JsonCalls(), Spans()
        self._program_calls = ProgramCalls(), ProgramCalls(strings_end_with_lines=True)
        self._commands = Commands()
        self._waiting: list[str] = []
        self._waiting_length = 0
        self._behind_handle = False
        self._is_lost = False

    def add(self, text: str) -> None:
        """Follow text without handles."""
        self._waiting_length += len(text)
        if self._waiting_length > LONGEST_GAP:
            self._is_lost = True
            self._waiting.clear()
        elif text:
            self._waiting.append(text)

    def is_active(self, right: str, *, ends: bool) -> bool | None:
        """Return whether a handle that stands here is where no original may be; None if that needs more of ``right``.

        ``right`` is the text after the handle, or its first ``RIGHT_CONTEXT`` characters; ``ends`` says that no more
        follows.
        """
        self._read()
        markup = (self._tags, self._targets, self._runs)
        calls = (self._json_calls, self._spans, *self._program_calls, self._commands)
        if self._is_lost or any(reader.active for reader in (*markup, *calls)):
            return True
        in_host = _continues_as_host(right[:_HOST_REACH], ends=ends and len(right) <= _HOST_REACH)
        return self._commands.sends_ahead(right, ends=ends) if in_host is False else in_host

    def pass_handle(self, label: str) -> None:
        """Follow a handle with ``label``, which was judged."""
        self._runs.pass_handle(label)
        self._behind_handle = True

    def _read(self) -> None:
        if not self._waiting:
            return
        text = "".join(self._waiting)
        self._waiting, self._waiting_length = [], 0
        self._tags.read(text)
        self._runs.read(text, self._tags.closed_at)
        # The other readers look for the begins of lines and words, and a handle is part of a word.
        if self._behind_handle:
            text = "x" + text
        self._behind_handle = False
        for reader in (self._targets, self._json_calls, self._spans):
            reader.read(text)
        words = TextWords(text)
        for sending in (*self._program_calls, self._commands):
            sending.read(text, words)


def _continues_as_host(right: str, *, ends: bool) -> bool | None:
    """Return whether what follows makes the handle a part of a host name or of a mail address."""
    run = _RIGHT_RUN.match(right)
    end = run.end() if run is not None else 0
    if end >= _HOST_REACH - _LONGEST_UNIT:
        return True
    if not ends and len(right) < _HOST_REACH and (end == len(right) or _OPEN_UNIT.match(right, end)):
        return None
    return end > 0 and _is_host_rest(right[:end], is_called=right[end : end + 1] == "(")


def _is_host_rest(run: str, *, is_called: bool) -> bool:
    """Return whether ``run`` behind a name makes both an address; ``is_called``: a bracket follows, as in code."""
    plain = re.sub(_INNER_HANDLE, "x", run)
    if "&" in plain:
        plain = unescape(plain)
    plain = _WIDE_DOT.sub(".", _UNSEEN.sub("", plain)).replace("\uff20", "@")
    plain = _FULL_STOP.split(plain, maxsplit=1)[0]
    if _MAILBOX.match(plain):
        return True
    host = _HOST.match(plain)
    if host is None:
        return False
    labels = host[1].split(".")[1:]
    if len(labels) == 1 and (is_called or labels[0].lower() in _FILE_ENDINGS):
        return False
    return any(map(_is_domain_label, labels))


def _is_domain_label(label: str) -> bool:
    """Return whether ``label`` can be the last one of a domain, in any script."""
    if label.isascii():
        return (len(label) > 1 and label.isalpha()) or label[:4].lower() == "xn--"
    return len(label) > 1 and label.isalpha() and not re.search("[A-Za-z]", label)
