"""``POST /api/v1/pii/explain``: offsets and reasons, under the tenant's policy, on record, and nothing stored."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.rest_app import Rest, open_rest

TEXT = "Mail jane@example.com, SSN 219-09-9999."


@pytest.fixture
async def rest(sqlite_database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(sqlite_database_url) as opened:
        yield opened


async def test_an_explanation_holds_offsets_and_reasons_and_no_text(rest: Rest) -> None:
    answered = await rest.call("POST", "/api/v1/pii/explain", {"text": TEXT}, roles=["invoker"])

    assert answered.status_code == 200
    found = answered.json()
    assert [(one["type"], TEXT[one["start"] : one["end"]]) for one in found["spans"]] == [
        ("email", "jane@example.com"),
        ("ssn", "219-09-9999"),
    ]
    assert [one["recognizer"] for one in found["candidates"]] == ["FakeRecognizer"] * 2
    assert found["candidates"][0]["reason"].endswith(rest.tenant)
    assert "jane@example.com" not in answered.text


async def test_the_record_has_counts_and_no_content(rest: Rest) -> None:
    await rest.call("POST", "/api/v1/pii/explain", {"text": TEXT}, roles=["invoker"])

    listed = await rest.call("GET", "/api/v1/audit/events?action=pii.explain", roles=["auditor"])

    (event,) = listed.json()["items"]
    assert (event["outcome"], event["counts"]) == ("ok", {"EMAIL": 1, "SSN": 1})
    assert "jane" not in listed.text


async def test_the_policy_holds_for_explanations_too(rest: Rest) -> None:
    policy = {"fixed_arguments": {"pii_redaction": {"exclude": ["ssn"]}}}
    assert (await rest.put_policy(policy)).status_code == 200

    found = await rest.call("POST", "/api/v1/pii/explain", {"text": TEXT}, roles=["invoker"])
    refused = await rest.call(
        "POST", "/api/v1/pii/explain", {"text": TEXT, "arguments": {"exclude": []}}, roles=["invoker"]
    )

    assert [one["type"] for one in found.json()["spans"]] == ["email"]
    assert (refused.status_code, refused.json()["code"]) == (403, "blocked_by_policy")


async def test_a_faulty_request_names_its_fault(rest: Rest) -> None:
    unknown = await rest.call(
        "POST", "/api/v1/pii/explain", {"text": "x", "arguments": {"entities": ["nose"]}}, roles=["invoker"]
    )
    missing = await rest.call("POST", "/api/v1/pii/explain", {}, roles=["invoker"])

    assert (unknown.status_code, unknown.json()["pointer"]) == (422, "/arguments/entities/0")
    assert missing.status_code == 422 and missing.json()["pointer"] == "/text"
