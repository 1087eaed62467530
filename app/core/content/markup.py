"""Find HTML in texts that a reader would never see, or that acts when it is shown.

One pass over the tags takes time linear in the length of the text; no document tree is built.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final


@dataclass(frozen=True, slots=True)
class MarkupEdit:
    """Replace ``text[start:end]`` by ``instead``; ``hidden`` if a reader would not have seen the text."""

    start: int
    end: int
    kind: str
    instead: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag; ``inside`` is the range ``[start, end)`` of its attributes."""

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
_QUOTE_OR_END: Final = re.compile(r"[\"'>]")
_ATTRIBUTE: Final = re.compile(r"""([^\s"'>/=]+)(?:\s{0,20}=\s{0,20}("[^"]*"|'[^']*'|[^\s"'>]+))?""")

_DROPPED_ELEMENTS: Final = frozenset(
    {
        *("script", "style", "iframe", "object", "applet", "template", "noscript", "frameset", "noembed"),
        *("noframes", "datalist"),
    }
)
_DROPPED_EMPTY_ELEMENTS: Final = frozenset({"embed", "base", "link", "frame", "param"})
_VOID_ELEMENTS: Final = frozenset(
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
_URL_ATTRIBUTES: Final = frozenset(
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
_FETCHED_ATTRIBUTES: Final = frozenset({"src", "srcset", "poster", "background", "data", "xlink:href"})
"""Attributes whose URL is fetched as soon as the page is shown."""

_STYLE_URL: Final = re.compile(r"(?i)url\(\s{0,9}[\"']?\s{0,9}([^\"')]{1,2000})")
_CSS_COMMENT: Final = re.compile(r"/\*(?:[^*]|\*(?!/)){0,400}\*/")
_CSS_ESCAPE: Final = re.compile(r"\\([0-9A-Fa-f]{1,6})\s?")
_WEB_PREFIX: Final = re.compile(r"(?i)(?:https?:/*|/{2,})")
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
_WHITE_TEXT: Final = re.compile(
    r"(?i)(?:^|[;\s])color\s{0,9}:\s{0,9}(?:white\b|#fff(?:fff)?\b|transparent\b|rgba?\(\s{0,9}255\s{0,9},\s{0,9}255\s{0,9},\s{0,9}255|"
    r"rgba\([^)]{0,40},\s{0,9}0(?:\.0\d*)?\s{0,9}\))"
)
_PLACEHOLDER: Final = re.compile(r"[{}<>\[\]|]|%7[bBdD]|%3[cC]|\$\{|[?&][\w.-]{1,40}=$|[?&/]$")
_LONG_PART: Final = 48
"""A part of a URL path of at least this many characters can carry data."""


def attributes(text: str, tag: Tag) -> Iterator[tuple[str, str, int, int]]:
    """Yield the attributes of a tag: name in lower case, value, start and end of both."""
    for match in _ATTRIBUTE.finditer(text, *tag.inside):
        value = (match[2] or "").strip("\"'")
        yield match[1].lower(), unescape(value), match.start(), match.end()


def markup_parts(text: str) -> list[MarkupEdit]:
    """Return edits for the comments, hidden and active elements, handlers, script URLs and beacons, in order."""
    return _Markup(text).parts()


class _Markup:
    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[MarkupEdit] = []
        self.backgrounds: list[tuple[str, bool]] = []
        self.last_close = text.rfind(">")
        self.last_comment_end = text.rfind("-->")
        self.quotes_match = True

    def parts(self) -> list[MarkupEdit]:
        place = 0
        while 0 <= (start := self.text.find("<", place)) < self.last_close:
            if self.text.startswith("<!--", start) and start + 4 <= self.last_comment_end:
                place = self.text.find("-->", start + 4) + 3
                self.edits.append(MarkupEdit(start, place, COMMENT, hidden=True))
                continue
            tag = self._read_tag(start)
            place = self._judge_tag(tag) if tag is not None else start + 1
        return self.edits

    def _read_tag(self, start: int) -> Tag | None:
        opening = _OPENING.match(self.text, start)
        if opening is None:
            return None
        end = self._tag_end(opening.end())
        return Tag(start, end + 1, opening[2].lower(), bool(opening[1]), (opening.end(), end))

    def _tag_end(self, start: int) -> int:
        """Return the offset of the tag's ``>``: the first outside of quotes, or the first if quotes never match."""
        place = start
        while self.quotes_match and (stop := _QUOTE_OR_END.search(self.text, place)) is not None:
            if stop[0] == ">":
                return stop.start()
            closing = self.text.find(stop[0], stop.end())
            self.quotes_match = closing >= 0
            place = closing + 1
        self.quotes_match = False
        return self.text.find(">", start)

    def _judge_tag(self, tag: Tag) -> int:
        """Judge one tag and return the offset at which to continue."""
        if tag.closing:
            self._forget_background(tag.name)
            return tag.end
        found_attributes = list(attributes(self.text, tag))
        values = {name: value for name, value, _, _ in found_attributes}
        if tag.name in _DROPPED_ELEMENTS:
            end = self._element_end(tag)
            self.edits.append(MarkupEdit(tag.start, end, ACTIVE, hidden=True))
            return end
        if "style" in values:
            values["style"] = _read_style(values["style"])
        refreshes = tag.name == "meta" and "http-equiv" in values
        if tag.name in _DROPPED_EMPTY_ELEMENTS or refreshes:
            self.edits.append(MarkupEdit(tag.start, tag.end, ACTIVE))
            return tag.end
        if self._is_unseen(tag, values):
            end = tag.end if tag.name in _VOID_ELEMENTS else self._element_end(tag)
            self.edits.append(MarkupEdit(tag.start, end, HIDDEN, hidden=True))
            return end
        if tag.name == "img" and is_beacon(values.get("src", "")):
            self.edits.append(MarkupEdit(tag.start, tag.end, BEACON, _without_markup(values.get("alt", ""))))
            return tag.end
        if tag.name not in _VOID_ELEMENTS and self.text[tag.end - 2 : tag.end] != "/>":
            self.backgrounds.append((tag.name, _has_background(values)))
        self._judge_attributes(tag, found_attributes)
        return tag.end

    def _forget_background(self, name: str) -> None:
        for place in range(len(self.backgrounds) - 1, max(-1, len(self.backgrounds) - 50), -1):
            if self.backgrounds[place][0] == name:
                del self.backgrounds[place:]
                return

    def _judge_attributes(self, tag: Tag, found_attributes: list[tuple[str, str, int, int]]) -> None:
        for name, value, start, end in found_attributes:
            if name.startswith("on") and len(name) > 3:  # noqa: PLR2004 - onclick and its like
                self.edits.append(MarkupEdit(start, end, HANDLER))
            elif name in _URL_ATTRIBUTES and is_script_url(value):
                self.edits.append(MarkupEdit(start, end, SCRIPT_URL))
            elif _fetches(tag, name, value):
                self.edits.append(MarkupEdit(start, end, BEACON))

    def _is_unseen(self, tag: Tag, values: dict[str, str]) -> bool:
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
        white = _WHITE_TEXT.search(style) or (
            tag.name == "font" and values.get("color", "").lower() in {"white", "#fff", "#ffffff"}
        )
        on_white_page = not _has_background(values) and not any(
            backgrounds for _, backgrounds in self.backgrounds[-50:]
        )
        return bool(white) and on_white_page

    def _element_end(self, tag: Tag) -> int:
        """Return the end of an element: after its closing tag, or the end of the text if there is none."""
        depth = 1
        pattern = re.compile(rf"(?i)<(/?){re.escape(tag.name)}(?=[\s/>])[^>]{{0,2000}}>")
        for match in pattern.finditer(self.text, tag.end):
            if tag.name in {"script", "style"} and not match[1]:
                continue
            depth += -1 if match[1] else 0 if match[0].endswith("/>") else 1
            if depth == 0:
                return match.end()
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
    """Return whether an attribute makes a page send a request that can carry data out."""
    if name == "style":
        return any(is_beacon(match[1]) for match in _STYLE_URL.finditer(_read_style(value)))
    if name == "srcset":
        return any(is_beacon(source) for source in value.split())
    return (
        name in _FETCHED_ATTRIBUTES or (name == "href" and tag.name in {"image", "use", "feimage"})
    ) and is_beacon(value)


def _read_style(style: str) -> str:
    """Return a style as a browser reads it, with escapes decoded and comments stripped."""
    if "\\" in style:
        style = _CSS_ESCAPE.sub(lambda match: chr(min(int(match[1], 16), 0xFFFD)), style)
    return _CSS_COMMENT.sub("", style) if "/*" in style else style


def _read_url(url: str) -> str:
    """Return a URL as browsers and Markdown read it: entities decoded, blanks stripped, backslashes as slashes."""
    if "&" in url:
        url = unescape(url)
    return _BLANKS.sub("", url).replace("\\", "/")


def is_script_url(url: str) -> bool:
    """Return whether a URL runs a script or contains a page itself."""
    return _SCRIPT.search(_read_url(url)) is not None


def is_beacon(url: str, *, shown: bool = True) -> bool:
    """Return whether a request for the URL can carry data from the context out.

    ``shown``: the URL is an image's, which is fetched without a click; in a link only a placeholder to fill in counts.
    """
    url = _read_url(url)
    begin = _WEB_PREFIX.match(url)
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
    return "?" in url or "@" in host or any(len(part) >= _LONG_PART for part in re.split(r"[/.]", path))


def _without_markup(text: str) -> str:
    """Return an image's alternative text without anything that could be markup."""
    return re.sub(r"[<>\[\]()!`]", "", text)[:200]
