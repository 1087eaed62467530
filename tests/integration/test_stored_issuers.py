"""Issuers added to a running service: its tokens at every door and in every process at once, and no longer than it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Client

from app.core.identities import issuer_id
from app.settings.auth import IssuerSettings
from tests.integration.service import running_service
from tests.integration.test_doors import INITIALIZE
from tests.integration.test_token_doors import DOORS, INSIDE, MCP, METADATA, ask
from tests.integration.token_issuer import AUDIENCE, Issuer, token_issuer

ISSUERS = "/api/v1/issuers"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


def entry(issuer: Issuer, **changed: Any) -> dict[str, Any]:
    rule = {"when": {"groups": "llm-users"}, "tenant": "default", "roles": ["invoker"]}
    return {"issuer": issuer.url, "audience": [AUDIENCE], "rules": [rule], **changed}


def within_a_second(is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + 1
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def removed(http: Client, issuer: Issuer) -> None:
    version = http.get(f"{ISSUERS}/{issuer_id(issuer.url)}").json()["version"]
    http.delete(f"{ISSUERS}/{issuer_id(issuer.url)}?expected_version={version}").raise_for_status()


def test_tokens_of_an_added_issuer_open_every_door_until_it_is_removed(
    issuer: Issuer, tmp_path: Path
) -> None:
    with running_service(tmp_path) as service, Client(base_url=service.http.base_url, timeout=30) as http:
        token = issuer.token()
        for door in DOORS:
            assert ask(http, door, token).status_code == 401, door
        assert http.get(METADATA).status_code == 404
        assert "token" not in ask(http, "REST", None).json()["detail"]
        added = service.http.post(ISSUERS, json=entry(issuer))
        assert added.status_code == 201, added.text
        for door in DOORS:
            assert ask(http, door, token).status_code == INSIDE.get(door, 200), door
        assert http.get(METADATA).json()["authorization_servers"] == [issuer.url]
        assert METADATA in ask(http, "REST", None).headers["www-authenticate"]
        opened = http.post("/mcp", json=INITIALIZE, headers={"authorization": f"Bearer {token}", **MCP})
        assert opened.status_code == 200
        removed(service.http, issuer)
        for door in DOORS:
            assert ask(http, door, token).status_code == 401, door
        assert http.get(METADATA).status_code == 404
        assert token not in service.log.getvalue()


def test_every_process_knows_within_a_second(issuer: Issuer, tmp_path: Path, own_postgres_url: str) -> None:
    with (
        running_service(tmp_path, database_url=own_postgres_url) as here,
        running_service(tmp_path, database_url=own_postgres_url) as there,
        Client(base_url=f"http://127.0.0.1:{there.port}", timeout=30) as http,
    ):
        token = issuer.token()
        assert ask(http, "REST", token).status_code == 401
        here.http.headers["authorization"] = there.http.headers["authorization"] = f"Bearer {here.key}"
        here.http.post(ISSUERS, json=entry(issuer)).raise_for_status()
        # Nobody has come with a token that would make the other process look.
        assert within_a_second(lambda: http.get(METADATA).status_code == 200)
        assert within_a_second(lambda: ask(http, "REST", token).status_code == 200)
        removed(here.http, issuer)
        assert within_a_second(lambda: ask(http, "REST", token).status_code == 401)


def test_a_service_starts_while_a_stored_issuer_is_down_or_unreadable(tmp_path: Path) -> None:
    with token_issuer() as gone:
        with running_service(tmp_path) as service:
            service.http.post(ISSUERS, json=entry(gone)).raise_for_status()
            key = service.key
        token = gone.token()
    with running_service(tmp_path) as service, Client(base_url=service.http.base_url, timeout=30) as http:
        service.http.headers["authorization"] = f"Bearer {key}"
        assert ask(http, "REST", key).status_code == 200
        assert ask(http, "REST", token).status_code == 503
        (shown,) = service.http.get(ISSUERS).json()["items"]
        assert shown["state"]["keys"] == 0 and "could not be fetched" in shown["state"]["error"]
        trial = service.http.post(f"{ISSUERS}/{shown['id']}/test").json()
        assert (trial["ready"], "could not be fetched" in trial["error"]) == (False, True)


def test_the_settings_come_before_what_is_stored_of_the_same_issuer(issuer: Issuer, tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        service.http.post(ISSUERS, json=entry(issuer)).raise_for_status()
        key = service.key
    other = {"when": {"groups": "others"}, "tenant": "default", "roles": ["invoker"]}
    settings = IssuerSettings.model_validate(entry(issuer, rules=[other]))
    with (
        running_service(tmp_path, issuers=[settings]) as service,
        Client(base_url=service.http.base_url, timeout=30) as http,
    ):
        service.http.headers["authorization"] = f"Bearer {key}"
        assert ask(http, "REST", issuer.token()).status_code == 403
        assert ask(http, "REST", issuer.token(groups=["others"])).status_code == 200
        listed = service.http.get(ISSUERS).json()["items"]
        assert [(one["source"], one["hidden"]) for one in listed] == [("settings", False), ("stored", True)]
        removed_ = service.http.delete(f"{ISSUERS}/{issuer_id(issuer.url)}?expected_version=1")
        assert removed_.status_code == 204, "what is hidden can be removed"
        assert ask(http, "REST", issuer.token(groups=["others"])).status_code == 200
