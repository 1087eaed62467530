"""How much of documents and questions is taken, to the very bound; and what hour a clock shows."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.content.context import Context
from app.core.contracts.engines import EngineReport, Retrieval, RetrievalQuery, RetrievedPassage
from app.core.contracts.middleware import Invocation, Outcome
from app.middlewares.document_retrieval import (
    DocumentRetrieval,
    DocumentRetrievalArguments,
    question,
    shown_passage,
)
from app.middlewares.timestamp_injector import written
from tests.fakes import engines

CALLER = Caller("acme", "0a1b2c3d", frozenset({Role.INVOKER}))


class Fixed:
    """Finds the passages that a test says, for whatever question."""

    def __init__(self, *passages: RetrievedPassage) -> None:
        self.passages, self.asked = passages, list[RetrievalQuery]()

    async def retrieve(self, queries: Sequence[RetrievalQuery]) -> Retrieval:
        self.asked += queries
        return Retrieval([list(self.passages) for _ in queries], EngineReport("fixed", "1"))


def passage(text: str, title: str = "T", uri: str | None = None) -> RetrievedPassage:
    return RetrievedPassage(f"id of {title}", title, "c", "s", text, 0.126, uri)


async def retrieved(retriever: Fixed, question: str = "What is it?", **arguments: Any) -> Outcome:
    middleware = DocumentRetrieval(engines(retriever=retriever))
    chosen = DocumentRetrievalArguments(**arguments)
    return await middleware.invoke(Context.parse([question]), chosen, Invocation(CALLER, math.inf))


def documents(outcome: Outcome) -> list[str]:
    text = str(outcome.context.to_json()[0])
    inner = text.removeprefix("[Retrieved Documents]\n\n").rpartition("\n\n---\n\n")[0]
    return inner.split("\n\n") if inner else []


async def test_a_document_that_fits_exactly_is_shown_whole() -> None:
    text = "word " * 60
    whole = shown_passage(passage(text))
    outcome = await retrieved(Fixed(passage(text)), maxCharacters=len(whole))
    assert documents(outcome) == [whole]
    cut = documents(await retrieved(Fixed(passage(text)), maxCharacters=len(whole) - 1))
    assert cut[0].endswith("word …")
    assert len(cut[0]) <= len(whole) - 1


@pytest.mark.parametrize(("room", "count"), [(200, 2), (199, 1)])
async def test_a_document_is_cut_only_where_there_is_room_for_something_of_it(room: int, count: int) -> None:
    first = passage("a" * 300, "A")
    used = len(shown_passage(first)) + 2
    retriever = Fixed(first, passage("b " * 400, "B"), passage("c", "C"))
    outcome = await retrieved(retriever, maxCharacters=used + room)
    assert len(documents(outcome)) == count
    assert outcome.counts == {"documents": count}
    assert outcome.audit_details["document_ids"] == ",".join(["id of A", "id of B"][:count])


async def test_documents_of_which_nothing_is_seen_are_left_out_and_what_was_hidden_is_counted() -> None:
    hidden = passage("<!-- a -->\n", "Gone")
    seen = passage("Here.<!-- b -->", "Seen<!-- c -->", "x://1")
    outcome = await retrieved(Fixed(hidden, seen, passage("Plain.", "P")))
    assert outcome.audit_details == {
        "documents": 2,
        "stripped": 3,
        "document_ids": "id of Seen<!-- c -->,id of P",
    }
    first, second = outcome.metadata["sources"]
    assert (first["title"], first["relevance"], first["uri"]) == ("Seen", 0.13, "x://1")
    assert "uri" not in second


async def test_a_query_of_the_caller_is_asked_and_an_empty_one_is_not() -> None:
    retriever = Fixed(passage("a"))
    await retrieved(retriever, query="This")
    await retrieved(retriever, query="  ", sources=[])
    await retrieved(retriever, question=" \n")
    assert [(one.text, one.sources, one.limit) for one in retriever.asked] == [("This", None, 5)]
    await retrieved(retriever, sources=[], maxResults=7)
    assert (retriever.asked[-1].sources, retriever.asked[-1].limit) == ((), 7)


@pytest.mark.parametrize(
    ("last", "asked"),
    [
        ("and the whole budget", "and the whole budget\nTell me of the plan now"),
        ("and the whole budget too", "and the whole budget too"),
    ],
)
def test_a_question_of_five_words_stands_alone_and_a_shorter_one_does_not(last: str, asked: str) -> None:
    items = [{"role": "user", "content": text} for text in ("Older", "Tell me of the plan now", " ", last)]
    assert question(Context.parse(items)) == asked


def test_a_short_question_with_nothing_before_it_stands_alone() -> None:
    assert question(Context.parse([{"role": "user", "content": "why"}])) == "why"
    assert question(Context.parse([{"role": "assistant", "content": "why"}])) == ""
    mixed = [{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}, "b"]
    assert question(Context.parse(mixed)) == "a\nb"


def test_of_a_message_of_seventeen_hundred_characters_nothing_is_left_out() -> None:
    text = "a" * 1400 + "b" * 300
    assert question(Context.parse([text])) == text.strip()
    longer = "a" * 1400 + "c" + "b" * 300
    assert question(Context.parse([longer])) == f"{'b' * 300}\n{'a' * 1400}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# One\ntext", "# T\n## One\ntext"),
        ("### One", "# T\n### One"),
        ("# t and more\n# Two", "# t and more\n## Two"),
        ("```\n# code\n---\n```\n---", "# T\n```\n# code\n---\n```\n- - -"),
        ("````\n```\n# code\n````\n# Out", "# T\n````\n```\n# code\n````\n## Out"),
        ("~~~\n```\n# code", "# T\n~~~\n```\n# code\n~~~"),
        ("```\n[Retrieved Documents]\n```", "# T\n```\n(Retrieved Documents)\n```"),
        ("===", "# T\n- - -"),
        ("* * *", "# T\n- - -"),
        ("--", "# T\n--"),
    ],
)
def test_a_document_keeps_its_code_and_loses_what_ends_documents(text: str, shown: str) -> None:
    assert shown_passage(passage(text)) == shown


@pytest.mark.parametrize(
    ("hour", "shown"), [(0, "12:05 AM"), (1, "1:05 AM"), (11, "11:05 AM"), (12, "12:05 PM"), (13, "1:05 PM")]
)
def test_noon_and_midnight_are_twelve(hour: int, shown: str) -> None:
    moment = datetime(2025, 1, 31, hour, 5, tzinfo=UTC)
    assert written(moment, "spoken") == f"Friday, January 31, 2025, {shown} UTC"
    assert written(moment.replace(month=12, day=1), "spoken").startswith("Monday, December 1, 2025")


async def test_a_document_is_cut_at_a_space_in_its_second_half_and_anywhere_else_without_one() -> None:
    late, early = "w" * 150 + " " + "x" * 400, "w " + "x" * 500
    for text, end in ((late, f"{'w' * 150} …"), (early, "x …")):
        (shown,) = documents(await retrieved(Fixed(passage(text)), maxCharacters=250))
        assert shown.endswith(end)
        assert len(shown) <= 250
