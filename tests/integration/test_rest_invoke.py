"""The REST door to the middlewares: exact JSON through, documented examples, limits, refusals on record."""

import asyncio
import json
from typing import Any

import pytest

from app.api.surface import OPENAPI_PATH
from app.core.access import SYSTEM_TENANT
from app.core.errors import all_errors
from tests.integration.rest_app import Rest, open_rest

INVOKE = "/api/v1/middleware/{}/invoke"
ODD = (
    '{"context":[{"z":123456789012345678901234567890,"type":"text","text":"a","a":null,"f":-0.0,'
    '"_meta":{"b":[],"a":{}}},{"type":"hologram","n":1e2}]}'
)


@pytest.fixture
async def rest(sqlite_database_url: str) -> Any:
    async with open_rest(sqlite_database_url) as opened:
        yield opened


async def test_middlewares_are_listed_with_their_schemas(rest: Rest) -> None:
    answer = await rest.call("GET", "/api/v1/middleware", roles=["invoker"])
    listed = {entry["name"]: entry for entry in answer.json()["middleware"]}
    assert set(answer.json()) == {"middleware"}
    assert list(listed) == sorted(listed)
    assert {"pii_redaction", "pii_restoration", "timestamp_injector", "audit_logging"} <= set(listed)
    assert listed["pii_redaction"]["phase"] == "outbound"
    assert listed["pii_redaction"]["inputSchema"]["additionalProperties"] is False


async def test_values_pass_through_exactly_and_in_order(rest: Rest) -> None:
    answer = await rest.call(
        "POST",
        INVOKE.format("pii_redaction"),
        content=ODD.encode(),
        headers={"content-type": "application/json"},
        roles=["invoker"],
    )
    assert answer.status_code == 200
    expected = ODD.removeprefix('{"context":').removesuffix("}").replace("1e2", "100.0")
    assert answer.text.startswith('{"content":' + expected + ',"metadata":{')
    assert answer.headers["content-type"] == "application/json"


async def test_redaction_and_restoration_are_inverse(rest: Rest) -> None:
    context = [
        {"role": "user", "content": "I am Jane Smith, 123-45-6789."},
        {"role": "assistant", "content": []},
    ]
    redacted = await rest.invoke(
        "pii_redaction", context, {"scope": "a/b c".replace(" ", "_")}, roles=["invoker"]
    )
    assert "Jane" not in redacted.text and "6789" not in redacted.text
    assert redacted.json()["metadata"]["scope"] == "a/b_c"
    restored = await rest.invoke(
        "pii_restoration", redacted.json()["content"], {"scope": "a/b_c"}, roles=["restorer"]
    )
    assert restored.json()["content"] == context
    scope = await rest.call("GET", "/api/v1/vault/scopes/a/b_c", roles=["operator"])
    assert scope.json()["counts"] == {"PERSON": 1, "SSN": 1}


async def test_the_examples_of_the_document_run(rest: Rest) -> None:
    document = (await rest.http.get(OPENAPI_PATH)).json()
    pipeline = {"name": "to_model", "steps": [{"name": "pii_redaction"}]}
    assert (await rest.call("PUT", "/api/v1/pipelines/to_model", pipeline)).status_code == 200
    assert (await rest.call("PUT", "/api/v1/collections/pii_redaction", {})).status_code in {200, 201}
    ran = 0
    for path, operations in document["paths"].items():
        for kind, media in operations.get("post", {}).get("requestBody", {}).get("content", {}).items():
            for example in media.get("examples", {}).values():
                value = example["value"]
                body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
                filled = path.replace("{name}", "to_model" if "/pipelines/" in path else "pii_redaction")
                tenant = SYSTEM_TENANT if path == "/api/v1/issuers" else None
                answer = await rest.call(
                    "POST", filled, tenant=tenant, content=body, headers={"content-type": kind}
                )
                assert answer.status_code in {200, 201}, (path, answer.text)
                if tenant is not None:  # other tests list all issuers of the service
                    gone = f"{path}/{answer.json()['id']}?expected_version=1"
                    assert (await rest.call("DELETE", gone, tenant=tenant)).status_code == 204
                ran += 1
    assert ran >= 4


async def test_the_document_describes_every_operation_and_its_problems(rest: Rest) -> None:
    document = (await rest.http.get(OPENAPI_PATH)).json()
    codes = set(document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])
    assert codes == {error.code for error in all_errors()}
    assert "HTTPValidationError" not in json.dumps(document)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            assert "application/problem+json" in operation["responses"]["default"]["content"]
            if path.startswith("/api/"):
                assert operation["security"] == [{"HTTPBearer": []}]
                assert operation["description"], (method, path)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, "/context"),
        ({"context": {}}, "/context"),
        ({"context": [], "arguments": []}, "/arguments"),
        ({"context": [], "arguments": None}, "/arguments"),
        ({"context": [], "argument": {}}, ""),
        ({"context": [], "arguments": {"Jane-Canary": 1}}, None),
        ({"context": [], "arguments": {"mode": "Jane-Canary"}}, None),
        ({"context": [{"type": "text", "text": 1}]}, None),
    ],
)
async def test_a_wrong_request_is_located_without_repeating_it(
    rest: Rest, body: Any, pointer: str | None
) -> None:
    answer = await rest.call("POST", INVOKE.format("pii_redaction"), body, roles=["invoker"])
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "invalid_arguments"
    assert problem["pointer"] == pointer if pointer is not None else problem["pointer"].startswith("/")
    assert "Jane-Canary" not in answer.text


async def test_an_unknown_middleware_is_not_found_and_on_record(rest: Rest) -> None:
    answer = await rest.call("POST", INVOKE.format("nothing_here"), {"context": []}, roles=["invoker"])
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    request_id = answer.headers["x-request-id"]
    found = await rest.call("GET", f"/api/v1/audit/events?request_id={request_id}", roles=["auditor"])
    (event,) = found.json()["items"]
    assert (event["outcome"], event["error_code"]) == ("refused", "not_found")


async def test_a_policy_decides_what_may_run_and_how(rest: Rest) -> None:
    policy = {
        "allowed_middlewares": ["pii_redaction"],
        "fixed_arguments": {"pii_redaction": {"mode": "mask"}},
    }
    stored = await rest.put_policy(policy, roles=["operator"])
    assert (stored.status_code, stored.json()["version"]) == (200, 1)
    listed = await rest.call("GET", "/api/v1/middleware", roles=["invoker"])
    assert [entry["name"] for entry in listed.json()["middleware"]] == ["pii_redaction"]
    context = [{"type": "text", "text": "Jane Smith"}]
    masked = await rest.invoke("pii_redaction", context, roles=["invoker"])
    assert masked.json()["content"] == [{"type": "text", "text": "**********"}]
    for name, arguments in (("timestamp_injector", {}), ("pii_redaction", {"mode": "handle"})):
        refused = await rest.invoke(name, context, arguments, roles=["invoker"])
        assert (refused.status_code, refused.json()["code"]) == (403, "blocked_by_policy")


@pytest.mark.parametrize(
    "name", ["requests_per_second", "burst", "in_flight", "max_blocks", "max_depth", "deadline_ms"]
)
@pytest.mark.parametrize("value", [0, -1, 10**400, 1e308, 1e-300])
async def test_limits_that_no_clock_or_float_could_hold_are_refused(
    rest: Rest, name: str, value: float
) -> None:
    answer = await rest.put_policy({"limits": {name: value}}, roles=["operator"])
    assert (answer.status_code, answer.json()["pointer"]) == (422, f"/limits/{name}")


async def test_a_tenant_over_its_rate_is_told_when_to_come_back(rest: Rest) -> None:
    policy = {"limits": {"requests_per_second": 0.5, "burst": 2}}
    assert (await rest.put_policy(policy, roles=["operator"])).status_code == 200
    context = [{"type": "text", "text": "x"}]
    answers = [await rest.invoke("timestamp_injector", context, roles=["invoker"]) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].json()["code"] == "rate_limited"
    assert 1 <= int(answers[2].headers["retry-after"]) <= 2


async def test_sixty_four_requests_at_once_all_get_their_own_answer(rest: Rest) -> None:
    await rest.key("invoker")

    async def one(number: int) -> bool:
        answer = await rest.invoke(
            "timestamp_injector", [{"type": "text", "text": f"n{number}"}], roles=["invoker"]
        )
        return answer.status_code == 200 and answer.json()["content"][0]["text"].endswith(f"n{number}")

    assert all(await asyncio.gather(*(one(number) for number in range(64))))


async def test_more_blocks_than_the_policy_allows_are_too_large(rest: Rest) -> None:
    answer = await rest.invoke(
        "timestamp_injector", [{"type": "text", "text": "x"}] * 4097, roles=["invoker"]
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_invocations_are_counted_by_name_and_outcome(rest: Rest) -> None:
    await rest.invoke("timestamp_injector", [{"type": "text", "text": "x"}], roles=["invoker"])
    await rest.invoke("Jane_canary".lower(), [], roles=["invoker"])
    text = (await rest.http.get("/metrics")).text
    assert 'sluice_invocations_total{middleware="timestamp_injector",outcome="ok"} 1.0' in text
    assert 'route="/api/v1/middleware/{name}/invoke",status="200"' in text
    assert "jane_canary" not in text
