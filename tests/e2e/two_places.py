"""A service with something of everything, and its commands run here on its database and there at its address."""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from typer.main import get_command

from app.cli.places import placed_commands
from app.cli.root import build
from tests.e2e.running import Service, running, sluice
from tests.upstreams.providing import in_background, listing
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

PROVIDER_KEY = "sk-c4nary-Sesame-Open-91"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
USER = "grace@example.org"
DECLARED = {
    "groups": [
        {"name": "email", "title": "E-mail", "members": [{"kind": "tool", "name": "mail__*"}]},
        {"name": "work", "members": [{"kind": "group", "name": "email"}]},
    ],
    "concerns": [
        {"name": "security", "description": "Level", "values": ["high", "low"], "default": "low"},
        {
            "name": "latency",
            "description": "Seconds",
            "values": {"min": 1, "max": 60, "step": 1},
            "default": 5,
        },
    ],
    "concernMappings": [{"kind": "tool", "name": "mail__*", "concerns": {"security": ["high"]}}],
    "pipelines": [{"name": "to_model", "steps": [{"name": "secret_redaction"}]}],
    "policy": {"audit_content": True, "audit_end_users": True},
}
NOWHERE = "sqlite:////nonexistent/sluice.db"
"""The database of commands that must not open one."""
_VARIED = (
    (re.compile(r"slc_[0-9a-f]{8}_[\w-]{43}"), "KEY"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "HEX"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"), "TIME"),
    (re.compile(r"\d+\.\d+ ms"), "MS"),
    (re.compile(r"ersion \d+"), "ersion N"),
    (re.compile(r"order \d+"), "order N"),
)


def plain(text: str, name: str = "") -> str:
    """Return what a command printed without what differs from one time to the next, and without its tenant.

    There, the key decides the tenant, and a command does not know its name.
    """
    for pattern, word in _VARIED:
        text = pattern.sub(word, text)
    text = text.replace(" of tenant default", "")
    return text.replace(name, "NAME") if name else text


def paths_in_both_places() -> set[str]:
    """Return the commands that work here and there."""
    return {each.path for each in placed_commands(get_command(build())) if each.here and each.there}


@dataclass
class Places:
    """A running service, and the settings of a host that has its database."""

    service: Service
    folder: Path
    names: dict[str, str] = field(default_factory=dict)
    """What stands for ids in commands, as ``{document}``."""

    def here(self, command: str, given: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        """Run a command with the database of this host."""
        return sluice(*self.words(command), environment={**self.service.environment, **more}, given=given)

    def there(self, command: str, given: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        """Run a command at the service, on a host that has no database."""
        return sluice(
            *self.words(command), "--url", self.service.url, environment={**self.abroad, **more}, given=given
        )

    @property
    def abroad(self) -> dict[str, str]:
        """The environment of a host that knows the service by its address and its key alone."""
        return {
            **self.service.environment,
            "SLUICE_DATABASE__URL": NOWHERE,
            "SLUICE_API_KEY": self.service.key,
        }

    def words(self, command: str) -> Sequence[str]:
        return [word.format(**self.names) if "{" in word else word for word in command.split()]

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Ask the service itself."""
        answer = httpx2.request(
            method,
            f"{self.service.url}/api/v1{path}",
            json=body,
            headers={"authorization": f"Bearer {self.service.key}", **headers},
            trust_env=False,
            timeout=50,
        )
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def must(self, command: str, given: str = "") -> str:
        """Run a command here that must succeed, and return what it printed."""
        done = self.here(command, given)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def two_places(folder: Path) -> Iterator[Places]:
    """Run a service and store something of everything in it."""
    with ExitStack() as stack:
        address = stack.enter_context(serving_http(ScriptedServer("alpha")))
        provider = stack.enter_context(in_background(listing({"data": [{"id": "gpt-5-mini"}]})))
        service = stack.enter_context(
            running(folder, SLUICE_UPSTREAMS__ALLOWED_NETWORKS="127.0.0.0/8", OPENAI_API_KEY=PROVIDER_KEY)
        )
        places = Places(service, folder)
        declared = {
            **DECLARED,
            "mcpServers": {"alpha": {"url": address}},
            "providers": [
                {
                    "name": "main",
                    "kind": "openai",
                    "baseUrl": f"http://127.0.0.1:{provider.port}/v1",
                    "apiKey": "${OPENAI_API_KEY}",
                    "allowedNetworks": ["127.0.0.0/8"],
                }
            ],
        }
        places.names = {"files": str(folder), "address": address}
        (folder / "declared.json").write_text(json.dumps(declared))
        (folder / "policy.json").write_text(json.dumps({**DECLARED["policy"], "limits": {"burst": 77}}))
        (folder / "notes.md").write_text("# Plans\nFocus on the expansion.\n")
        (folder / "values.txt").write_text(f"{SECRET}\n")
        places.must("apply {files}/declared.json")
        places.must("documents add {files}/notes.md -c docs")
        for scope in ("talk-1", "talk-2"):
            redact(places, scope)
        _leave_traces(places)
        yield places


def redact(places: Places, scope: str) -> None:
    """Put a secret into a scope."""
    context = [{"type": "text", "text": f"The token is {SECRET}"}]
    body = {"arguments": {"scope": scope}, "context": context}
    places.ask("POST", "/middleware/secret_redaction/invoke", body)


def _leave_traces(places: Places) -> None:
    """Make events that keep something, and note the ids that commands take."""
    logged = {"context": [{"type": "text", "text": "1.10 and ü"}]}
    places.ask("POST", "/middleware/audit_logging/invoke", logged, **{"x-sluice-user": USER})
    events = places.ask("GET", "/audit/events?action=middleware.invoke&limit=1")["items"]
    (document,) = json.loads(places.must("documents list -c docs --json"))
    erased = places.must("subjects erase --scope talk-2 --reason Request-1 --yes")
    places.names |= {
        "event": events[0]["id"],
        "document": document["id"],
        "erasure": json.loads(erased.splitlines()[1])["id"],
        "until": datetime.now(UTC).isoformat(),
    }
