"""Add passages of the caller's documents to a question."""

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
_MIN_QUESTION_WORDS: Final = 5
"""A shorter question depends on the previous one ("and the budget?")."""
_MAX_END: Final = 300
_MAX_BEGINNING: Final = 1400
_MIN_PASSAGE: Final = 200


class DocumentRetrievalArguments(Arguments):
    """What to search, where, and how much of it to add."""

    max_results: int = Field(
        default=5, ge=1, le=50, alias="maxResults", description="Maximum number of documents to add."
    )
    sources: list[Annotated[str, StringConstraints(min_length=1, max_length=63)]] | None = Field(
        default=None,
        max_length=100,
        description="Names of collections or sources; null: all that you may read.",
    )
    min_relevance: float = Field(
        default=0.1, ge=0, le=1, alias="minRelevance", description="Minimum relevance of a document, 0 to 1."
    )
    query: Annotated[str, StringConstraints(min_length=1, max_length=4000)] | None = Field(
        default=None, description="What to search; default: the last message of the user."
    )
    max_characters: int = Field(
        default=8000,
        ge=200,
        le=200_000,
        alias="maxCharacters",
        description="Maximum number of characters to add.",
    )
    position: Literal["before", "after"] = Field(
        default="before", description="Before or after the user's text."
    )


class DocumentRetrieval(Middleware[DocumentRetrievalArguments]):
    """Find passages about the conversation in the caller's documents, and add them to the user's text."""

    name = "document_retrieval"
    title = "Document retrieval"
    description = "Retrieve relevant documents based on conversation and inject as context"
    phase = "outbound"
    arguments = DocumentRetrievalArguments

    async def apply(self, context: Context, _arguments: DocumentRetrievalArguments) -> Outcome:
        """Add nothing, since without a caller nobody may read documents."""
        return Outcome(context, {"sources": []})

    async def invoke(
        self, context: Context, arguments: DocumentRetrievalArguments, invocation: Invocation
    ) -> Outcome:
        """Search the documents that the caller may read; a passage cannot pretend to be from another document."""
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
        retrieval = await self.engines.retriever.retrieve([query])
        passages = retrieval.passages[0]
        length = sum(len(passage.text) for passage in passages)
        passages, stripped = await off_loop(length, _without_hidden_text, passages)
        shown = list(_within_limit(passages, arguments.max_characters))
        sources = [_source(passage) for passage, _ in shown]
        details: dict[str, str | int | bool] = {"documents": len(shown)}
        if stripped:
            details["stripped"] = stripped
        if shown:
            details["document_ids"] = ",".join(passage.document for passage, _ in shown)
            context = _with_documents(context, "\n\n".join(text for _, text in shown), arguments.position)
        return Outcome(
            context,
            {"sources": sources},
            {"documents": len(shown)},
            audit_details=details,
            engine=retrieval.report,
        )


def question(context: Context) -> str:
    """Return the question of the conversation: the user's last message, with the previous one if it is short."""
    messages = [text for text in _user_texts(context.items) if text.strip()]
    if not messages:
        return ""
    last = _shortened(messages[-1])
    if len(last.split()) < _MIN_QUESTION_WORDS and len(messages) > 1:
        return f"{last}\n{_shortened(messages[-2])}"
    return last


def shown_date(written: str) -> str:
    """Return an ISO date as ``Oct 1, 2025``, and any other text unchanged."""
    match = _ISO.fullmatch(written)
    try:
        day = date(*map(int, match.groups())) if match else None
    except ValueError:
        day = None
    return written if day is None else f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def shown_passage(passage: RetrievedPassage) -> str:
    """Return a passage under a heading with its document's title, no matter what the text claims to be."""
    lines = list(_without_marks(passage.text.strip("\n").split("\n")))
    title = _as_displayed(passage.title).strip().lstrip("#").strip() or "Untitled"
    title = _FORGED_MARK.sub(r"(\1)", title)
    own = _HEADING.fullmatch(lines[0])
    if own is not None and own[2].casefold().startswith(title.casefold()):
        return "\n".join([f"# {own[2]}", *lines[1:]])
    heading = f"# {title} ({shown_date(passage.written)})" if passage.written else f"# {title}"
    return "\n".join([heading, *lines])


def _without_marks(lines: list[str]) -> Iterator[str]:
    """Yield lines with document separators and headings defused; inside code blocks only forged marks are."""
    fence = ""
    for line in lines:
        plain = _as_displayed(line)
        if _FORGED_MARK.search(plain):
            line = _FORGED_MARK.sub(r"(\1)", plain)  # noqa: PLW2901 - the line as it is displayed
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


def _as_displayed(line: str) -> str:
    """Return a line as it is displayed: without invisible characters, and with look-alikes normalized."""
    if line.isascii():
        return line
    visible = "".join(character for character in line if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFKC", visible)


def _without_hidden_text(passages: Sequence[RetrievedPassage]) -> tuple[list[RetrievedPassage], int]:
    """Return passages without text that a reader would not see, and the number of places where it was stripped.

    HTML loses such text during ingestion; Markdown and plain text keep it until here.
    """
    kept, places = [], 0
    for passage in passages:
        text, title = sanitized(passage.text), sanitized(passage.title)
        places += sum(text.stripped.values()) + sum(title.stripped.values())
        if text.text.strip():
            kept.append(replace(passage, text=text.text, title=title.text))
    return kept, places


def _within_limit(passages: list[RetrievedPassage], room: int) -> Iterator[tuple[RetrievedPassage, str]]:
    """Yield passages with their displayed text up to ``room`` characters; the last may be cut at a line or word."""
    for passage in passages:
        text = shown_passage(passage)
        if len(text) > room:
            if room < _MIN_PASSAGE:
                return
            text = _cut_to(text, room)
        yield passage, text
        room -= len(text) + 2


def _cut_to(text: str, room: int) -> str:
    part = text[: room - 2]
    at = max(part.rfind("\n"), part.rfind(" "))
    part = part[:at] if at > room // 2 else part
    fences = [fence[1] for line in part.split("\n") if (fence := _FENCE.match(line))]
    return f"{part} \u2026" + (f"\n{fences[-1]}" if len(fences) % 2 else "")


def _with_documents(context: Context, documents: str, position: str) -> Context:
    if position == "after":
        return context.prefixed(f"\n\n---\n\n{MARK}\n\n{documents}", after=True)
    return context.prefixed(f"{MARK}\n\n{documents}\n\n---\n\n")


def _source(passage: RetrievedPassage) -> dict[str, Any]:
    source: dict[str, Any] = {
        "title": passage.title,
        "relevance": round(passage.relevance, 2),
        "collection": passage.collection,
        "source": passage.source,
        "document": passage.document,
    }
    return source if passage.uri is None else {**source, "uri": passage.uri}


def _user_texts(items: list[Any]) -> list[str]:
    """Return the user's texts, one per message; without messages all texts together."""
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
    """Return the end and the beginning of a long message, where questions usually are."""
    return text if len(text) <= _MAX_END + _MAX_BEGINNING else f"{text[-_MAX_END:]}\n{text[:_MAX_BEGINNING]}"
