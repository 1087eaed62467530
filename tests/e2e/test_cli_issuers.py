"""``sluice issuers``: issuers beside those of the settings, on the host."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import begun, sluice
from tests.integration.token_issuer import AUDIENCE, SECRET, Issuer, token_issuer


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


def test_issuers_are_added_shown_tested_changed_and_removed_on_the_host(
    issuer: Issuer, tmp_path: Path
) -> None:
    environment = begun(tmp_path, ISSUER_SECRET=SECRET)

    def said(*arguments: str, given: str = "", code: int = 0) -> str:
        done = sluice(*arguments, environment=environment, given=given)
        assert done.returncode == code, done.stderr
        assert SECRET not in done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    def entry(**changed: Any) -> str:
        rule = {"when": {"groups": "llm-users"}, "tenant": "default", "roles": ["invoker"]}
        asked = {"clientId": "sluice", "clientSecret": "${ISSUER_SECRET}", "tokens": ["signed"]}
        whole = {"issuer": issuer.url, "audience": [AUDIENCE], "rules": [rule], "introspection": asked}
        return json.dumps({**whole, **changed})

    issuer.states[token := issuer.token()] = {"active": True, **issuer.claims()}
    assert "is stored" in said("issuers", "add", "-", given=entry())
    assert "No issuer is trusted" not in said("access", "explain", "-", given=token)
    (listed,) = json.loads(said("issuers", "list", "--json"))
    assert (listed["issuer"], listed["source"], listed["secrets"]) == (
        issuer.url,
        "stored",
        ["introspection"],
    )
    assert json.loads(said("issuers", "show", issuer.url)) == listed
    assert issuer.url in said("issuers", "list") and "ES256" in said("issuers", "test", listed["id"])
    assert "Only the settings" in said(
        *("issuers", "change", "-"),
        given=entry(rules=[{"when": {"sub": "ada"}, "tenant": "default", "roles": ["operator"]}]),
        code=1,
    )
    kept = {"clientId": "sluice", "tokens": ["signed"]}
    said("issuers", "change", "-", given=entry(introspection=kept, maxTokenAge=60))
    changed = json.loads(said("issuers", "show", listed["id"]))
    assert (changed["version"], changed["settings"]["maxTokenAge"]) == (2, 60)
    assert changed["secrets"] == ["introspection"]
    assert "--yes" in said("issuers", "remove", issuer.url, code=2)
    said("issuers", "remove", issuer.url, "--yes")
    assert "There is no issuer" in said("issuers", "show", issuer.url, code=1)
    assert "No issuer is trusted" in said("access", "explain", "-", given=token, code=1)
