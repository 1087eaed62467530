"""A key of Sluice leaves at no place of a request, not even at one that would be left out."""

import json
from typing import Any

import pytest

TEXT = "I am Ottilie Brandstätter."
QUESTION = [{"role": "user", "content": TEXT}]
POSTS: dict[str, dict[str, Any]] = {
    "/openai/v1/chat/completions": {"model": "gpt-5-mini", "messages": QUESTION},
    "/openai/v1/responses": {"model": "gpt-5-mini", "input": TEXT},
    "/openai/v1/embeddings": {"model": "text-embedding-3-small", "input": TEXT},
    "/anthropic/v1/messages": {"model": "claude-x", "max_tokens": 9, "messages": QUESTION},
}
GETS = ("/openai/v1/models", "/openai/v1/models/gpt-5-mini", "/anthropic/v1/models")


def written(key: str, way: str) -> str:
    """Return a key as it may stand in an address."""
    return {"plain": key, "encoded": key.replace("_", "%5f"), "twice": key.replace("_", "%255F")}[way]


def refused(gateway: Any, answer: Any, key: str) -> None:
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == "sluice_invalid_request"
    assert key not in answer.text and not gateway.provider.arrived
    assert gateway.events("gateway.request")[0]["outcome"] != "ok"


@pytest.mark.parametrize("way", ["plain", "encoded", "twice"])
@pytest.mark.parametrize("path", [*GETS, *POSTS])
def test_a_key_in_an_address_is_refused_whether_or_not_its_parameter_would_pass(gateway, path, way):
    body = POSTS.get(path)
    method = "GET" if body is None else "POST"
    for name in ("after", "anything"):
        address = f"{path}?limit=1&{name}={written(gateway.key, way)}"
        refused(gateway, gateway.http.request(method, address, json=body), gateway.key)
    refused(gateway, gateway.http.request(method, f"{path}?{gateway.key}=1", json=body), gateway.key)
    # Negative control: the same request with another value.
    gateway.http.request(method, f"{path}?after=slc_0123abcd", json=body)
    assert gateway.provider.arrived


@pytest.mark.parametrize("path", [*GETS, *POSTS])
def test_a_key_in_a_header_is_refused_where_no_key_belongs(gateway, path):
    body = POSTS.get(path)
    method = "GET" if body is None else "POST"
    for name in ("User-Agent", "X-Anything", "Cookie", "X-Sluice-Scope", "OpenAI-Project", "X-Forwarded-Uri"):
        headers = {name: f"a={gateway.key}; b"}
        refused(gateway, gateway.http.request(method, path, json=body, headers=headers), gateway.key)
    gateway.http.request(method, path, json=body, headers={"Cookie": "a=b"})
    assert gateway.provider.arrived


@pytest.mark.parametrize("path", POSTS)
def test_a_key_in_a_body_never_arrives(gateway, path):
    written_body = json.dumps(POSTS[path]).replace(TEXT, f"{TEXT} My key is {gateway.key}.")
    escaped = "".join(f"\\u{ord(character):04x}" for character in gateway.key)
    for body in (written_body, written_body.replace(gateway.key, escaped)):
        gateway.provider.arrived.clear()
        headers = {"content-type": "application/json"}
        gateway.http.post(path, content=body.encode(), headers=headers)
        arrived = [(request.path, request.headers, request.body) for request in gateway.provider.arrived]
        assert gateway.key not in str(arrived) and escaped not in str(arrived)
