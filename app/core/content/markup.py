"""HTML inside texts: what of it a reader would never see, and what of it does something when it is shown.

One pass over the tags, in time that grows with the length of the text; no document tree is built.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final


@dataclass(frozen=True, slots=True)
class MarkupEdit:
    """``text[start:end]`` goes and ``instead`` comes; ``hidden`` where a reader would not have seen it."""

    start: int
    end: int
    kind: str
    instead: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag; ``inside`` is where its attributes stand."""

    start: int
    end: int
    name: str
    closing: bool
    inside: tuple[int, int]


COMMENT: Final = "html_comment"
HIDDEN: Final = "hidden_element"
ACTIVE: Final = "active_element"
HANDLER: Final = "event_handler"
SCRIPT_URL: Final = "script_url"
BEACON: Final = "beacon"

TAG_LIKE: Final = re.compile(r"<[A-Za-z!/?]")
_OPENING: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*)(?=[\s/>])")
_STOP: Final = re.compile(r"[\"'>]")
_ATTRIBUTE: Final = re.compile(r"""([^\s"'>/=]+)(?:\s{0,20}=\s{0,20}("[^"]*"|'[^']*'|[^\s"'>]+))?""")

_DROPPED: Final = frozenset(
    {
        *("script", "style", "iframe", "object", "applet", "template", "noscript", "frameset", "noembed"),
        *("noframes", "datalist"),
    }
)
_EMPTY_DROPPED: Final = frozenset({"embed", "base", "link", "frame", "param"})
_VOID: Final = frozenset(
    {
        "area",
        "base",
        "br",
        "col",
        "embed",
        "frame",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    }
)
_URLS: Final = frozenset(
    {
        "href",
        "src",
        "action",
        "formaction",
        "xlink:href",
        "data",
        "poster",
        "background",
        "srcset",
        "srcdoc",
        "ping",
    }
)
_FETCHED: Final = frozenset({"src", "srcset", "poster", "background", "data", "xlink:href"})
"""Where a page names what is fetched when it is shown, without anybody's doing."""

_STYLED: Final = re.compile(r"(?i)url\(\s{0,9}[\"']?\s{0,9}([^\"')]{1,2000})")
_CSS_COMMENT: Final = re.compile(r"/\*(?:[^*]|\*(?!/)){0,400}\*/")
_CSS_ESCAPE: Final = re.compile(r"\\([0-9A-Fa-f]{1,6})\s?")
_WEB: Final = re.compile(r"(?i)(?:https?:/*|/{2,})")
_SCRIPT: Final = re.compile(
    r"(?i)^(?:javascript|vbscript|livescript):|^data:(?!image/(?:png|gif|jpe?g|webp|avif|bmp)[;,])"
)
_BLANKS: Final = re.compile(r"[\x00-\x20]+")
_UNSEEN: Final = re.compile(
    r"(?i)display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}(?:hidden|collapse)|font-size\s{0,9}:\s{0,9}[01](?:\.\d+)?\s{0,9}"
    r"(?:px|pt|em|rem|%)?\s{0,9}(?:!important)?\s{0,9}(?:;|$)|opacity\s{0,9}:\s{0,9}0?(?:\.0\d*)?\s{0,9}(?:!important)?\s{0,9}(?:;|$)|"
    r"(?:text-indent|left|top|margin-left|right)\s{0,9}:\s{0,9}-\d{3,}|(?:max-)?(?:height|width)\s{0,9}:\s{0,9}0(?:px)?\s{0,9}(?:;|$)|"
    r"clip(?:-path)?\s{0,9}:\s{0,9}(?:rect\(0|inset\((?:50|100)%)|mso-hide\s{0,9}:\s{0,9}all|transform\s{0,9}:\s{0,9}scale\(0\)"
)
_WHITE: Final = re.compile(
    r"(?i)(?:^|[;\s])color\s{0,9}:\s{0,9}(?:white\b|#fff(?:fff)?\b|transparent\b|rgba?\(\s{0,9}255\s{0,9},\s{0,9}255\s{0,9},\s{0,9}255|"
    r"rgba\([^)]{0,40},\s{0,9}0(?:\.0\d*)?\s{0,9}\))"
)
_PLACEHOLDER: Final = re.compile(r"[{}<>\[\]|]|%7[bBdD]|%3[cC]|\$\{|[?&][\w.-]{1,40}=$|[?&/]$")
_LONG: Final = 48
"""A part of a path that is this long carries something."""


def attributes(text: str, tag: Tag) -> Iterator[tuple[str, str, int, int]]:
    """Yield the attributes of a tag: name in lower case, value, and where the two stand."""
    for found in _ATTRIBUTE.finditer(text, *tag.inside):
        value = (found[2] or "").strip("\"'")
        yield found[1].lower(), unescape(value), found.start(), found.end()


def markup_parts(text: str) -> list[MarkupEdit]:
    """Return the comments, hidden and active elements, handlers, script URLs and beacons of a text, in order."""
    return _Markup(text).parts()


class _Markup:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[MarkupEdit] = []
        self.dark: list[tuple[str, bool]] = []
        self.last_close = text.rfind(">")
        self.last_comment_end = text.rfind("-->")
        self.quotes_hold = True

    def parts(self) -> list[MarkupEdit]:
        place = 0
        while 0 <= (start := self.text.find("<", place)) < self.last_close:
            if self.text.startswith("<!--", start) and start + 4 <= self.last_comment_end:
                place = self.text.find("-->", start + 4) + 3
                self.found.append(MarkupEdit(start, place, COMMENT, hidden=True))
                continue
            tag = self._tag(start)
            place = self._taken(tag) if tag is not None else start + 1
        return self.found

    def _tag(self, start: int) -> Tag | None:
        opening = _OPENING.match(self.text, start)
        if opening is None:
            return None
        end = self._close(opening.end())
        return Tag(start, end + 1, opening[2].lower(), bool(opening[1]), (opening.end(), end))

    def _close(self, start: int) -> int:
        """Return where the tag's ``>`` is: the first outside of quotes, or where quotes never match, the first."""
        place = start
        while self.quotes_hold and (stop := _STOP.search(self.text, place)) is not None:
            if stop[0] == ">":
                return stop.start()
            closing = self.text.find(stop[0], stop.end())
            self.quotes_hold = closing >= 0
            place = closing + 1
        self.quotes_hold = False
        return self.text.find(">", start)

    def _taken(self, tag: Tag) -> int:
        """Judge one tag and return where to go on."""
        if tag.closing:
            self._closed(tag.name)
            return tag.end
        given = list(attributes(self.text, tag))
        values = {name: value for name, value, _, _ in given}
        if tag.name in _DROPPED:
            end = self._end_of(tag)
            self.found.append(MarkupEdit(tag.start, end, ACTIVE, hidden=True))
            return end
        if "style" in values:
            values["style"] = _read_style(values["style"])
        refreshes = tag.name == "meta" and "http-equiv" in values
        if tag.name in _EMPTY_DROPPED or refreshes:
            self.found.append(MarkupEdit(tag.start, tag.end, ACTIVE))
            return tag.end
        if self._unseen(tag, values):
            end = tag.end if tag.name in _VOID else self._end_of(tag)
            self.found.append(MarkupEdit(tag.start, end, HIDDEN, hidden=True))
            return end
        if tag.name == "img" and is_beacon(values.get("src", "")):
            self.found.append(MarkupEdit(tag.start, tag.end, BEACON, _plain(values.get("alt", ""))))
            return tag.end
        if tag.name not in _VOID and self.text[tag.end - 2 : tag.end] != "/>":
            self.dark.append((tag.name, _has_background(values)))
        self._attributes(tag, given)
        return tag.end

    def _closed(self, name: str) -> None:
        for place in range(len(self.dark) - 1, max(-1, len(self.dark) - 50), -1):
            if self.dark[place][0] == name:
                del self.dark[place:]
                return

    def _attributes(self, tag: Tag, given: list[tuple[str, str, int, int]]) -> None:
        for name, value, start, end in given:
            if name.startswith("on") and len(name) > 3:  # noqa: PLR2004 - onclick and its like
                self.found.append(MarkupEdit(start, end, HANDLER))
            elif name in _URLS and is_script_url(value):
                self.found.append(MarkupEdit(start, end, SCRIPT_URL))
            elif _fetches(tag, name, value):
                self.found.append(MarkupEdit(start, end, BEACON))

    def _unseen(self, tag: Tag, values: dict[str, str]) -> bool:
        style = values.get("style", "")
        closed = tag.name == "dialog" and "open" not in values
        if (
            closed
            or "hidden" in values
            or (tag.name == "input" and values.get("type", "").lower() == "hidden")
        ):
            return True
        if _UNSEEN.search(style):
            return True
        white = _WHITE.search(style) or (
            tag.name == "font" and values.get("color", "").lower() in {"white", "#fff", "#ffffff"}
        )
        on_white = not _has_background(values) and not any(dark for _, dark in self.dark[-50:])
        return bool(white) and on_white

    def _end_of(self, tag: Tag) -> int:
        """Return where an element ends: behind its closing tag, or with the text where there is none."""
        depth = 1
        pattern = re.compile(rf"(?i)<(/?){re.escape(tag.name)}(?=[\s/>])[^>]{{0,2000}}>")
        for found in pattern.finditer(self.text, tag.end):
            if tag.name in {"script", "style"} and not found[1]:
                continue
            depth += -1 if found[1] else 0 if found[0].endswith("/>") else 1
            if depth == 0:
                return found.end()
        return len(self.text)


def _has_background(values: dict[str, str]) -> bool:
    style = values.get("style", "").lower()
    colour = values.get("bgcolor", "").lower()
    if colour and colour not in {"white", "#fff", "#ffffff"}:
        return True
    return "background" in style and not re.search(
        r"background(?:-color)?\s{0,9}:\s{0,9}(?:white|#fff)", style
    )


def _fetches(tag: Tag, name: str, value: str) -> bool:
    """Tell whether an attribute makes a page fetch something that carries what the model knows."""
    if name == "style":
        return any(is_beacon(found[1]) for found in _STYLED.finditer(_read_style(value)))
    if name == "srcset":
        return any(is_beacon(one) for one in value.split())
    return (name in _FETCHED or (name == "href" and tag.name in {"image", "use", "feimage"})) and is_beacon(
        value
    )


def _read_style(style: str) -> str:
    """Return a style as a browser reads it, without comments and escapes."""
    if "\\" in style:
        style = _CSS_ESCAPE.sub(lambda found: chr(min(int(found[1], 16), 0xFFFD)), style)
    return _CSS_COMMENT.sub("", style) if "/*" in style else style


def _read_url(url: str) -> str:
    """Return a URL as browsers and Markdown read it: without entities, blanks and back slashes."""
    if "&" in url:
        url = unescape(url)
    return _BLANKS.sub("", url).replace("\\", "/")


def is_script_url(url: str) -> bool:
    """Tell whether a URL runs something or holds a page of its own."""
    return _SCRIPT.search(_read_url(url)) is not None


def is_beacon(url: str, *, shown: bool = True) -> bool:
    """Tell whether the request for a URL can carry what the model knows.

    ``shown``: it is an image, which is fetched without anybody's doing; of a link only a place to be filled in counts.
    """
    url = _read_url(url)
    begin = _WEB.match(url)
    if begin is None:
        return False
    address = url[begin.end() :]
    if _PLACEHOLDER.search(address.partition("/")[2]) and "?" in url:
        return True
    if re.search(r"[{}]|%7[bBdD]", url):
        return True
    if not shown:
        return False
    host, _, path = address.partition("/")
    return "?" in url or "@" in host or any(len(part) >= _LONG for part in re.split(r"[/.]", path))


def _plain(text: str) -> str:
    """Return the text that stands for an image, without anything that could be markup."""
    return re.sub(r"[<>\[\]()!`]", "", text)[:200]
