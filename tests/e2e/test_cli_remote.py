"""Each command that works here and there prints the same at both places, and says which of them it is."""

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import sluice
from tests.e2e.two_places import (
    PROVIDER_KEY,
    SECRET,
    USER,
    Places,
    paths_in_both_places,
    plain,
    redact,
    two_places,
)

pytestmark = pytest.mark.timeout(300)

READING = (
    "keys list",
    "keys list --json",
    "keys list --tenant acme --json",
    "tenants list",
    "tenants list --json",
    "issuers list",
    "issuers list --json",
    "issuers show https://kept.example.com",
    "policies get",
    "policies diff {files}/policy.json",
    "policies diff {files}/policy.json --json",
    "policies explain limits.burst",
    "servers list",
    "servers list --json",
    "servers show alpha",
    "servers test alpha",
    "servers grants",
    "servers grants --json",
    "providers list",
    "providers list --json",
    "providers get main",
    "providers test main",
    "groups list",
    "groups list --json",
    "groups show email",
    "groups export",
    "groups export --format json",
    "concerns list",
    "concerns list --json",
    "concerns show security",
    "concerns show latency --json",
    "pipelines list",
    "pipelines list --json",
    "pipelines show to_model",
    "pipelines run to_model --dry-run",
    "documents list",
    "documents list --json",
    "documents list -c docs",
    "documents list -c docs --json",
    "vault scopes",
    "vault scopes --json",
    "vault show talk-1",
    "vault find",
    "subjects search {files}/values.txt --reason Request-2",
    "subjects search - --variants --reason Request-2 --json",
    "subjects erase {files}/values.txt --preview --reason Request-2",
    "subjects receipt {erasure}",
    "audit query --until {until} --limit 20",
    "audit query --until {until} --outcome ok --json",
    "audit export --until {until}",
    "audit export --until {until} --format csv",
    "audit counts --by action --by outcome --until 2026-01-01 --json",
    "audit content {event} --reason Complaint",
    "audit end-user {event} --reason Complaint",
    "audit checkpoint",
    "audit prove {event}",
    "audit key",
)
OF_THEIR_OWN = {
    "keys create": "test_keys_live_and_end_alike",
    "keys rotate": "test_keys_live_and_end_alike",
    "keys revoke": "test_keys_live_and_end_alike",
    "keys approve": "test_keys_live_and_end_alike",
    "tenants create": "test_tenants_begin_and_end",
    "tenants disable": "test_tenants_begin_and_end",
    "tenants erase": "test_tenants_begin_and_end",
    "policies put": "test_a_policy_is_stored_alike",
    "servers approve": "test_servers_are_changed_alike",
    "servers pause": "test_servers_are_changed_alike",
    "servers resume": "test_servers_are_changed_alike",
    "servers remove": "test_servers_are_changed_alike",
    "servers revoke": "test_grants_are_taken_back_alike",
    "providers put": "test_providers_are_stored_and_deleted_alike",
    "providers delete": "test_providers_are_stored_and_deleted_alike",
    "groups import": "test_groups_and_pipelines_are_stored_alike",
    "pipelines put": "test_groups_and_pipelines_are_stored_alike",
    "pipelines delete": "test_groups_and_pipelines_are_stored_alike",
    "documents add": "test_documents_go_in_are_found_and_go_alike",
    "documents search": "test_documents_go_in_are_found_and_go_alike",
    "documents delete": "test_documents_go_in_are_found_and_go_alike",
    "vault expire": "test_scopes_end_alike",
    "vault erase": "test_scopes_end_alike",
    "subjects erase": "test_scopes_end_alike",
    "access explain": "tests/e2e/test_cli_access.py",
    **dict.fromkeys(
        ("issuers add", "issuers change", "issuers remove", "issuers test"), "test_issuers_live_and_end_alike"
    ),
    "audit verify": "test_the_log_is_verified_there",
    "status": "tests/e2e/test_status.py",
}
"""Commands that change something, or print something else there, and what tries them."""
GIVEN = f"{SECRET}\n"
ISSUER = """
issuer: https://NAME.example.com
audience: [https://sluice.example.com/mcp]
tenants: [acme]
"""
TRIES = 4
"""How often two places are compared: between them a background may seal events or sign a checkpoint."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    with two_places(tmp_path_factory.mktemp("places")) as made:
        made.must("tenants create acme")
        made.must("keys create --tenant acme --role invoker --name desk")
        made.must("issuers add -", ISSUER.replace("NAME", "kept"))
        yield made


def notes(said: str) -> list[str]:
    """Return what a command told beside where it works, and what only who has connections to servers can tell."""
    return [line for line in said.splitlines() if not line.startswith(("sluice: ", "Note: "))]


def alike(places: Places, command: str, given: str = "") -> str:
    """Run one command for two things of the same kind, here and there, and return what it printed there."""
    said = []
    for run, name in ((places.here, "xh"), (places.there, "xt")):
        done = run(command.replace("NAME", name), given.replace("NAME", name))
        assert done.returncode == 0, (command, done.stderr)
        said.append((done.stdout, done.stderr))
    (here, noted_here), (there, noted_there) = said
    assert plain(here, "xh") == plain(there, "xt"), command
    assert [plain(note, "xh") for note in notes(noted_here)] == [
        plain(note, "xt") for note in notes(noted_there)
    ]
    assert noted_here.startswith(f"sluice: on this host, SQLite database {places.folder}/sluice.db\n")
    assert noted_there.startswith(
        f"sluice: at {places.service.url} as key {places.service.key.split('_')[1]}\n"
    )
    for secret in (places.service.key, PROVIDER_KEY):
        assert secret not in noted_here + noted_there + here + there
    return there


def test_no_command_is_left_out() -> None:
    tried = {
        path for path in paths_in_both_places() if any(f"{each} ".startswith(f"{path} ") for each in READING)
    }
    assert tried | OF_THEIR_OWN.keys() == paths_in_both_places() | {"subjects erase"}
    tests = {name for name in OF_THEIR_OWN.values() if "/" not in name}
    assert tests <= globals().keys()


@pytest.mark.parametrize("command", READING)
def test_what_is_read_is_the_same_here_and_there(places: Places, command: str) -> None:
    for left in range(TRIES)[::-1]:
        here, there = places.here(command, GIVEN), places.there(command, GIVEN)
        assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
        if here.stdout == there.stdout or not left:
            break
    if command.startswith(("audit counts", "pipelines run")):
        assert plain(re.sub(r'"(counted|sealed)": \d+', "", here.stdout)) == plain(
            re.sub(r'"(counted|sealed)": \d+', "", there.stdout)
        )
    else:
        assert here.stdout == there.stdout
    assert here.stdout.strip()
    assert list(map(plain, notes(here.stderr))) == list(map(plain, notes(there.stderr)))
    assert there.stderr.startswith(f"sluice: at {places.service.url} as key ")
    assert here.stderr.startswith("sluice: on this host, SQLite database ")


def test_what_is_kept_sealed_is_opened_there(places: Places) -> None:
    content = places.there("audit content {event} --reason Complaint")
    assert content.stdout == '[{"type":"text","text":"1.10 and ü"}]\n'
    assert places.there("audit end-user {event} --reason Complaint").stdout == f"{USER}\n"


def test_keys_live_and_end_alike(places: Places) -> None:
    made = alike(places, "keys create --role auditor --name NAME --cidr 127.0.0.0/8 --expires 90d").strip()
    assert re.fullmatch(r"slc_[0-9a-f]{8}_[\w-]{43}", made)
    listed = {each["name"]: each for each in json.loads(places.must("keys list --json"))}
    assert listed["xt"]["cidrs"] == ["127.0.0.0/8"]
    assert listed["xt"]["expires"] is not None
    places.names |= {name: listed[name]["id"] for name in ("xh", "xt")}
    assert places.there("keys list", SLUICE_API_KEY=made).returncode == 1  # an auditor lists no keys
    rotated = alike(places, "keys rotate {NAME} --overlap 0s").strip()
    assert rotated.split("_")[1] == made.split("_")[1]
    assert rotated != made
    alike(places, "keys revoke {NAME} --yes")
    assert {
        each["state"] for each in json.loads(places.must("keys list --json")) if each["name"] in {"xh", "xt"}
    } == {"revoked"}

    custodian = places.must("keys create --role key-custodian").strip()
    for name in ("xh", "xt"):
        pending = places.there(f"keys create --role restorer --name p-{name}", SLUICE_API_KEY=custodian)
        assert (pending.returncode, "waits for restorer" in pending.stderr) == (0, True)
        places.names[name] = pending.stdout.split("_")[1]
    alone = places.there("keys approve {xt}", SLUICE_API_KEY=custodian)
    assert (alone.returncode, alone.stdout) == (1, "")
    alike(places, "keys approve {NAME}")


def test_tenants_begin_and_end(places: Places) -> None:
    alike(places, "tenants create NAME")
    alike(places, "tenants disable NAME")
    unasked = places.there("tenants erase xt")
    assert (unasked.returncode, "--yes" in unasked.stderr) == (2, True)
    assert "Tenant xh is erased" in places.must("tenants erase xh --yes")
    done = places.there("tenants erase xt --yes")
    assert (done.returncode, done.stdout) == (0, "The erasure of tenant xt is ordered.\n")
    states = {each["name"]: each for each in json.loads(places.must("tenants list --json"))}
    assert states["xt"]["erased"] is not None


def test_a_policy_is_stored_alike(places: Places) -> None:
    assert places.here("policies put {files}/policy.json --tenant acme").returncode == 0
    assert "It widens no right." in alike(places, "policies put {files}/policy.json --tenant acme")
    version = json.loads(places.there("policies diff {files}/policy.json --tenant acme --json").stdout)[
        "version"
    ]
    late = f"policies put {{files}}/policy.json --tenant acme --expected-version {version - 1}"
    for run in (places.here, places.there):
        assert run(late).returncode == 1
        assert run("policies get --tenant nobody").returncode == 1
    assert json.loads(places.there("policies get --tenant acme").stdout)["limits"]["burst"] == 77


def test_servers_are_changed_alike(places: Places) -> None:
    for name in ("xh", "xt"):
        settings = {"type": "http", "url": places.names["address"]}
        places.ask("POST", "/servers", {"name": name, "settings": settings})
    alike(places, "servers approve NAME --only tool:region")
    for action in ("approve", "pause", "resume"):
        alike(places, f"servers {action} NAME")
    asked = places.there("servers remove xt")
    assert (asked.returncode, "--yes" in asked.stderr) == (2, True)
    alike(places, "servers remove NAME --yes")
    assert {each["name"] for each in json.loads(places.must("servers list --json"))} == {"alpha"}


def test_grants_are_taken_back_alike(places: Places) -> None:
    with sqlite3.connect(places.folder / "sluice.db", timeout=30) as database:
        (stamp,) = database.execute("SELECT created FROM server LIMIT 1").fetchone()
        for holder in ("xh", "xt"):
            row = ("default", holder, "alpha", "https://issuer.example", b"sealed", stamp, stamp, None)
            database.execute("INSERT INTO user_grant VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    assert places.here("servers grants --json").stdout == places.there("servers grants --json").stdout
    alike(places, "servers revoke alpha NAME --yes")
    assert json.loads(places.must("servers grants --json")) == []


def test_providers_are_stored_and_deleted_alike(places: Places) -> None:
    body = '{kind: openai, baseUrl: "https://api.example.com/v1", apiKey: "${OPENAI_API_KEY}"}'
    alike(places, "providers put NAME -", body)
    shown = json.loads(places.must("providers get xt"))
    assert (shown["origin"], shown["hasApiKey"]) == ("api", True)
    alike(places, "providers delete NAME --yes")


def test_issuers_live_and_end_alike(places: Places) -> None:
    alike(places, "issuers add -", ISSUER)
    alike(places, "issuers change -", f"{ISSUER}maxTokenAge: 60\n")
    shown = json.loads(places.must("issuers show https://xt.example.com"))
    assert (shown["version"], shown["settings"]["maxTokenAge"]) == (2, 60)
    tried = [run("issuers test https://xt.example.com") for run in (places.here, places.there)]
    assert [done.returncode for done in tried] == [1, 1]
    assert notes(tried[0].stderr) == notes(tried[1].stderr)
    alike(places, "issuers remove https://NAME.example.com --yes")
    gone = [run("issuers show https://xt.example.com") for run in (places.here, places.there)]
    assert [done.returncode for done in gone] == [1, 1]


def test_groups_and_pipelines_are_stored_alike(places: Places) -> None:
    groups = "groups: [{name: NAME, members: [{kind: tool, name: 'mail__*'}]}]"
    alike(places, "groups import - --dry-run", groups)
    alike(places, "groups import -", groups)
    alike(places, "groups show NAME")
    alike(places, "pipelines put -", "{name: NAME, steps: [{name: timestamp_injector}]}")
    alike(places, "pipelines show NAME --json")
    alike(places, "pipelines delete NAME --yes --expected-version 1")
    wrong = [run("groups import -", "groups: [{nam: x}]") for run in (places.here, places.there)]
    assert [done.returncode for done in wrong] == [1, 1]


def test_documents_go_in_are_found_and_go_alike(places: Places, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("# Plan of the expansion\nExpansion to new markets.\n")
    (tmp_path / "broken.pdf").write_text("no PDF")
    for run, name in ((places.here, "xh"), (places.there, "xt")):
        done = run(f"documents add {tmp_path} -c {name} --access role:auditor")
        assert (done.returncode, done.stdout) == (1, "1 created\n")
        assert "[1/2] broken.pdf  The document cannot be read as a PDF" in done.stderr
    alike(places, f"documents add {tmp_path}/plan.md -c NAME --access role:auditor")  # unchanged
    for run, name in ((places.here, "xt"), (places.there, "xh")):  # each place knows what the other one added
        assert (
            run(f"documents add {tmp_path}/plan.md -c {name} --access role:auditor").stdout == "1 unchanged\n"
        )
    found = places.there("documents search expansion --as role:auditor --source xt --json")
    assert [each["title"] for each in json.loads(found.stdout)] == ["Plan of the expansion"]
    assert "markets" not in found.stdout
    assert (
        json.loads(places.there("documents search expansion --as role:invoker --source xt --json").stdout)
        == []
    )
    assert places.there("documents search expansion").returncode == 2
    for name in ("xh", "xt"):
        (listed,) = json.loads(places.must(f"documents list -c {name} --json"))
        places.names[name] = listed["id"]
    alike(places, "documents delete {NAME} -c NAME --yes")
    alike(places, "documents delete --all -c NAME --yes")


def test_scopes_end_alike(places: Places) -> None:
    for name in ("xh", "xt"):
        redact(places, name)
    alike(places, "vault expire NAME 2099-01-31")
    handle = places.there("vault find", GIVEN).stdout.splitlines()[1].split()[1]
    erased = json.loads(alike(places, f"vault erase --scope NAME --handle {handle} --yes"))
    assert sum(erased["erased"].values()) == 1
    alike(places, "vault erase --scope NAME --yes")
    for run in (places.here, places.there):
        redact(places, "xv")
        everywhere = run("vault erase --value - --yes", GIVEN)
        assert sum(json.loads(everywhere.stdout)["erased"].values()) >= 1
    for run, name in ((places.here, "xh"), (places.there, "xt")):
        redact(places, f"{name}2")
        done = run(f"subjects erase --scope {name}2 --reason Request-3 --yes")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[1])["scopes"] == 1
    redact(places, "talk-1")


def test_the_log_is_verified_there(places: Places) -> None:
    done = places.there("audit verify --json")
    assert (done.returncode, json.loads(done.stdout)["holds"]) == (0, True)
    assert json.loads(done.stdout)["events"] > 0
    shown = places.there("audit verify")
    assert (shown.returncode, shown.stdout, "all hold" in shown.stderr) == (0, "", True)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("audit verify --key KEY", "verify on the host"),
        ("audit verify --processes 2", "verify on the host"),
        ("audit query --archive /mnt", "reads no archive"),
        ("audit key --renew", "on the host alone"),
        ("vault scopes --tenant acme", "the key decides"),
        ("documents search plans --as role:auditor --as role:invoker", "as one reader"),
        ("vault seal-ring", "a key ring never leaves its host"),
        ("db upgrade", "only the owner of the tables"),
        ("audit purge", "a service does it by itself"),
        ("apply {files}/declared.json", "approves the servers"),
    ],
)
def test_what_makes_no_sense_there_is_a_mistake_that_says_how_to_mend_it(
    places: Places, command: str, says: str
) -> None:
    done = places.there(command)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_only_url_sends_a_command_away_and_only_with_it_there_is_a_key(places: Places) -> None:
    away = {**places.abroad, "SLUICE_URL": places.service.url}
    for command in ("keys list", "vault scopes", "db current", "audit query", "policies get"):
        done = sluice(*command.split(), environment=away)
        assert (done.returncode, done.stdout) == (1, ""), command
        assert "There is no SQLite database /nonexistent/sluice.db" in done.stderr
    done = sluice("keys", "list", "--key", places.service.key, environment=away)
    assert (done.returncode, "--key is for a service" in done.stderr) == (2, True)
    assert places.service.key not in done.stderr


def test_a_key_with_another_role_is_refused_and_never_printed(places: Places) -> None:
    key = places.must("keys create --role invoker").strip()
    for command in ("keys list", "vault scopes", "policies get", "tenants create other", "audit query"):
        done = places.there(command, SLUICE_API_KEY=key)
        assert (done.returncode, done.stdout) == (1, ""), command
        assert f"as key {key.split('_')[1]}" in done.stderr
        assert re.search(r"\(forbidden, request \S+\)", done.stderr), done.stderr
        assert key not in done.stderr
    wrong = places.there("keys list", SLUICE_API_KEY=f"{key[:-4]}AAAA")
    assert (wrong.returncode, "AAAA" in wrong.stderr) == (1, False)
    nobody = places.there("keys list", SLUICE_API_KEY="")
    assert (nobody.returncode, "SLUICE_API_KEY" in nobody.stderr) == (1, True)
    assert "other" not in places.must("tenants list")


def test_addresses_that_would_give_a_key_away_are_refused(places: Places) -> None:
    for url, says, code in (
        ("http://sluice.example.com", "https://", 2),
        ("https://ada:s3cret@sluice.example.com", "no name and no password", 2),
        ("sluice.example.com", "https://", 2),
        ("http://127.0.0.1:1", "No service answers", 3),
    ):
        done = sluice("vault", "scopes", "--url", url, environment=places.abroad)
        assert (done.returncode, done.stdout) == (code, ""), url
        assert says in done.stderr
        assert "s3cret" not in done.stderr
        assert places.service.key not in done.stderr


def test_what_is_cut_off_leaves_no_file_and_none_is_written_over(places: Places, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    refused = places.there(
        f"audit export --output {file}", SLUICE_API_KEY=places.must("keys create --role invoker").strip()
    )
    assert (refused.returncode, file.exists()) == (1, False)
    assert places.there(f"audit export --output {file}").returncode == 0
    written = file.read_bytes()
    again = places.there(f"audit export --output {file}")
    assert (again.returncode, "already exists" in again.stderr) == (1, True)
    assert file.read_bytes() == written
