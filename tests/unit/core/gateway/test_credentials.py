"""Whose key goes to a provider, and that nothing of ours goes along with it."""

import json
from typing import Any

import pytest

from app.core.errors import InvalidRequestError, UnauthenticatedError
from app.core.gateway.credentials import (
    ProviderCredential,
    check_no_own_key,
    credential_for,
    outgoing_headers,
)
from app.core.gateway.providers import ProviderEntry

OURS = f"slc_0123abcd_{'Ab3-_' * 8}xyz"
"""The same in each process that collects these tests, whose names hold it."""


def provider(**more: Any) -> ProviderEntry:
    document = {"name": "main", "kind": "openai", "baseUrl": "https://api.example.com", **more}
    return ProviderEntry.model_validate(document)


@pytest.mark.parametrize(
    ("entry", "callers_key", "by_model", "expected"),
    [
        ({"apiKey": "sealed"}, None, True, ("sealed", False)),
        ({"apiKey": "sealed"}, "mine", True, ("sealed", False)),
        ({"apiKey": "sealed", "callerKey": True}, "mine", True, ("mine", True)),
        ({"apiKey": "sealed", "callerKey": True}, "mine", False, ("sealed", False)),
        ({"apiKey": "sealed", "callerKey": True}, None, True, ("sealed", False)),
        ({"callerKey": True}, "mine", True, ("mine", True)),
        ({}, "mine", True, (None, False)),
        ({}, None, False, (None, False)),
    ],
)
def test_a_callers_key_goes_only_where_the_model_leads_and_only_if_asked_for(
    entry, callers_key, by_model, expected
):
    credential = credential_for(provider(**entry), callers_key, chosen_by_model=by_model)
    assert (credential.key, credential.callers) == expected
    assert "sealed" not in repr(credential) and "mine" not in repr(credential)


@pytest.mark.parametrize(("callers_key", "by_model"), [("mine", False), (None, True), (None, False)])
def test_without_any_key_that_may_be_used_the_request_is_refused(callers_key, by_model):
    with pytest.raises(UnauthenticatedError, match="main"):
        credential_for(provider(callerKey=True), callers_key, chosen_by_model=by_model)


def test_each_kind_gets_its_key_where_it_expects_it():
    key = ProviderCredential("k")
    assert outgoing_headers(provider(), [], key) == {
        "Authorization": "Bearer k",
        "Accept-Encoding": "identity",
    }
    anthropic = provider(kind="anthropic")
    assert outgoing_headers(anthropic, [], key) == {
        "anthropic-version": "2023-06-01",
        "x-api-key": "k",
        "Accept-Encoding": "identity",
    }
    newer = outgoing_headers(anthropic, [("Anthropic-Version", "2026-01-01")], key)
    assert newer["Anthropic-Version"] == "2026-01-01" and "anthropic-version" not in newer


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "x-api-key",
        "api-key",
        "Cookie",
        "X-Sluice-Key",
        "x-sluice-user",
        "X-Forwarded-For",
        "Forwarded",
        "Host",
        "Connection",
        "Transfer-Encoding",
        "Content-Length",
        "Proxy-Authorization",
        "Via",
        "Accept-Encoding",
    ],
)
def test_a_callers_credentials_cookies_and_addresses_never_pass(name):
    passed = [(name, "canary"), ("OpenAI-Beta", "responses=v1"), ("X-Odd", "a\r\nb")]
    sent = outgoing_headers(provider(), passed, ProviderCredential(None))
    assert sent == {"OpenAI-Beta": "responses=v1", "Accept-Encoding": "identity"}


def test_extra_headers_replace_what_callers_send_but_no_key_of_theirs():
    entry = provider(apiKey="sealed", extraHeaders={"authorization": "Basic x", "OpenAI-Project": "p1"})
    passed = [("openai-project", "other")]
    sealed = outgoing_headers(entry, passed, ProviderCredential("sealed"))
    assert sealed == {
        "authorization": "Basic x",
        "OpenAI-Project": "p1",
        "Accept-Encoding": "identity",
    }
    own = outgoing_headers(entry, passed, ProviderCredential("mine", callers=True))
    assert own["Authorization"] == "Bearer mine" and "authorization" not in own


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


@pytest.mark.parametrize(
    ("headers", "path", "query", "body"),
    [
        ({"X-A": OURS}, "/a", [], None),
        ({"X-A": f"Bearer {OURS}, more"}, "/a", [], None),
        ({"X-A": OURS.replace("_", "%5f")}, "/a", [], None),
        ({}, f"/responses/{OURS}", [], None),
        ({}, f"/responses/{OURS}".replace("s", "%73"), [], None),
        ({}, "/a", [("after", OURS)], None),
        ({}, "/a", [(OURS, "1")], None),
        ({}, "/a", [], json.dumps({"input": f"my key is {OURS}."}).encode()),
        ({}, "/a", [], f'{{"input": "{escaped(OURS)}"}}'.encode()),
        ({}, "/a", [], f'{{"input": "{escaped(OURS[:5])}{OURS[5:]}"}}'.encode()),
        ({}, "/a", [], b"\xff\xfe" + OURS.encode()),
    ],
)
def test_a_key_of_ours_never_leaves(headers, path, query, body):
    with pytest.raises(InvalidRequestError, match="key of Sluice") as refused:
        check_no_own_key(headers, path, query, body)
    assert OURS not in refused.value.message


def test_what_only_resembles_a_key_of_ours_passes():
    body = f'{{"input": "slc_ {OURS[:-1]} \\u0041 {OURS.upper()}"}}'.encode()
    check_no_own_key({"X-A": OURS[:-1]}, "/slc_", [("after", "slc_0123abcd")], body)
