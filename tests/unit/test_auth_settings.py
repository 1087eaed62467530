"""Issuers in the settings: as JSON and as TOML, and what stops the start."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.core.access import Role
from app.settings import ConfigurationError, load

ISSUER: dict[str, Any] = {
    "issuer": "https://login.example.com",
    "audience": ["https://sluice.example.com/mcp"],
    "jwksUri": None,
    "rules": [{"when": {"groups": "llm-users"}, "tenant": "acme", "roles": ["invoker"]}],
}


CONSOLE = {
    "clientId": "console",
    "clientSecret": "never-to-be-seen",
    "redirectUri": "https://sluice.example.com/console/sign-in/return",
}
LOGIN = {"clientId": "sluice", "clientSecret": "never-to-be-seen"}


def issuer(**changed: Any) -> str:
    return json.dumps([{**ISSUER, **changed}])


def rule(**changed: Any) -> str:
    return issuer(rules=[{**ISSUER["rules"][0], **changed}])


def test_issuers_are_read_from_json_and_from_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLUICE_AUTH__ISSUERS", issuer())
    (entry,) = load().auth.issuers
    trusted = entry.trusted()
    assert (trusted.issuer, trusted.jwks_uri) == ("https://login.example.com", None)
    assert (trusted.max_token_age_s, trusted.leeway_s) == (600, 30)
    assert trusted.rules[0].roles == {Role.INVOKER} and trusted.rules[0].tenant == "acme"
    monkeypatch.delenv("SLUICE_AUTH__ISSUERS")
    file = tmp_path / "sluice.toml"
    file.write_text(
        '[[auth.issuers]]\nissuer = "https://login.example.com"\naudience = ["https://sluice.example.com/mcp"]\n'
        '[[auth.issuers.rules]]\nwhen = { groups = "llm-users" }\ntenant = "acme"\nroles = ["invoker"]\n'
    )
    monkeypatch.setenv("SLUICE_CONFIG", str(file))
    assert load().auth.issuers == (entry,)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (rule(roles=["operator", "restorer"]), "operator + restorer"),
        (rule(roles=["key-custodian", "restorer", "invoker"]), "key-custodian + restorer"),
        (rule(roles=[]), "ROLES"),
        (rule(roles=["admin"]), "ROLES"),
        (rule(when={}), "WHEN"),
        (rule(when={"groups": []}), "WHEN"),
        (rule(when={"scope": 'a" b'}), "quote"),
        (rule(tenant="Acme"), "tenant's name"),
        (
            issuer(console={**CONSOLE, "redirectUri": "https://sluice.example.com/"}),
            "/console/sign-in/return",
        ),
        (issuer(console={**CONSOLE, "scopes": ["groups"]}), "openid"),
        (issuer(console={**CONSOLE, "clientId": "https://sluice.example.com/mcp"}), "is no audience"),
        (issuer(console={**CONSOLE, "name": ""}), "NAME"),
        (rule(grants=["0123abcd"]), "grant"),
        (rule(grants=["sub-0123"]), "grant"),
        (rule(cidrs=["10.0.0.1/8"]), "CIDRS"),
        (rule(unknown=1), "UNKNOWN"),
        (rule(directory={"groups": ["llm-users"]}), "give the issuer provisioning"),
        (rule(directory={"groups": []}), "GROUPS"),
        (rule(directory={"users": ["ada"]}), "USERS"),
        (issuer(rules=[]), "no entry in rules"),
        (issuer(rules=[], tenants=["Acme"]), "tenant's name"),
        (issuer(audience=[]), "no entry"),
        (issuer(algorithms=["HS256"]), "ALGORITHMS"),
        (issuer(algorithms=["none"]), "ALGORITHMS"),
        (issuer(leeway=600), "LEEWAY"),
        (issuer(issuer="login.example.com"), "https://"),
        (issuer(issuer="https://user:password@login.example.com"), "password"),
        (issuer(issuer="http://login.example.com"), "plain http"),
        (issuer(jwksUri="http://10.0.0.1/keys"), "plain http"),
        (json.dumps([ISSUER, ISSUER]), "twice"),
        (issuer(introspection={"clientId": "sluice"}), "CLIENTSECRET"),
        (issuer(introspection={**LOGIN, "cache": 61}), "CACHE"),
        (issuer(introspection={**LOGIN, "uri": "http://10.0.0.1/introspect"}), "plain http"),
        (
            json.dumps([{**ISSUER, "issuer": f"https://{name}", "introspection": LOGIN} for name in "ab"]),
            "only one issuer may take opaque tokens",
        ),
    ],
)
def test_what_is_not_safe_stops_the_start(monkeypatch: pytest.MonkeyPatch, value: str, words: str) -> None:
    monkeypatch.setenv("SLUICE_AUTH__ISSUERS", value)
    with pytest.raises(ConfigurationError, match="SLUICE_AUTH__ISSUERS") as refused:
        load()
    assert words.lower() in str(refused.value).lower()
    assert "user:password" not in str(refused.value) and "never-to-be-seen" not in str(refused.value)


def test_plain_http_is_for_this_machine_in_development(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_AUTH__ISSUERS", issuer(issuer="http://127.0.0.1:8080"))
    assert load().auth.issuers[0].issuer == "http://127.0.0.1:8080"
    monkeypatch.setenv("SLUICE_ENVIRONMENT", "production")
    with pytest.raises(ConfigurationError, match="production needs https"):
        load()


def test_rules_name_groups_of_the_mirror_where_the_issuer_says_how_people_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = {"groups": ["LLM users", "staff"]}
    alone = {"directory": directory, "tenant": "acme", "roles": ["invoker"]}
    both = {**alone, "when": {"sub": "ada"}}
    monkeypatch.setenv("SLUICE_AUTH__ISSUERS", issuer(rules=[alone, both], provisioning={"claim": "sub"}))
    first, second = load().auth.issuers[0].trusted().rules
    assert (first.when, first.groups, second.when) == ({}, ("LLM users", "staff"), {"sub": "ada"})


USERS: dict[str, Any] = {"tenant": "acme", "rules": [{"users": ["*@partner.example"], "roles": ["invoker"]}]}


def test_rules_for_end_users_are_read_for_each_tenant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLUICE_AUTH__END_USERS", json.dumps([USERS]))
    from_json = load().auth.bounds()
    assert from_json["acme"].rules[0].roles == {Role.INVOKER} and from_json["acme"].mirror is None
    monkeypatch.delenv("SLUICE_AUTH__END_USERS")
    file = tmp_path / "sluice.toml"
    file.write_text(
        '[[auth.end_users]]\ntenant = "acme"\n'
        '[[auth.end_users.rules]]\nusers = ["*@partner.example"]\nroles = ["invoker"]\n'
    )
    monkeypatch.setenv("SLUICE_CONFIG", str(file))
    assert load().auth.bounds() == from_json


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([USERS, USERS], "twice"),
        ([{**USERS, "tenant": "Acme"}], "tenant's name"),
        (
            [{**USERS, "rules": [{"directory": {"groups": ["staff"]}, "roles": ["invoker"]}]}],
            "set provisioning",
        ),
        ([{**USERS, "rules": [{"roles": ["invoker"]}]}], "users, directory, or both"),
        ([{**USERS, "rules": [{"users": ["mallory"]}]}], "roles, grants or refuse"),
        ([{**USERS, "rules": [{"users": ["mallory"], "roles": ["invoker"], "refuse": True}]}], "no roles"),
        ([{**USERS, "rules": [{"users": ["mallory"], "grants": ["0123abcd"]}]}], "grant"),
    ],
)
def test_rules_for_end_users_that_say_nothing_stop_the_start(
    monkeypatch: pytest.MonkeyPatch, value: Any, words: str
) -> None:
    monkeypatch.setenv("SLUICE_AUTH__END_USERS", json.dumps(value))
    with pytest.raises(ConfigurationError, match="SLUICE_AUTH__END_USERS") as refused:
        load()
    assert words in str(refused.value) and "mallory" not in str(refused.value)
