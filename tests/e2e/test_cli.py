"""The command line beside a running service: results, sentences and exit codes."""

import json
import os
import pty
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.running import ROOT, Service, environment_of, sluice


def test_text_in_gives_text_out(service: Service, scope: str) -> None:
    redacted = service.sluice("invoke", "pii_redaction", "--scope", scope, given="I am John Doe.\n")
    restored = service.sluice("invoke", "pii_restoration", "--scope", scope, given=redacted.stdout)

    assert redacted.stdout == "I am [PERSON_1].\n"
    assert restored.stdout == "I am John Doe.\n"
    assert (redacted.returncode, redacted.stderr) == (0, "")


def test_a_new_scope_is_named_on_standard_error(service: Service) -> None:
    done = service.sluice("invoke", "pii_redaction", given="I am John Doe.")

    assert done.stdout == "I am [PERSON_1].\n"
    assert re.fullmatch(r"scope: \w{32}\n", done.stderr)


def test_a_context_in_gives_a_context_out(service: Service, scope: str, tmp_path: Path) -> None:
    file = tmp_path / "context.json"
    file.write_text('[{"role": "user", "content": "I am John Doe.", "n": 123456789012345678901234567890}]')
    done = service.sluice("invoke", "pii_redaction", str(file), "-a", f"scope={scope}")

    expected = {"role": "user", "content": "I am [PERSON_1].", "n": 123456789012345678901234567890}
    assert json.loads(done.stdout) == [expected]


def test_other_json_is_text_so_that_nothing_in_it_passes_unscanned(service: Service, scope: str) -> None:
    done = service.sluice("invoke", "pii_redaction", "--scope", scope, given='{"name": "John Doe"}')

    assert done.stdout == '{"name": "[PERSON_1]"}\n'


def test_the_whole_answer_is_given_when_asked_for(service: Service, scope: str) -> None:
    arguments = json.dumps({"scope": scope, "aggressiveness": "strict"})
    done = service.sluice(
        "invoke", "pii_redaction", "--json", "--arguments", arguments, given="I am John Doe."
    )
    answer = json.loads(done.stdout)

    assert answer["metadata"]["scope"] == scope
    assert answer["content"] == [{"type": "text", "text": "I am [PERSON_1]."}]


def test_the_middlewares_are_listed(service: Service) -> None:
    table = service.sluice("middleware").stdout
    listed = json.loads(service.sluice("middleware", "--json").stdout)

    assert "pii_redaction" in table
    assert {one["name"] for one in listed} >= {"pii_redaction", "pii_restoration", "timestamp_injector"}


def test_a_refusal_is_one_sentence_with_code_place_and_request(service: Service) -> None:
    done = service.sluice("invoke", "pii_redaction", "-a", "nonsense=1", given="x")

    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"sluice: .+ \(invalid_arguments, at /arguments\S*, .+request \S+\)\n", done.stderr)


def test_without_a_key_the_sentence_says_where_to_get_one(service: Service) -> None:
    done = service.sluice("invoke", "pii_redaction", given="x", SLUICE_API_KEY="")

    assert done.returncode == 1
    assert "SLUICE_API_KEY" in done.stderr


def test_without_a_service_the_sentence_says_how_to_start_one(service: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = service.sluice("middleware", SLUICE_URL=f"http://127.0.0.1:{port}")

    assert done.returncode == 3
    assert "sluice serve" in done.stderr


def test_without_a_database_the_exit_code_says_unreachable(tmp_path: Path) -> None:
    environment = environment_of(
        tmp_path, SLUICE_DATABASE__URL="postgresql://nobody:n0-one-h3re@127.0.0.1:1/none"
    )
    for command in (("keys", "list"), ("db", "current")):
        done = sluice(*command, environment=environment)
        assert done.returncode == 3, done.stderr
        assert "SLUICE_DATABASE__URL" in done.stderr
        assert "n0-one-h3re" not in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("invoke",),
        ("invoke", "x", "--arguments", "{"),
        ("invoke", "x", "-a", "novalue"),
        ("invoke", "x", "/nonexistent/file"),
        ("keys", "create"),
        ("audit", "query", "--since", "yesterday"),
        ("vault", "erase"),
        ("vault", "erase", "--scope", "s"),
        ("subjects", "search", "/dev/null", "--reason", "why"),
        ("subjects", "erase", "--reason", "why"),
        ("subjects", "erase", "--scope", "s", "--reason", "why"),
        ("serve", "--port", "70000"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = sluice(*arguments, environment=environment_of(tmp_path))

    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"sluice: [^\n]+\n", done.stderr)


def test_every_command_has_help_with_an_example(tmp_path: Path) -> None:
    environment = environment_of(tmp_path)
    commands = ["serve", "invoke", "middleware", "config", "db upgrade", "db current", "db downgrade"]
    for group in (
        "keys create list revoke rotate",
        "tenants create list",
        "audit query export verify checkpoint key prove sinks",
        "subjects search erase receipt",
    ):
        name, *inner = group.split()
        commands += [f"{name} {one}" for one in inner]
    commands += [
        f"vault {one}"
        for one in ["scopes", "show", "expire", "erase", "new-ring", "rotate-keys", "rewrap", "restore-epoch"]
    ]
    program = (
        "import sys; from app.cli.root import run\n"
        "for line in sys.argv[1:]: print('\\x00', line); assert run([*line.split(), '--help']) == 0"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *commands],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    pages = done.stdout.split("\x00")[1:]

    assert len(pages) == len(commands)
    for page in pages:
        name = page.partition("\n")[0].strip()
        assert page.count(f"sluice {name}") >= 2, name  # the usage, and an example


def test_settings_are_shown_without_secrets(tmp_path: Path) -> None:
    key = "slc_0a1b2c3d_" + "Zk4" * 14 + "q"
    environment = environment_of(
        tmp_path,
        SLUICE_AUTH__BOOTSTRAP_KEY=key,
        SLUICE_DATABASE__URL="postgresql://me:Secr3tPassw0rd@127.0.0.1/x",
        SLUICE_HTTP__PORT="8123",
        SLUICE_ENGINES__MODERATOR__URL="https://judge.example/v1",
        SLUICE_ENGINES__MODERATOR__MODEL="guard-8b",
        SLUICE_ENGINES__MODERATOR__API_KEY="G3heimKey",
        SLUICE_PLUGINS='{"shouting": {"token": "G3heimToken"}}',
        SLUICE_MIDDLEWARE_SERVERS='{"acme": {"url": "https://a.example/mcp", "headers": {"x": "G3heimHeader"}}}',
    )
    for form in ((), ("--json",)):
        shown = sluice("config", *form, environment=environment).stdout
        assert all(told in shown for told in ("8123", "guard-8b", "shouting", "acme"))
        assert not any(secret in shown for secret in (key, "Secr3tPassw0rd", "G3heim"))


def test_long_input_on_a_terminal_shows_progress(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("Nothing to see here. " * 4000)
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "app", "invoke", "timestamp_injector", str(file)],
        env={**service.environment, **service.client},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=theirs,
        timeout=60,
        check=False,
    )
    os.close(theirs)
    drawn = os.read(ours, 65_536).decode()
    os.close(ours)

    assert done.returncode == 0, drawn
    assert "100%" in drawn
    assert done.stdout.startswith(b"[Current time: ")
