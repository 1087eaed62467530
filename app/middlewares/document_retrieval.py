"""Put passages of the caller's documents in front of a question."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from app.core.catalog.collections import principals_of
from app.core.content.context import Context
from app.core.content.sanitizing import sanitized
from app.core.contracts.engines import RetrievalQuery, RetrievedPassage
from app.core.contracts.middleware import Arguments, Invocation, Middleware, Outcome
from app.core.offload import off_loop

MARK: Final = "[Retrieved Documents]"
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FORGED_MARK = re.compile(r"\[\s*(retrieved\s+documents?)\s*\]", re.IGNORECASE)
_RULE = re.compile(r"\s{0,3}([-*_])(?:[ \t]*\1){2,}\s*|\s{0,3}=+\s*")
_HEADING = re.compile(r"\s{0,3}(#{1,6})[ \t]+(.*?)[ \t#]*")
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ].*)?")
_LEAST_WORDS: Final = 5
"""A shorter question leans on the one before it ("and the budget?")."""
_END: Final = 300
_BEGIN: Final = 1400
_LEAST_ROOM: Final = 200


class DocumentRetrievalArguments(Arguments):
    """What is looked for, where, and how much of it is shown."""

    max_results: int = Field(
        default=5, ge=1, le=50, alias="maxResults", description="Most documents to show."
    )
    sources: list[Annotated[str, StringConstraints(min_length=1, max_length=63)]] | None = Field(
        default=None,
        max_length=100,
        description="Names of collections or sources; none: all that you may read.",
    )
    min_relevance: float = Field(
        default=0.1, ge=0, le=1, alias="minRelevance", description="Least relevance of a document, 0 to 1."
    )
    query: Annotated[str, StringConstraints(min_length=1, max_length=4000)] | None = Field(
        default=None, description="What to look for; default: the last message of the user."
    )
    max_characters: int = Field(
        default=8000, ge=200, le=200_000, alias="maxCharacters", description="Most characters to add."
    )
    position: Literal["before", "after"] = Field(
        default="before", description="In front of the user's text, or behind it."
    )


class DocumentRetrieval(Middleware[DocumentRetrievalArguments]):
    """Find what the caller's documents say on the conversation, and add it to the user's text."""

    name = "document_retrieval"
    title = "Document retrieval"
    description = "Retrieve relevant documents based on conversation and inject as context"
    phase = "outbound"
    arguments = DocumentRetrievalArguments

    async def apply(self, context: Context, _arguments: DocumentRetrievalArguments) -> Outcome:
        """Add nothing: without a caller there is nobody who may read."""
        return Outcome(context, {"sources": []})

    async def invoke(
        self, context: Context, arguments: DocumentRetrievalArguments, invocation: Invocation
    ) -> Outcome:
        """Search within what the caller may read; what is found names its document and cannot pose as another."""
        text = arguments.query or question(context)
        if not text.strip():
            return Outcome(context, {"sources": []})
        query = RetrievalQuery(
            invocation.caller.tenant,
            principals_of(invocation.caller),
            text,
            tuple(arguments.sources) if arguments.sources is not None else None,
            arguments.max_results,
            arguments.min_relevance,
        )
        found = await self.engines.retriever.retrieve([query])
        passages = found.passages[0]
        length = sum(len(passage.text) for passage in passages)
        passages, stripped = await off_loop(length, _stripped, passages)
        shown = list(_shown(passages, arguments.max_characters))
        sources = [_source(passage) for passage, _ in shown]
        details: dict[str, str | int | bool] = {"documents": len(shown)}
        if stripped:
            details["stripped"] = stripped
        if shown:
            details["document_ids"] = ",".join(passage.document for passage, _ in shown)
            context = _added(context, "\n\n".join(text for _, text in shown), arguments.position)
        return Outcome(
            context,
            {"sources": sources},
            {"documents": len(shown)},
            audit_details=details,
            engine=found.report,
        )


def question(context: Context) -> str:
    """Return what the conversation asks: the user's last message, with the one before where it is short."""
    asked = [text for text in _user_texts(context.items) if text.strip()]
    if not asked:
        return ""
    last = _shortened(asked[-1])
    if len(last.split()) < _LEAST_WORDS and len(asked) > 1:
        return f"{last}\n{_shortened(asked[-2])}"
    return last


def shown_date(written: str) -> str:
    """Return an ISO date as ``Oct 1, 2025``, anything else as it is."""
    found = _ISO.fullmatch(written)
    try:
        day = date(*map(int, found.groups())) if found else None
    except ValueError:
        day = None
    return written if day is None else f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def shown_passage(passage: RetrievedPassage) -> str:
    """Return a passage under a heading that names its document, whatever the document says it is."""
    lines = list(_neutral(passage.text.strip("\n").split("\n")))
    title = _plain(passage.title).strip().lstrip("#").strip() or "Untitled"
    title = _FORGED_MARK.sub(r"(\1)", title)
    own = _HEADING.fullmatch(lines[0])
    if own is not None and own[2].casefold().startswith(title.casefold()):
        return "\n".join([f"# {own[2]}", *lines[1:]])
    heading = f"# {title} ({shown_date(passage.written)})" if passage.written else f"# {title}"
    return "\n".join([heading, *lines])


def _neutral(lines: list[str]) -> Iterator[str]:
    """Yield lines without what marks the limits of documents here; inside code blocks only our mark is."""
    fence = ""
    for line in lines:
        plain = _plain(line)
        if _FORGED_MARK.search(plain):
            line = _FORGED_MARK.sub(r"(\1)", plain)  # noqa: PLW2901 - the line as it is shown
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(mark[1][0]):
                fence = ""
            yield line
            continue
        if mark:
            fence = mark[1]
            yield line
        elif _RULE.fullmatch(plain):
            yield "- - -"
        elif (heading := _HEADING.fullmatch(plain)) is not None:
            yield f"{'#' * max(2, len(heading[1]))} {heading[2]}"
        else:
            yield line
    if fence:
        yield fence


def _plain(line: str) -> str:
    """Return a line as it looks: without characters that show nothing, look-alikes of signs as the signs."""
    if line.isascii():
        return line
    seen = "".join(one for one in line if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", seen)


def _stripped(passages: Sequence[RetrievedPassage]) -> tuple[list[RetrievedPassage], int]:
    """Return passages without text that a reader would not see, and how many places that was taken from.

    HTML loses it when it is taken in; Markdown and plain text keep what they say until here.
    """
    kept, places = [], 0
    for passage in passages:
        text, title = sanitized(passage.text), sanitized(passage.title)
        places += sum(text.stripped.values()) + sum(title.stripped.values())
        if text.text.strip():
            kept.append(replace(passage, text=text.text, title=title.text))
    return kept, places


def _shown(passages: list[RetrievedPassage], room: int) -> Iterator[tuple[RetrievedPassage, str]]:
    """Yield passages as they are shown, as long as there is room; the last one may be cut at a line or a word."""
    for passage in passages:
        text = shown_passage(passage)
        if len(text) > room:
            if room < _LEAST_ROOM:
                return
            text = _cut(text, room)
        yield passage, text
        room -= len(text) + 2


def _cut(text: str, room: int) -> str:
    part = text[: room - 2]
    at = max(part.rfind("\n"), part.rfind(" "))
    part = part[:at] if at > room // 2 else part
    fences = [found[1] for line in part.split("\n") if (found := _FENCE.match(line))]
    return f"{part} \u2026" + (f"\n{fences[-1]}" if len(fences) % 2 else "")


def _added(context: Context, documents: str, position: str) -> Context:
    if position == "after":
        return context.prefixed(f"\n\n---\n\n{MARK}\n\n{documents}", after=True)
    return context.prefixed(f"{MARK}\n\n{documents}\n\n---\n\n")


def _source(passage: RetrievedPassage) -> dict[str, Any]:
    said: dict[str, Any] = {
        "title": passage.title,
        "relevance": round(passage.relevance, 2),
        "collection": passage.collection,
        "source": passage.source,
        "document": passage.document,
    }
    return said if passage.uri is None else {**said, "uri": passage.uri}


def _user_texts(items: list[Any]) -> list[str]:
    """Return what the user said, a text for each message; without messages all texts are one."""
    messages = [item for item in items if isinstance(item, dict) and "role" in item]
    if messages:
        return [_text_of(item.get("content")) for item in messages if item["role"] == "user"]
    return [_text_of(items)]


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        text = content.get("text") if content.get("type") == "text" else None
        return text if isinstance(text, str) else ""
    return "\n".join(filter(None, map(_text_of, content))) if isinstance(content, list) else ""


def _shortened(text: str) -> str:
    """Return a long message by its end and its beginning, where questions stand."""
    return text if len(text) <= _END + _BEGIN else f"{text[-_END:]}\n{text[:_BEGIN]}"
