"""Extract the visible text of an HTML page."""

import re
from typing import Any, Final

_SKIPPED: Final = frozenset(
    {
        *("script", "style", "template", "noscript", "head", "svg", "canvas", "iframe", "object", "embed"),
        *("audio", "video", "select", "button", "nav", "map", "math"),
    }
)
_BLOCKS: Final = frozenset(
    {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "body",
            "center",
            "dd",
            "details",
            "dialog",
            "div",
            "dl",
        ),
        *(
            "dt",
            "fieldset",
            "figcaption",
            "figure",
            "footer",
            "form",
            "header",
            "hr",
            "html",
            "legend",
            "main",
        ),
        *("menu", "ol", "p", "section", "summary", "table", "tbody", "tfoot", "thead", "ul", "caption"),
    }
)
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])",
    re.IGNORECASE,
)
_GAPS = re.compile(r"[ \t\r\n\f]+")
_BLANK_LINES = re.compile(r"\n{3,}")


def html_text(page: str) -> tuple[str | None, str]:
    """Return the title and the visible text as Markdown, without hidden text."""
    # The parser is loaded here, because only installations that ingest documents need it.
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415

    tree = LexborHTMLParser(page)
    titled = tree.css_first("title") or tree.css_first("h1")
    title = titled.text() if titled is not None else None
    writer = _Writer()
    if tree.body is not None:
        _walk(tree.body, writer)
    return title, writer.text()


def _walk(root: Any, writer: "_Writer") -> None:
    """Visit the tree without recursion: pages may be nested deeper than Python's stack."""
    waiting: list[tuple[Any, bool]] = [(root, False)]
    while waiting:
        node, leaving = waiting.pop()
        tag = node.tag
        if leaving:
            writer.leave(tag)
        elif tag == "-text":
            writer.words(node.text_content or "")
        elif not _is_hidden(tag, node):
            writer.enter(tag)
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(list(node.iter(include_text=True))))


def _is_hidden(tag: str, node: Any) -> bool:
    if tag in _SKIPPED or tag.startswith(("-", "_")):
        return True
    attributes = node.attributes
    if not attributes:
        return False
    return (
        "hidden" in attributes
        or (attributes.get("aria-hidden") or "").lower() == "true"
        or _HIDING.search(attributes.get("style") or "") is not None
    )


class _Writer:
    """Joins the pieces of a page, with one blank line between blocks."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._kept = 0
        """Number of open elements that preserve white space."""

    def enter(self, tag: str) -> None:
        if tag in _HEADINGS:
            self._break("\n\n" + _HEADINGS[tag])
        elif tag == "li":
            self._break("\n- ")
        elif tag == "tr":
            self._break("\n")
        elif tag == "br":
            self._parts.append("\n")
        elif tag == "pre":
            self._break("\n\n```\n")
            self._kept += 1
        elif tag in _BLOCKS:
            self._break("\n\n")

    def leave(self, tag: str) -> None:
        if tag == "pre":
            self._kept -= 1
            self._break("\n```\n\n")
        elif tag in {"td", "th"}:
            self._parts.append(" | ")
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._break("\n\n")
        elif tag == "li":
            self._break("\n")

    def words(self, text: str) -> None:
        if self._kept:
            self._parts.append(text)
            return
        text = _GAPS.sub(" ", text)
        if text == " " and (not self._parts or self._parts[-1].endswith(("\n", " "))):
            return
        if self._parts and self._parts[-1].endswith(("\n", "# ", "- ")):
            text = text.lstrip(" ")
        self._parts.append(text)

    def text(self) -> str:
        lines = "".join(self._parts).split("\n")
        trimmed = (line.rstrip().removesuffix("|").rstrip() for line in lines)
        return _BLANK_LINES.sub("\n\n", "\n".join(trimmed)).strip()

    def _break(self, mark: str) -> None:
        self._parts.append(mark)
