"""The doors' paths, headers, errors and lists of models, for each kind of provider."""

import json

import pytest

from app.core.errors import InternalError, UpstreamUnavailableError, all_errors
from app.core.gateway.kinds import KINDS, ModelPage, NotCoveredError
from app.core.gateway.provider_kind import STATUSES
from tests.unit.core.gateway.bodies import CHAT, LEGACY, MESSAGES, RESPONSES

SERVED = [
    ("openai", "POST", "/chat/completions", "chat.completions", {}, True),
    ("openai", "POST", "/completions", "completions", {}, True),
    ("openai", "POST", "/responses", "responses.create", {}, True),
    ("openai", "GET", "/responses/resp_1", "responses.get", {"response": "resp_1"}, True),
    ("openai", "DELETE", "/responses/resp_1", "responses.delete", {"response": "resp_1"}, False),
    ("openai", "POST", "/responses/resp_1/cancel", "responses.cancel", {"response": "resp_1"}, True),
    ("openai", "GET", "/responses/resp_1/input_items", "responses.input_items", {"response": "resp_1"}, True),
    ("openai", "POST", "/conversations", "conversations.create", {}, True),
    ("openai", "GET", "/conversations/conv_1", "conversations.get", {"conversation": "conv_1"}, True),
    ("openai", "POST", "/conversations/conv_1", "conversations.update", {"conversation": "conv_1"}, True),
    ("openai", "DELETE", "/conversations/conv_1", "conversations.delete", {"conversation": "conv_1"}, False),
    ("openai", "POST", "/conversations/c/items", "conversations.items.create", {"conversation": "c"}, True),
    ("openai", "GET", "/conversations/c/items", "conversations.items", {"conversation": "c"}, True),
    (
        "openai",
        "GET",
        "/conversations/c/items/i",
        "conversations.items.get",
        {"conversation": "c", "item": "i"},
        True,
    ),
    ("openai", "POST", "/embeddings", "embeddings", {}, False),
    ("openai", "POST", "/moderations", "moderations", {}, False),
    ("openai", "GET", "/models", "models", {}, False),
    ("openai", "GET", "/models/org/model-1", "models.get", {"model": "org/model-1"}, False),
    ("anthropic", "POST", "/v1/messages", "messages", {}, True),
    ("anthropic", "POST", "/v1/messages/count_tokens", "messages.count_tokens", {}, False),
    ("anthropic", "GET", "/v1/models", "models", {}, False),
    ("anthropic", "GET", "/v1/models/claude-opus", "models.get", {"model": "claude-opus"}, False),
]


@pytest.mark.parametrize(("kind", "method", "path", "name", "ids", "answers"), SERVED)
def test_what_is_served(kind, method, path, name, ids, answers):
    operation = KINDS[kind].find(method, path)
    assert (operation.name, operation.path, operation.ids, operation.answers) == (name, path, ids, answers)
    assert operation.answers <= (operation.family is not None)


@pytest.mark.parametrize(
    ("kind", "method", "path", "named"),
    [
        *(("openai", "POST", f"/{name}", name) for name in ("realtime", "files", "batches")),
        ("openai", "POST", "/audio/speech", "audio"),
        ("openai", "POST", "/images/edits", "images"),
        ("openai", "GET", "/chat/completions", "chat/completions"),
        ("openai", "POST", "/responses/compact", "responses/compact"),
        ("openai", "GET", "/vector_stores/vs_1/files", "vector_stores"),
        ("anthropic", "POST", "/v1/messages/batches", "messages/batches"),
        ("anthropic", "POST", "/v1/messages/batches/msgbatch_1/cancel", "messages/batches"),
        ("anthropic", "GET", "/v1/files/file_1", "files"),
        ("anthropic", "POST", "/v1/complete", "complete"),
        ("openai", "GET", "/Ottilie/Wundersam", "This path"),
        ("openai", "POST", "/responses/Ottilie Wundersam/cancel", "This path"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(kind, method, path, named):
    with pytest.raises(NotCoveredError) as refusal:
        KINDS[kind].find(method, path)
    assert (refusal.value.status, refusal.value.code) == (404, "not_covered")
    assert refusal.value.message == f"{named} is not covered: it would pass unredacted."


@pytest.mark.parametrize(("kind", "path"), [("openai", "/responses"), ("anthropic", "/v1/messages")])
def test_a_websocket_is_refused(kind, path):
    with pytest.raises(NotCoveredError) as refusal:
        KINDS[kind].find("GET", path, upgrade=True)
    assert refusal.value.status == 426
    with pytest.raises(NotCoveredError) as refusal:
        KINDS[kind].find("GET", "/realtime", upgrade=True)
    assert refusal.value.status == 404
    with pytest.raises(NotCoveredError):
        KINDS["openai"].find("GET", "/models", upgrade=True)


def test_a_path_that_has_another_method_says_so():
    with pytest.raises(NotCoveredError) as refusal:
        KINDS["openai"].find("PUT", "/embeddings")
    assert refusal.value.status == 405


@pytest.mark.parametrize(
    ("kind", "path", "body"),
    [
        ("openai", "/chat/completions", CHAT),
        ("openai", "/completions", LEGACY),
        ("openai", "/responses", RESPONSES),
        ("openai", "/conversations", {"items": [{"role": "user", "content": "hello"}]}),
        (
            "openai",
            "/conversations/c/items",
            {"items": [{"type": "message", "role": "user", "content": "hello"}]},
        ),
        ("openai", "/embeddings", {"model": "e", "input": ["hello"]}),
        ("openai", "/moderations", {"input": [{"type": "text", "text": "hello"}]}),
        ("openai", "/moderations", {"input": "hello"}),
        ("anthropic", "/v1/messages", MESSAGES),
        ("anthropic", "/v1/messages/count_tokens", MESSAGES),
    ],
)
def test_requests_of_every_operation_are_read(kind, path, body):
    operation = KINDS[kind].find("POST", path)
    request = operation.family.request(operation, json.dumps(body).encode())
    assert "hello" in [leaf.leaf.text for leaf in request.leaves()]
    assert request.unscanned.get("unknown", 0) <= (1 if body is RESPONSES else 0)


def test_items_of_a_conversation_are_answers_too():
    operation = KINDS["openai"].find("GET", "/conversations/c/items")
    message = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "to [PERSON_1]"}],
    }
    listed = operation.family.answer(operation, json.dumps({"object": "list", "data": [message]}).encode())
    assert "to [PERSON_1]" in [text.text for text in listed.texts]
    single = KINDS["openai"].find("GET", "/conversations/c/items/i")
    read = single.family.answer(single, json.dumps({**message, "id": "i"}).encode())
    assert "to [PERSON_1]" in [text.text for text in read.texts]


@pytest.mark.parametrize("body", [b"<html>", b'{"a": "\xff"}', b""])
def test_an_answer_that_is_no_json_is_not_passed_on(body):
    operation = KINDS["openai"].find("POST", "/responses")
    with pytest.raises(UpstreamUnavailableError):
        operation.family.answer(operation, body)


def test_half_a_character_of_a_model_passes_as_it_came():
    operation = KINDS["openai"].find("POST", "/responses")
    body = '{"output": [], "a": "\\ud83d", "b": "\ufffd"}'.encode()
    assert operation.family.answer(operation, body).rewritten(lambda _: None).to_bytes() == body


def test_what_has_no_stream_says_so():
    operation = KINDS["openai"].find("POST", "/embeddings")
    with pytest.raises(NotCoveredError):
        operation.family.stream(operation, lambda _: None)


class _OtherError(InternalError):
    code = "another_code"


@pytest.mark.parametrize("kind", KINDS)
def test_our_errors_have_the_provider_s_shape(kind):
    for error in all_errors():
        refusal = KINDS[kind].fault(error("Said plainly."))
        body = json.loads(refusal.body)
        assert body["error"]["code"] == f"sluice_{error.code}" and body["error"]["message"] == "Said plainly."
        assert body["error"]["type"] and refusal.status == STATUSES[error.code] >= 400
    assert KINDS[kind].fault(_OtherError("x")).status == 500
    assert KINDS[kind].error("not_covered", "x", status=426).status == 426


def test_each_family_s_own_members_of_an_error():
    assert json.loads(KINDS["openai"].error("forbidden", "m").body) == {
        "error": {"message": "m", "type": "permission_error", "param": None, "code": "sluice_forbidden"}
    }
    assert json.loads(KINDS["anthropic"].error("rate_limited", "m").body) == {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "m", "code": "sluice_rate_limited"},
        "request_id": None,
    }


def test_headers_pass_by_a_list():
    sent = [
        ("Authorization", "Bearer k"),
        ("Cookie", "c"),
        ("X-Sluice-Scope", "s"),
        ("X-Forwarded-For", "1.1.1.1"),
        ("X-Api-Key", "k"),
        ("OpenAI-Organization", "o"),
        ("X-Stainless-Lang", "python"),
        ("anthropic-beta", "b"),
        ("Content-Type", "application/json"),
        ("X-Other", "o"),
    ]
    shown = {kind: [name for name, _ in rules.headers.request(sent)] for kind, rules in KINDS.items()}
    assert shown == {
        "openai": ["OpenAI-Organization", "X-Stainless-Lang", "Content-Type"],
        "anthropic": ["X-Stainless-Lang", "anthropic-beta", "Content-Type"],
    }
    answer = [("X-Request-Id", "r"), ("Set-Cookie", "c"), ("x-ratelimit-limit", "1"), ("Retry-After", "2")]
    assert [name for name, _ in KINDS["openai"].headers.answer(answer)] == [
        "X-Request-Id",
        "x-ratelimit-limit",
        "Retry-After",
    ]
    assert KINDS["anthropic"].headers.answer(answer) == [("Retry-After", "2")]


def test_parameters_pass_by_a_list_and_as_words():
    pairs = [("after", "msg_1"), ("q", "x"), ("limit", "20"), ("order", "Ottilie Wundersam")]
    assert KINDS["openai"].headers.query(pairs) == [("after", "msg_1"), ("limit", "20")]
    assert KINDS["anthropic"].headers.query([("beta", "true"), ("key", "k")]) == [("beta", "true")]


def test_credentials():
    assert KINDS["openai"].headers.credential("k") == ("Authorization", "Bearer k")
    assert KINDS["anthropic"].headers.credential("k") == ("x-api-key", "k")
    headers = [("authorization", "bearer  slc_a"), ("X-API-Key", "slc_b"), ("accept", "x")]
    assert KINDS["anthropic"].headers.keys(headers) == ["slc_a", "slc_b"]


def page(listed, shown, aliases=None):
    return ModelPage(json.dumps(listed).encode(), shown.__contains__, aliases or {})


def test_lists_of_models_show_what_leads_there_and_the_aliases():
    listed = {"object": "list", "data": [{"id": "gpt-5-mini", "created": 1}, {"id": "o3"}], "more": 1.0}
    aliases = {"fast": "gpt-5-mini", "big": "gpt-9", "no": "o3"}
    shown = json.loads(KINDS["openai"].models([page(listed, {"gpt-5-mini", "fast", "big"}, aliases)]))
    assert [model["id"] for model in shown["data"]] == ["gpt-5-mini", "fast", "big"]
    assert shown["data"][1]["created"] == 1 and shown["data"][2]["object"] == "model"
    assert KINDS["openai"].models([ModelPage(b"oops", {"o3"}.__contains__, {})]) is None


def test_lists_of_several_providers_become_one_that_ends():
    listed = {
        "data": [{"type": "model", "id": "claude-a"}, {"type": "model", "id": "claude-b"}],
        "first_id": "claude-a",
        "last_id": "claude-b",
        "has_more": True,
    }
    odd = {"error": {"message": "no"}}
    pages = [page(odd, {"x"}), page(listed, {"claude-b", "best"}, {"best": "claude-b"})]
    pages.append(
        page({"data": [{"id": "claude-c"}, {"id": "claude-b", "type": "other"}]}, {"claude-c", "claude-b"})
    )
    shown = json.loads(KINDS["anthropic"].models(pages))
    assert [model["id"] for model in shown["data"]] == ["claude-b", "best", "claude-c"]
    assert shown["data"][0]["type"] == "model"
    assert (shown["first_id"], shown["last_id"], shown["has_more"]) == ("claude-b", "claude-c", False)
    empty = json.loads(KINDS["anthropic"].models([page(listed, set())]))
    assert (empty["data"], empty["first_id"], empty["has_more"]) == ([], None, False)
