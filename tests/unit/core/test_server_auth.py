"""Settings of servers that take tokens: what fits together, and the examples of the page."""

import json
import re
from typing import Any

import pytest
from pydantic import ValidationError

from app.core.catalog.servers import MCPServerSettings
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "identity.md").read_text(encoding="utf-8")
EXAMPLES = [
    json.loads(block)["mcpServers"]
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    if '"mcpServers"' in block
]
OWN = {"mode": "client_credentials", "issuer": "https://a.example", "clientId": "sluice"}
PROVIDER = {"issuer": "https://login.example", "clientId": "sluice"}
KEPT = {"clientSecret": "s"}


def settings(auth: Any, credentials: Any = KEPT, **more: Any) -> MCPServerSettings:
    entry = {"url": "https://mcp.example/mcp", "auth": auth, "credentials": credentials, **more}
    return MCPServerSettings.model_validate(entry)


def test_the_examples_of_the_page_can_be_read() -> None:
    modes = []
    for servers in EXAMPLES:
        for entry in servers.values():
            read = MCPServerSettings.model_validate(entry)
            assert read.auth is not None and read.missing_credential is None
            modes.append(read.auth.mode)
    assert sorted(modes) == ["client_credentials", "id_jag", "token_exchange", "user_grant"]


REFUSED: dict[str, dict[str, Any]] = {
    "a client without a proof": {"auth": {**OWN, "clientAuth": "none"}},
    "an unknown grant": {"auth": {**OWN, "mode": "password"}},
    "an unknown member": {"auth": {**OWN, "clientSecret": "in the open"}},
    "an issuer that is no address": {"auth": {**OWN, "issuer": "login"}},
    "an issuer with a password": {"auth": {**OWN, "issuer": "https://a:b@login.example"}},
    "a token endpoint elsewhere for tokens of users": {
        "auth": {**OWN, "mode": "token_exchange", "tokenUri": "https://attacker.example/token"}
    },
    "a token endpoint elsewhere for codes of users": {
        "auth": {**OWN, "mode": "user_grant", "tokenUri": "https://attacker.example/token"}
    },
    "a token endpoint elsewhere for assertions of users": {
        "auth": {**OWN, "mode": "id_jag", "provider": PROVIDER, "tokenUri": "https://attacker.example/token"},
        "credentials": {"providerSecret": "s"},
    },
    "an assertion of nobody": {"auth": {**OWN, "mode": "id_jag"}},
    "a provider that is not asked": {"auth": {**OWN, "provider": PROVIDER}},
    "a scope with a space": {"auth": {**OWN, "scopes": ["a b"]}},
    "a command": {"auth": OWN, "type": "stdio", "command": "true"},
    "the legacy transport": {"auth": OWN, "type": "sse"},
    "an unknown credential": {"auth": OWN, "credentials": {"password": "s"}},
    "an empty credential": {"auth": OWN, "credentials": {"clientSecret": ""}},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_together_is_refused_without_a_value(case: str) -> None:
    with pytest.raises(ValidationError) as refused:
        settings(**REFUSED[case])
    assert "in the open" not in str(refused.value) and "attacker" not in str(refused.value)


NEEDED: list[tuple[dict[str, Any], dict[str, str], str | None]] = [
    (OWN, {}, "clientSecret"),
    (OWN, KEPT, None),
    ({**OWN, "clientAuth": "client_secret_post"}, {"privateKey": "k"}, "clientSecret"),
    ({**OWN, "clientAuth": "private_key_jwt"}, KEPT, "privateKey"),
    ({**OWN, "mode": "id_jag", "provider": PROVIDER}, KEPT, "providerSecret"),
    (
        {**OWN, "mode": "id_jag", "provider": {**PROVIDER, "clientAuth": "private_key_jwt"}},
        KEPT,
        "providerKey",
    ),
    (
        {**OWN, "mode": "id_jag", "provider": PROVIDER, "clientAuth": "none", "listing": "headers"},
        {"providerSecret": "s"},
        None,
    ),
]


@pytest.mark.parametrize(("auth", "credentials", "missing"), NEEDED)
def test_the_credential_that_is_missing_is_named(
    auth: Any, credentials: dict[str, str], missing: str | None
) -> None:
    assert settings(auth, credentials).missing_credential == missing


def test_secrets_are_in_no_text_of_the_settings() -> None:
    assert "s3cret" not in repr(settings(OWN, {"clientSecret": "s3cret"}))
