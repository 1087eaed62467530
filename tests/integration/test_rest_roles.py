"""Every role at every route: the matrix is made from OpenAPI, so that no route can be forgotten."""

from typing import Any

import pytest

from app.core.access import SYSTEM_TENANT, Role
from tests.integration.rest_app import Rest, document_of, open_rest

pytestmark = pytest.mark.in_turn("database_url")

LISTERS = {Role.OPERATOR, Role.AUDITOR, Role.ERASER}
READERS = {*LISTERS, Role.RESTORER}
CUSTODIAN, OPERATOR, AUDITOR, ERASER = {Role.KEY_CUSTODIAN}, {Role.OPERATOR}, {Role.AUDITOR}, {Role.ERASER}
EVERYBODY: set[Role] | None = None

ALLOWED: dict[str, set[Role] | None] = {
    "GET /livez": EVERYBODY,
    "GET /readyz": EVERYBODY,
    "GET /metrics": EVERYBODY,
    "GET /api/v1/middleware": {Role.INVOKER, Role.RESTORER},
    "POST /api/v1/middleware/{name}/invoke": {Role.INVOKER},
    "POST /api/v1/middleware/pii_restoration/stream": {Role.INVOKER},
    "POST /api/v1/pii/explain": {Role.INVOKER},
    "GET /api/v1/vault/scopes": LISTERS,
    "GET /api/v1/vault/scopes/{scope}": {*READERS, Role.INVOKER},
    "PATCH /api/v1/vault/scopes/{scope}": {Role.OPERATOR, Role.ERASER},
    "DELETE /api/v1/vault/scopes/{scope}": ERASER,
    "GET /api/v1/vault/scopes/{scope}/entries": READERS,
    "DELETE /api/v1/vault/scopes/{scope}/entries/{handle}": ERASER,
    "POST /api/v1/vault/scopes/{scope}/entries/{handle}/reveal": {Role.RESTORER},
    "POST /api/v1/vault/occurrences": ERASER,
    "POST /api/v1/vault/erasures": ERASER,
    "POST /api/v1/subjects/search": ERASER,
    "POST /api/v1/erasures": ERASER,
    "GET /api/v1/erasures/{erasure}": {Role.ERASER, Role.AUDITOR},
    "GET /api/v1/audit/events": AUDITOR,
    "GET /api/v1/audit/events/{event}": AUDITOR,
    "GET /api/v1/audit/export": AUDITOR,
    "GET /api/v1/audit/counts": AUDITOR,
    "GET /api/v1/audit/checkpoint": AUDITOR,
    "GET /api/v1/audit/keys": AUDITOR,
    "GET /api/v1/audit/proofs": AUDITOR,
    "POST /api/v1/audit/verify": AUDITOR,
    "POST /api/v1/audit/events/{event}/content": set(),
    "POST /api/v1/audit/events/{event}/end-user": set(),
    "GET /api/v1/keys": CUSTODIAN,
    "POST /api/v1/keys": CUSTODIAN,
    "GET /api/v1/keys/usage": CUSTODIAN,
    "GET /api/v1/keys/identities": CUSTODIAN,
    "GET /api/v1/keys/{key_id}": CUSTODIAN,
    "DELETE /api/v1/keys/{key_id}": CUSTODIAN,
    "POST /api/v1/keys/{key_id}/rotate": CUSTODIAN,
    "POST /api/v1/keys/{key_id}/approve": CUSTODIAN,
    "GET /api/v1/tenants": set(),
    "POST /api/v1/tenants": set(),
    "GET /api/v1/tenants/{tenant}": set(),
    "PATCH /api/v1/tenants/{tenant}": set(),
    "DELETE /api/v1/tenants/{tenant}": set(),
    "GET /api/v1/issuers": set(),
    "POST /api/v1/issuers": set(),
    "POST /api/v1/issuers/explain": CUSTODIAN,
    "GET /api/v1/issuers/{issuer}": set(),
    "PUT /api/v1/issuers/{issuer}": set(),
    "DELETE /api/v1/issuers/{issuer}": set(),
    "POST /api/v1/issuers/{issuer}/test": set(),
    "GET /api/v1/policies": OPERATOR,
    "PUT /api/v1/policies": OPERATOR,
    "PATCH /api/v1/policies": OPERATOR,
    "GET /api/v1/policies/versions": OPERATOR,
    "GET /api/v1/policies/difference": OPERATOR,
    "POST /api/v1/policies/preview": OPERATOR,
    "GET /api/v1/pipelines": OPERATOR,
    "GET /api/v1/pipelines/{name}": OPERATOR,
    "PUT /api/v1/pipelines/{name}": OPERATOR,
    "DELETE /api/v1/pipelines/{name}": OPERATOR,
    "GET /api/v1/pipelines/{name}/versions": OPERATOR,
    "POST /api/v1/pipelines/{name}/dry-run": {Role.INVOKER, Role.RESTORER},
    "GET /api/v1/providers": OPERATOR,
    "GET /api/v1/providers/{name}": OPERATOR,
    "PUT /api/v1/providers/{name}": OPERATOR,
    "DELETE /api/v1/providers/{name}": OPERATOR,
    "POST /api/v1/providers/{name}/test": OPERATOR,
    "GET /api/v1/gateway/usage": AUDITOR,
    "GET /api/v1/gateway/under-way": {Role.OPERATOR, Role.AUDITOR},
    "GET /api/v1/gateway/clients/{key_id}": OPERATOR,
    "GET /api/v1/clients/{key_id}/catalog": OPERATOR,
    "GET /api/v1/vault/key-ring": set(),
    "GET /api/v1/servers": OPERATOR,
    "POST /api/v1/servers": OPERATOR,
    "GET /api/v1/servers/{name}": OPERATOR,
    "PUT /api/v1/servers/{name}": OPERATOR,
    "DELETE /api/v1/servers/{name}": OPERATOR,
    "POST /api/v1/servers/{name}/test": OPERATOR,
    "POST /api/v1/servers/{name}/approve": OPERATOR,
    "POST /api/v1/servers/{name}/pause": OPERATOR,
    "POST /api/v1/servers/{name}/resume": OPERATOR,
    "GET /api/v1/server-grants": {Role.INVOKER, Role.OPERATOR},
    "POST /api/v1/server-grants": {Role.INVOKER},
    "POST /api/v1/server-grants/confirm": {Role.INVOKER},
    "DELETE /api/v1/server-grants/{server}": {Role.INVOKER, Role.OPERATOR},
    "GET /api/v1/groups": OPERATOR,
    "GET /api/v1/groups/export": OPERATOR,
    "POST /api/v1/groups/import": OPERATOR,
    "GET /api/v1/groups/{name}": OPERATOR,
    "PUT /api/v1/groups/{name}": OPERATOR,
    "PATCH /api/v1/groups/{name}/members": OPERATOR,
    "DELETE /api/v1/groups/{name}": OPERATOR,
    "GET /api/v1/concerns": OPERATOR,
    "GET /api/v1/concerns/{name}": OPERATOR,
    "PUT /api/v1/concerns/{name}": OPERATOR,
    "DELETE /api/v1/concerns/{name}": OPERATOR,
    "GET /api/v1/concerns/preferences/{key_id}": OPERATOR,
    "PUT /api/v1/concerns/preferences/{key_id}": OPERATOR,
    "GET /api/v1/concern-mappings": OPERATOR,
    "PUT /api/v1/concern-mappings": OPERATOR,
    "GET /api/v1/concern-mappings/{kind}/{name}": OPERATOR,
    "DELETE /api/v1/concern-mappings/{kind}/{name}": OPERATOR,
    "GET /api/v1/collections": OPERATOR,
    "POST /api/v1/collections/search": OPERATOR,
    "GET /api/v1/collections/{name}": OPERATOR,
    "PUT /api/v1/collections/{name}": OPERATOR,
    "DELETE /api/v1/collections/{name}": OPERATOR,
    "GET /api/v1/collections/{name}/documents": OPERATOR,
    "POST /api/v1/collections/{name}/documents": OPERATOR,
    "GET /api/v1/collections/{name}/documents/{document}": OPERATOR,
    "DELETE /api/v1/collections/{name}/documents/{document}": OPERATOR,
    "GET /api/v1/collections/{name}/ingestions": OPERATOR,
    "GET /api/v1/collections/{name}/ingestions/{ingestion}": OPERATOR,
    "GET /api/v1/tool-descriptions": OPERATOR,
    "GET /api/v1/tool-descriptions/{name}": OPERATOR,
    "PUT /api/v1/tool-descriptions/{name}": OPERATOR,
    "DELETE /api/v1/tool-descriptions/{name}": OPERATOR,
}
"""Who may pass, in an ordinary tenant; written by hand, on purpose."""

SYSTEM_ONLY = {name for name in ALLOWED if "/tenants" in name}
NO_CREDENTIAL = {name for name, roles in ALLOWED.items() if roles is EVERYBODY}


def requests_of(rest: Rest) -> dict[str, dict[str, Any]]:
    """Return a valid request for every operation of the OpenAPI document."""
    found = {}
    for path, operations in document_of(rest)["paths"].items():
        for method, operation in operations.items():
            filled = path
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path":
                    example = (
                        rest.tenant if parameter["name"] == "tenant" else parameter["schema"]["examples"][0]
                    )
                    filled = filled.replace(f"{{{parameter['name']}}}", example)
            found[f"{method.upper()} {path}"] = {"method": method.upper(), "path": filled} | _body(
                operation, rest
            )
    return found


def _body(operation: dict[str, Any], rest: Rest) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    if "application/x-ndjson" in content:
        example = content["application/x-ndjson"]["examples"]["lines"]["value"]
        return {"content": example.encode(), "headers": {"content-type": "application/x-ndjson"}}
    if "application/json" not in content:
        return {}
    media = content["application/json"]
    if "examples" in media:
        return {"body": next(iter(media["examples"].values()))["value"]}
    schema = media["schema"]
    for option in schema.get("anyOf", [schema]):
        if "$ref" in option:
            name = option["$ref"].rpartition("/")[2]
            return {"body": document_of(rest)["components"]["schemas"][name]["examples"][0]}
    raise AssertionError(f"{operation['operationId']} has no example of a body")


@pytest.fixture
async def rest(database_url: str) -> Any:
    async with open_rest(database_url) as opened:
        yield opened


async def test_the_matrix_names_exactly_the_routes_that_there_are(rest: Rest) -> None:
    assert set(requests_of(rest)) == set(ALLOWED)


@pytest.mark.parametrize("role", list(Role))
async def test_a_role_passes_where_it_may_and_is_refused_on_record_everywhere_else(
    rest: Rest, role: Role
) -> None:
    refused = set()
    for name, request in requests_of(rest).items():
        answer = await rest.call(roles=[role], **request)
        allowed = ALLOWED[name]
        if allowed is EVERYBODY or role in allowed:
            assert answer.status_code not in {401, 403}, f"{role} at {name}: {answer.text}"
        else:
            assert answer.status_code == 403, f"{role} at {name}: {answer.status_code}"
            assert answer.json()["code"] == "forbidden"
            refused.add(answer.headers["x-request-id"])
    recorded = await rest.call("GET", "/api/v1/audit/events?outcome=refused&limit=1000", roles=[Role.AUDITOR])
    assert refused <= {event["request_id"] for event in recorded.json()["items"]}


async def test_of_a_caller_without_the_role_no_body_is_parsed(rest: Rest) -> None:
    """No such body is valid, so that a refusal for the role's sake alone shows that nobody looked at it."""
    broken = {"content": b'{"a":', "headers": {"content-type": "application/json"}}
    for name, request in requests_of(rest).items():
        allowed = ALLOWED[name]
        if request["method"] == "GET" or allowed is EVERYBODY:
            continue
        sent = {"method": request["method"], "path": request["path"], **broken}
        if "headers" in request:
            sent["headers"] = request["headers"]
        answer = await rest.call(roles=AUDITOR, **sent)
        if name == "PUT /api/v1/concerns/preferences/{key_id}":
            assert answer.status_code == 400, "callers of every role may set their own preferences"
        elif allowed and Role.AUDITOR in allowed:
            assert answer.status_code == 400, name
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), name
        if allowed and "application/x-ndjson" not in str(request.get("headers")):
            seen = await rest.call(roles=[*allowed], **sent)
            assert seen.status_code in {400, 415}, f"{allowed} at {name}: {seen.text}"


@pytest.mark.parametrize("role", list(Role))
async def test_in_the_tenant_system_only_operators_administer_tenants(rest: Rest, role: Role) -> None:
    for name, request in requests_of(rest).items():
        if name in SYSTEM_ONLY:
            answer = await rest.call(roles=[role], tenant=SYSTEM_TENANT, **request)
            passes = answer.status_code not in {401, 403}
            assert passes == (role is Role.OPERATOR), f"{role} at {name}: {answer.text}"


async def test_without_a_valid_key_only_probes_and_metrics_answer(rest: Rest) -> None:
    bearers = [None, "Bearer slc_00000000_" + "A" * 43, "Bearer x", "Basic eDp5", "Bearer "]
    for name, request in requests_of(rest).items():
        for bearer in bearers:
            headers = dict(request.get("headers", {}))
            if bearer is not None:
                headers["authorization"] = bearer
            options: dict[str, Any] = {"content": request["content"]} if "content" in request else {}
            if "body" in request:
                options["json"] = request["body"]
            answer = await rest.http.request(request["method"], request["path"], headers=headers, **options)
            if name in NO_CREDENTIAL:
                assert answer.status_code != 401
            else:
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), name
                assert "Bearer" in answer.headers["www-authenticate"]


async def test_originals_need_the_restorer_and_so_does_restoring_from_a_scope(rest: Rest) -> None:
    made = await rest.invoke("pii_redaction", [{"type": "text", "text": "Jane Smith"}], roles=["invoker"])
    scope = made.json()["metadata"]["scope"]
    entries = f"/api/v1/vault/scopes/{scope}/entries?originals=true"
    line = f'{{"arguments":{{"scope":"{scope}"}}}}\n{{"text":"[PERSON_1]"}}\n'.encode()
    for role in Role:
        may = role is Role.RESTORER
        seen = await rest.call("GET", entries, roles=[role])
        assert seen.status_code == (200 if may else 403), role
        assert ("Jane Smith" in seen.text) == may
        restored = await rest.invoke(
            "pii_restoration", [{"type": "text", "text": "[PERSON_1]"}], {"scope": scope}, roles=[role]
        )
        assert restored.status_code == (200 if may else 403), role
        assert ("Jane Smith" in restored.text) == may
        streamed = await rest.call(
            "POST",
            "/api/v1/middleware/pii_restoration/stream",
            content=line,
            headers={"content-type": "application/x-ndjson"},
            roles=[role],
        )
        assert streamed.status_code == (200 if may else 403), role
        assert ("Jane Smith" in streamed.text) == may
        mapped = await rest.invoke(
            "pii_redaction", [{"type": "text", "text": "Jane Smith"}], {"returnMapping": True}, roles=[role]
        )
        assert mapped.status_code == (200 if may else 403), role


async def test_a_refused_union_needs_an_override_that_is_recorded(rest: Rest) -> None:
    body = {"roles": ["operator", "restorer"]}
    refused = await rest.call("POST", "/api/v1/keys", body, roles=["key-custodian"])
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/roles")
    made = await rest.call("POST", "/api/v1/keys", {**body, "override_unions": True}, roles=["key-custodian"])
    assert (made.status_code, made.json()["roles"]) == (202, []), "both wait for a second person"
    events = await rest.call("GET", "/api/v1/audit/events?action=key.create", roles=["auditor"])
    (details,) = [
        event["details"]
        for event in events.json()["items"]
        if event["details"].get("key") == made.json()["id"]
    ]
    assert (details["granted"], details["override_unions"]) == ("operator,restorer", True)
