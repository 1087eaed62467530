"""`sluice providers` and the member `providers` of the declarative file, on the host."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.running import begun, sluice
from tests.upstreams.providing import in_background, listing

KEY = "sk-c4nary-Sesame-Open-91"


class Host:
    """Commands in one folder; whatever they print never holds the key."""

    def __init__(self, folder: Path) -> None:
        self._environment = begun(folder, OPENAI_API_KEY=KEY)

    def said(self, *arguments: str, given: str = "", code: int = 0) -> str:
        done = sluice(*arguments, environment=self._environment, given=given)
        assert done.returncode == code, done.stderr
        assert KEY not in done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr


def test_providers_are_stored_listed_tested_and_deleted_on_the_host(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.said("keys", "create", "--role", "operator")  # a first command, which makes the database
    with in_background(listing({"data": [{"id": "gpt-5-mini"}]})) as script:
        body = (
            f'{{kind: openai, baseUrl: "http://127.0.0.1:{script.port}/v1", apiKey: "${{OPENAI_API_KEY}}", '
        )
        body += 'models: ["gpt-*"], aliases: {fast: gpt-5-mini}, allowedNetworks: ["127.0.0.0/8"]}'
        assert "main is stored with order 10." in host.said("providers", "put", "main", "-", given=body)
        assert "gpt-5-mini" in host.said("providers", "test", "main")
        assert script.requests[0][1]["authorization"] == f"Bearer {KEY}"
        (listed,) = json.loads(host.said("providers", "list", "--json"))
        assert (listed["name"], listed["origin"], listed["hasApiKey"]) == ("main", "host", True)
        assert json.loads(host.said("providers", "get", "main")) == listed
        assert "fast gpt-*" in host.said("providers", "list")
    assert "refused" in host.said("providers", "test", "main", code=1)
    moved = '{kind: openai, baseUrl: "https://api.example.com/v1"}'
    assert "Supply the values" in host.said("providers", "put", "main", "-", given=moved, code=1)
    missing = body.replace("OPENAI_API_KEY", "NO_SUCH_VARIABLE")
    assert "no variable NO_SUCH_VARIABLE" in host.said("providers", "put", "main", "-", given=missing, code=1)
    assert "--yes" in host.said("providers", "delete", "main", code=2)
    host.said("providers", "delete", "main", "--yes")
    assert json.loads(host.said("providers", "list", "--json")) == []
    assert "no such provider" in host.said("providers", "get", "main", code=1)


def test_the_file_declares_providers_in_their_order(tmp_path: Path) -> None:
    host, file = Host(tmp_path), tmp_path / "sluice.json"
    local: dict[str, Any] = {
        "name": "local",
        "kind": "openai",
        "baseUrl": "http://127.0.0.1:9/v1",
        "allowedNetworks": ["127.0.0.0/8"],
    }
    main = {
        "name": "main",
        "kind": "openai",
        "baseUrl": "https://api.openai.com/v1",
        "apiKey": "${OPENAI_API_KEY}",
    }
    file.write_text(json.dumps({"providers": [main, local]}))
    assert "+ provider main\n+ provider local\n2 changed" in host.said("apply", str(file))
    assert "Nothing to change" in host.said("apply", str(file))
    listed = json.loads(host.said("providers", "list", "--json"))
    assert [(one["name"], one["order"], one["origin"]) for one in listed] == [
        ("local", 2, "file"),
        ("main", 1, "file"),
    ]
    file.write_text(json.dumps({"providers": [local | {"models": ["llama-*"]}]}))
    assert "~ provider local\n- provider main\n2 changed" in host.said("apply", str(file))
    file.write_text(
        json.dumps({"providers": [local, local | {"kind": "other"}, local | {"modles": []}]}, indent=1)
    )
    faults = host.said("apply", str(file), code=1)
    assert "providers[1].kind: Input should be 'openai' or 'anthropic'" in faults
    assert "providers[2].modles: There is no such member" in faults
    file.write_text(json.dumps({"providers": [local, local]}))
    assert "local is listed twice" in host.said("apply", str(file), code=1)
