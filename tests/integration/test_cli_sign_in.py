"""``sluice auth``: a person signs in on the command line with an issuer, and their token goes to that service alone."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from typer.testing import CliRunner

from app.cli.access.sign_in import by_browser, by_device, current_token, planned
from app.cli.access.token_file import store_token, stored_tokens, token_path
from app.cli.remote import service as reached
from app.cli.root import run as run_command
from app.cli.terminal import CommandError
from app.settings.auth import IssuerSettings
from tests.integration.service import running_service
from tests.integration.token_issuer import COMMAND_LINE, Issuer, token_issuer
from tests.outside.test_token_issuer import free_port


@dataclass
class Signing:
    """A service, its issuer, and somebody with a browser."""

    url: str
    issuer: Issuer
    came: dict[str, str]

    def token(self, **changed: Any) -> str:
        return self.issuer.token(aud=f"{self.url}/mcp", **changed)

    def granted(self, **changed: Any) -> dict[str, Any]:
        return {"access_token": self.token(), "token_type": "Bearer", "expires_in": 300, **changed}

    def browse(self, address: str, **changed: str) -> None:
        """Sign in as a browser does, while the command line waits."""
        asked = dict(parse_qsl(urlsplit(address).query))
        self.came = asked
        self.issuer.codes["code"] = (asked["code_challenge"], self.granted(refresh_token="renew me"))

        def come_back() -> None:
            knock = {"code": "code", "state": "of somebody else"}
            httpx2.get(asked["redirect_uri"], params=knock, trust_env=False)
            answer = {"code": "code", "state": asked["state"], **changed}
            httpx2.get(asked["redirect_uri"], params=answer, trust_env=False)

        threading.Thread(target=come_back).start()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signing]:
    port = free_port()
    with token_issuer() as issuer:
        rules = [{"when": {"groups": "llm-users"}, "tenant": "default", "roles": ["invoker"]}]
        settings = IssuerSettings.model_validate(
            {
                "issuer": issuer.url,
                "audience": [f"http://127.0.0.1:{port}/mcp"],
                "rules": rules,
                "scopes": ["use"],
            }
        )
        with running_service(tmp_path_factory.mktemp("cli"), issuers=[settings], port=port):
            yield Signing(f"http://127.0.0.1:{port}", issuer, {})


@pytest.fixture
def signing(running: Signing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Signing:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    running.issuer.grants.clear()
    return running


def test_a_browser_on_this_machine_signs_in_for_one_service(signing: Signing) -> None:
    plan = planned(signing.url, COMMAND_LINE)
    store_token(signing.url, by_browser(plan, signing.browse))
    asked = signing.came
    assert (asked["resource"], asked["scope"], asked["code_challenge_method"]) == (
        f"{signing.url}/mcp",
        "use",
        "S256",
    )
    assert token_path().stat().st_mode & 0o777 == 0o600
    with reached(signing.url, None, 20) as calls:
        assert "timestamp_injector" in json.dumps(calls.list_middleware())
    assert current_token("http://127.0.0.1:1") is None
    with (
        pytest.raises(CommandError),
        reached(signing.url.replace("127.0.0.1", "localhost"), None, 20) as calls,
    ):
        calls.list_middleware()


@pytest.mark.parametrize(
    "changed",
    [{"iss": "https://login.example.org"}, {"error": "access_denied"}, {"code": ""}, {"code": "another"}],
)
def test_what_is_no_answer_of_the_issuer_signs_nobody_in(signing: Signing, changed: dict[str, str]) -> None:
    plan = planned(signing.url, COMMAND_LINE)
    with pytest.raises(CommandError):
        by_browser(plan, lambda address: signing.browse(address, **changed))


def test_a_code_is_entered_on_another_device(signing: Signing, capsys: pytest.CaptureFixture[str]) -> None:
    signing.issuer.device = {
        "device_code": "device",
        "user_code": "WDJB-MJHT",
        "verification_uri": "https://login.example.com/device",
        "interval": 1,
        "expires_in": 60,
    }
    signing.issuer.grants += [{"error": "authorization_pending"}, {"error": "slow_down"}, signing.granted()]
    pauses: list[float] = []
    token = by_device(planned(signing.url, COMMAND_LINE), pauses.append)
    assert (token.refresh, pauses) == (None, [1.0, 1.0, 6.0])
    assert "enter WDJB-MJHT" in capsys.readouterr().err
    signing.issuer.grants += [{"error": "access_denied"}]
    with pytest.raises(CommandError, match="refuses"):
        by_device(planned(signing.url, COMMAND_LINE), pauses.append)
    signing.issuer.grants += [{"error": "authorization_pending"}] * 100
    with pytest.raises(CommandError, match="in time"):
        by_device(planned(signing.url, COMMAND_LINE), lambda _: None)


@pytest.mark.parametrize("interval", ["soon", -1, [5], pytest.param(10**400, id="huge"), 1e300, None, True])
def test_a_device_waits_for_no_longer_than_is_reasonable(signing: Signing, interval: Any) -> None:
    begun = {
        "device_code": "device",
        "user_code": "CODE",
        "verification_uri": "https://login.example.com/device",
    }
    signing.issuer.device = {**begun, "interval": interval, "expires_in": interval}
    signing.issuer.grants += [{"error": "authorization_pending"}] * 400
    pauses: list[float] = []
    with pytest.raises(CommandError, match="in time"):
        by_device(planned(signing.url, COMMAND_LINE), pauses.append)
    assert all(1 <= pause <= 60 for pause in pauses) and sum(pauses) <= 360
    signing.issuer.grants.clear()


@pytest.mark.parametrize("lives", [pytest.param(10**400, id="huge"), 1e300, -5, "soon", True])
def test_a_token_is_kept_for_a_time_that_can_be_shown(
    signing: Signing, capsys: pytest.CaptureFixture[str], lives: Any
) -> None:
    plan = planned(signing.url, COMMAND_LINE)
    store_token(signing.url, plan.token_of(signing.granted(expires_in=lives)))
    assert run_command(["auth", "status"]) == 0
    assert signing.url in capsys.readouterr().out


def test_an_issuer_without_a_page_is_named(signing: Signing) -> None:
    plan = planned(signing.url, COMMAND_LINE)
    metadata = {name: value for name, value in plan.metadata.items() if name != "authorization_endpoint"}
    with pytest.raises(CommandError, match="no authorization_endpoint"):
        by_browser(replace(plan, metadata=metadata), lambda _address: None)


def test_a_token_is_renewed_and_forgotten(signing: Signing) -> None:
    token = by_browser(planned(signing.url, COMMAND_LINE), signing.browse)
    store_token(signing.url, replace(token, ends=time.time() + 10))
    signing.issuer.grants += [signing.granted(access_token="renewed", expires_in=300)]
    assert current_token(signing.url) == "renewed"
    assert current_token(signing.url) == "renewed"
    assert stored_tokens()[signing.url].refresh == "renew me"
    store_token(signing.url, replace(token, ends=time.time()))
    with pytest.raises(CommandError, match="is over"):
        current_token(signing.url)
    assert stored_tokens() == {}


def test_the_commands_show_no_token(signing: Signing, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.cli.access.auth import commands

    monkeypatch.setattr("webbrowser.open", signing.browse)
    monkeypatch.setattr("app.cli.access.sign_in.by_browser.__defaults__", (signing.browse,))
    run = CliRunner().invoke
    assert run(commands, ["login", "--url", signing.url]).exit_code == 0
    shown = run(commands, ["status"])
    assert signing.url in shown.output and signing.issuer.url in shown.output
    assert stored_tokens()[signing.url].access not in shown.output
    assert run(commands, ["logout", "--url", signing.url]).exit_code == 0
    assert stored_tokens() == {}


def test_a_file_that_others_read_is_refused(signing: Signing) -> None:
    store_token(signing.url, by_browser(planned(signing.url, COMMAND_LINE), signing.browse))
    token_path().chmod(0o644)
    with pytest.raises(CommandError, match="open to others"):
        current_token(signing.url)


def test_a_service_that_says_it_is_another_is_not_believed(signing: Signing) -> None:
    with pytest.raises(CommandError, match="use the address"):
        planned(signing.url.replace("127.0.0.1", "localhost"), COMMAND_LINE)
    with pytest.raises(CommandError, match="needs https"):
        planned("http://sluice.example.com", COMMAND_LINE)
    signing.issuer.documents["/.well-known/openid-configuration"]["issuer"] = "https://login.example.org"
    try:
        with pytest.raises(CommandError, match="another issuer"):
            planned(signing.url, COMMAND_LINE)
    finally:
        signing.issuer.publish(signing.issuer.key)


def test_commands_of_the_host_go_to_the_service_with_the_sign_in(
    signing: Signing, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLUICE_API_KEY", raising=False)

    def said(code: int, *command: str) -> str:
        assert run_command([*command, "--url", signing.url]) == code
        shown = "".join(capsys.readouterr())
        assert token.access not in shown
        return shown

    token = by_browser(planned(signing.url, COMMAND_LINE), signing.browse)
    assert "sluice auth login" in said(1, "servers", "grants")
    store_token(signing.url, token)
    assert f"sluice: at {signing.url} as ada\n" in said(0, "servers", "grants")
    assert "(forbidden, request " in said(1, "vault", "scopes")
    key = f"slc_0a1b2c3d_{'k' * 43}"
    monkeypatch.setenv("SLUICE_API_KEY", key)
    shown = said(1, "servers", "grants")
    assert "as key 0a1b2c3d" in shown
    assert key not in shown


@pytest.mark.parametrize(
    ("described", "metadata", "said"),
    [
        ({"resource": "http://["}, {}, "use the address"),
        ({"resource": 7}, {}, "use the address"),
        ({"authorization_servers": ["https://["]}, {}, "needs https"),
        ({"authorization_servers": ["http://127.0.0.1:1\u0000"]}, {}, "does not say where to sign in"),
        ({}, {"token_endpoint": "https://["}, "needs https"),
        ({}, {"token_endpoint": None}, "no token_endpoint"),
        ({}, {"authorization_endpoint": "file://localhost/etc/passwd"}, "needs https"),
        ({}, {"authorization_endpoint": "javascript://localhost/%0aalert(1)"}, "needs https"),
        ({}, {"device_authorization_endpoint": "http://login.example.com"}, "needs https"),
    ],
)
def test_broken_addresses_of_a_service_or_issuer_are_named(
    described: dict[str, Any], metadata: dict[str, Any], said: str
) -> None:
    class Liar(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            own = f"http://127.0.0.1:{self.server.server_address[1]}"  # type: ignore[str-bytes-safe]
            answers = {
                "/.well-known/oauth-protected-resource": {"resource": own, "authorization_servers": [own]}
                | described,
                "/.well-known/openid-configuration": {"issuer": own} | metadata,
            }
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answers[self.path]).encode())

        def log_message(self, *_said: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Liar) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with pytest.raises(CommandError, match=said):
                planned(f"http://127.0.0.1:{server.server_address[1]}", COMMAND_LINE)
        finally:
            server.shutdown()
