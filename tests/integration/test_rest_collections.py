"""Collections over REST: filled in every format, listed page by page, and read by those who may, as in example 4."""

import io
from collections.abc import AsyncIterator
from typing import Any

import docx
import pytest

from app.core.access import Role
from tests.integration.rest_app import Rest, open_rest
from tests.unit.engines.documents.samples import pdf_of

pytestmark = pytest.mark.in_turn("database_url")

QUESTION = "What was discussed in the Q4 planning meeting?"
URL = "/api/v1/collections"
GOLDEN = (
    "[Retrieved Documents]\n\n# Q4 Planning Notes (Oct 1, 2025)\n- Focus on EMEA expansion\n- Budget: $2M allocated\n\n"
    "# Email from Sarah (Oct 3)\nRe: Q4 priorities - confirming team assignments\n\n---\n\n"
    "What was discussed in the Q4 planning meeting?"
)


def docx_of(text: str) -> bytes:
    file = io.BytesIO()
    document = docx.Document()
    document.core_properties.title = ""
    document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


async def make(rest: Rest, name: str = "notes", **said: Any) -> None:
    answer = await rest.call("PUT", f"{URL}/{name}", said)
    assert answer.status_code == 201, answer.text


async def add(rest: Rest, collection: str = "notes", **said: Any) -> Any:
    return await rest.call("POST", f"{URL}/{collection}/documents", {"external_id": "a", "text": "x", **said})


async def upload(rest: Rest, body: bytes, kind: str, name: str, **query: Any) -> Any:
    return await rest.call(
        *("POST", f"{URL}/notes/documents"),
        headers={"content-type": kind},
        content=body,
        params={"external_id": name, **query},
    )


async def test_the_proposal_s_example_holds_from_ingestion_to_the_character(rest: Rest) -> None:
    await make(rest, "internal_docs")
    await make(rest, "mail")
    await make(rest, "elsewhere")
    notes = {"title": "Q4 Planning Notes", "date": "2025-10-01", "external_id": "q4"}
    await add(rest, "internal_docs", **notes, text="- Focus on EMEA expansion\n- Budget: $2M allocated")
    mail = "# Email from Sarah (Oct 3)\nRe: Q4 priorities - confirming team assignments"
    await add(rest, "mail", source="email", external_id="sarah-1", title="Email from Sarah", text=mail)
    await add(rest, "elsewhere", external_id="z", title="Q4 Planning Meeting", text=QUESTION)
    arguments = {"maxResults": 3, "sources": ["internal_docs", "email"]}
    context = [{"type": "text", "text": QUESTION}]
    answer = (await rest.invoke("document_retrieval", context, arguments, roles=[Role.INVOKER])).json()
    assert answer["content"] == [{"type": "text", "text": GOLDEN}]
    sources = answer["metadata"]["sources"]
    assert [one["title"] for one in sources] == ["Q4 Planning Notes", "Email from Sarah"]
    assert 1 >= sources[0]["relevance"] >= sources[1]["relevance"] > 0
    assert answer["metadata"]["engine"]["name"] == "embedded-hybrid"


async def test_a_collection_is_made_described_and_deleted(rest: Rest) -> None:
    await make(rest, description="Meetings.", access=["role:invoker"])
    again = await rest.call("PUT", f"{URL}/notes", {"description": "Minutes.", "access": ["*"]})
    assert again.status_code == 200
    await add(rest)
    found = (await rest.call("GET", f"{URL}/notes")).json()
    assert {
        name: found[name] for name in ("name", "description", "access", "documents", "chunks", "embedded")
    } == {
        "name": "notes",
        "description": "Minutes.",
        "access": ["*"],
        "documents": 1,
        "chunks": 1,
        "embedded": True,
    }
    assert found["sources"] == [{"source": "documents", "documents": 1}]
    assert [one["name"] for one in (await rest.call("GET", URL)).json()["items"]] == ["notes"]
    assert (await rest.call("DELETE", f"{URL}/notes")).status_code == 204
    for method in ("GET", "DELETE"):
        assert (await rest.call(method, f"{URL}/notes")).status_code == 404


async def test_the_same_document_again_changes_nothing(rest: Rest) -> None:
    await make(rest)
    answers = [await add(rest, text=text) for text in ("one", "one", "two")]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert [answer.json()["outcome"] for answer in answers] == ["created", "unchanged", "updated"]
    document = answers[0].json()["document"]
    path = f"{URL}/notes/documents/{document['id']}"
    found = (await rest.call("GET", path)).json()
    assert "text" not in found
    assert (found["title"], found["media_type"], found["access"]) == ("a", "text/markdown", [])
    assert (await rest.call("DELETE", path)).status_code == 204
    assert (await rest.call("GET", path)).status_code == 404


@pytest.mark.parametrize(
    ("body", "kind", "name", "title"),
    [
        (b"The zeppelin landed.", "text/plain", "a.txt", "a.txt"),
        (b"# Landing\n\nThe zeppelin landed.", "text/markdown; charset=utf-8", "a", "Landing"),
        (b"<title>Landing</title><p>The zeppelin landed.", "text/html", "a", "Landing"),
        (pdf_of("The zeppelin landed."), "application/pdf", "a", "a"),
        (pdf_of("The zeppelin landed."), "application/octet-stream", "a.pdf", "a.pdf"),
        (
            docx_of("The zeppelin landed."),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            *("a", "a"),
        ),
    ],
)
async def test_files_are_taken_as_they_are(rest: Rest, body: bytes, kind: str, name: str, title: str) -> None:
    await make(rest)
    answer = await upload(rest, body, kind, name, source="files", access=["role:invoker", "key:0a1b2c3d"])
    assert answer.status_code == 201, answer.text
    document = answer.json()["document"]
    assert (document["title"], document["source"]) == (title, "files")
    assert document["access"] == ["role:invoker", "key:0a1b2c3d"]
    found = (await rest.invoke("document_retrieval", ["zeppelins"], roles=[Role.INVOKER])).json()
    assert found["metadata"]["sources"][0]["title"] == title


async def test_large_documents_are_read_in_the_background(rest: Rest) -> None:
    await make(rest)
    answer = await upload(rest, b"The zeppelin landed. " * 4000, "text/plain", "long")
    assert answer.status_code == 202
    path = answer.headers["location"]
    assert (await rest.call("GET", path)).json()["state"] == "queued"
    while await rest.services.ingestion.work():
        pass
    done = (await rest.call("GET", path)).json()
    assert (done["state"], done["percent"], done["error"]) == ("done", 100, None)
    assert (await rest.call("GET", f"{URL}/notes/documents/{done['document']}")).status_code == 200
    listed = (await rest.call("GET", f"{URL}/notes/ingestions")).json()
    assert [one["id"] for one in listed["items"]] == [done["id"]]


async def test_documents_are_listed_page_by_page(rest: Rest) -> None:
    await make(rest)
    for number in range(5):
        await add(rest, external_id=f"d/{number}", source="wiki" if number % 2 else "mail")
    cursor, seen = "", []
    while cursor is not None:
        page = (
            await rest.call("GET", f"{URL}/notes/documents", params={"limit": 2, "cursor": cursor})
        ).json()
        seen += [(one["source"], one["external_id"]) for one in page["items"]]
        cursor = page["next"]
    assert seen == [("mail", "d/0"), ("mail", "d/2"), ("mail", "d/4"), ("wiki", "d/1"), ("wiki", "d/3")]
    only = (await rest.call("GET", f"{URL}/notes/documents", params={"source": "wiki"})).json()
    assert len(only["items"]) == 2


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"external_id": ""}, "/external_id"),
        ({"text": ""}, "/text"),
        ({"access": ["everyone"]}, "/access/0"),
        ({"source": "No Such"}, "/source"),
        ({"sources": "x"}, "/sources"),
        ({"media_type": "image/png"}, "/mediaType"),
    ],
)
async def test_a_wrong_document_is_refused_with_a_pointer(rest: Rest, said: Any, pointer: str) -> None:
    await make(rest)
    answer = await add(rest, **said)
    assert answer.status_code == 422
    assert answer.json()["pointer"] == pointer


async def test_other_types_and_missing_bodies_are_refused(rest: Rest) -> None:
    await make(rest)
    assert (await upload(rest, b"PNG", "image/png", "a")).status_code == 415
    assert (await upload(rest, b"", "text/plain", "a")).status_code == 422
    assert (await rest.call("POST", f"{URL}/notes/documents")).status_code == 422
    assert (await upload(rest, b"x", "text/plain", "")).status_code == 422
    assert (await rest.call("PUT", f"{URL}/Not A Name", {})).status_code == 422


async def test_uploads_are_bounded(database_url: str) -> None:
    async with open_rest(database_url, max_body_bytes=2000) as rest:
        await make(rest)
        assert (await upload(rest, b"x" * 2001, "text/plain", "a")).status_code == 413


async def test_collections_of_other_tenants_are_as_good_as_absent(rest: Rest) -> None:
    await make(rest)
    added = (await add(rest)).json()["document"]["id"]
    for path in (f"{URL}/notes", f"{URL}/notes/documents", f"{URL}/notes/documents/{added}"):
        assert (await rest.call("GET", path, tenant="system")).status_code == 404


async def test_japanese_is_found_by_its_words(rest: Rest) -> None:
    await make(rest)
    texts = {
        "budget": "今年の予算は取締役会で承認されました。",
        "weather": "明日の天気は晴れでしょう。",
    }
    for name, body in texts.items():
        await add(rest, external_id=name, title=name, text=body)
    question = "予算の承認"
    context = [{"type": "text", "text": question}]
    answer = (await rest.invoke("document_retrieval", context, roles=[Role.INVOKER])).json()
    assert answer["metadata"]["sources"][0]["title"] == "budget"
    assert texts["budget"] in answer["content"][0]["text"]
