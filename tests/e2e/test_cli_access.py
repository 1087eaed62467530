"""``sluice access explain``: a dry run of a token that says which rule maps it, and prints no value of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import begun, environment_of, running, sluice
from tests.integration.token_issuer import AUDIENCE, Issuer, token_issuer

RULES = [
    {"when": {"groups": ["support", "on-call"]}, "tenant": "default", "roles": ["invoker", "restorer"]},
    {"when": {"groups": "support"}, "tenant": "default", "roles": ["invoker"], "grants": ["desk"]},
    {"when": {"sub": "ada"}, "tenant": "default", "roles": ["auditor"]},
    {"when": {"groups": "strangers"}, "tenant": "elsewhere", "roles": ["invoker"]},
]


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


def test_a_dry_run_says_what_maps_a_token_and_what_it_misses(issuer: Issuer, tmp_path: Path) -> None:
    entry = {"issuer": issuer.url, "audience": [AUDIENCE], "rules": RULES}
    environment = begun(tmp_path, SLUICE_AUTH__ISSUERS=json.dumps([entry]))
    assert sluice("keys", "create", "--role", "invoker", environment=environment).returncode == 0

    def tried(code: int, *options: str, **claims: object) -> str:
        done = sluice(
            "access", "explain", "-", *options, environment=environment, given=issuer.token(**claims)
        )
        assert done.returncode == code, done.stderr
        assert "of-payroll" not in done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    shown = json.loads(tried(0, "--json", sub="ada", groups=["support", "of-payroll"]))
    assert (shown["taken"], shown["reason"], shown["issuer"]) == (True, None, issuer.url)
    assert [(rule["maps"], rule["missing"]) for rule in shown["rules"]] == [
        *((False, ["groups"]), (True, []), (False, []), (False, ["groups"])),
    ]
    table = tried(0, groups=["support"])
    assert "misses groups" in table and "maps" in table and "desk" in table
    assert "no rule maps it" in tried(1, sub="grace-of-payroll", groups=["of-payroll"])
    assert "does not exist here" in tried(1, sub="grace", groups=["strangers"])
    assert "audiences" in tried(1, aud="https://of-payroll.example.com")
    bare = sluice("access", "explain", "x", environment=environment_of(tmp_path))
    assert bare.returncode == 1 and "No issuer is trusted here" in bare.stderr


def test_a_dry_run_says_what_a_service_may_do_for_an_end_user(issuer: Issuer, tmp_path: Path) -> None:
    bounds = [
        {"users": ["mallory-of-payroll"], "refuse": True},
        {"users": ["ada-*"], "roles": ["invoker", "auditor"], "grants": ["desk"]},
    ]
    rules = [{"when": {"sub": "crm"}, "tenant": "default", "roles": ["invoker", "restorer", "delegate"]}]
    environment = begun(
        tmp_path,
        SLUICE_AUTH__ISSUERS=json.dumps([{"issuer": issuer.url, "audience": [AUDIENCE], "rules": rules}]),
        SLUICE_AUTH__END_USERS=json.dumps([{"tenant": "default", "rules": bounds}]),
    )
    made = [
        sluice(
            "keys", "create", *(part for role in roles for part in ("--role", role)), environment=environment
        )
        for roles in (("invoker", "restorer", "delegate"), ("invoker",))
    ]
    key, plain = (each.stdout.split("_")[1] for each in made)
    policy = tmp_path / "policy.json"
    own = {
        "provisioning": {"required": False},
        "rules": [{"directory": {"groups": ["staff"]}, "refuse": True}],
    }
    policy.write_text(json.dumps({"identity": {"end_users": own}}))
    assert sluice("policies", "put", str(policy), environment=environment).returncode == 0

    def tried(code: int, *options: str, **given: str) -> str:
        done = sluice("access", "explain", *options, environment=environment, **given)
        assert done.returncode == code, done.stderr
        assert "payroll" not in done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    table = tried(0, key, "--user", "ADA-of-payroll")
    assert "names others" in table and "counts" in table and "not in staff of the mirror" in table
    assert "it has: invoker, as desk." in table
    assert "it has: delegate invoker restorer." in tried(0, key, "--user", "grace-of-payroll")
    assert "a rule refuses them" in tried(1, key, "--user", "Mallory-of-Payroll")
    assert "lacks the role delegate" in tried(1, plain, "--user", "grace-of-payroll")
    assert "no such key" in tried(1, "0123abcd", "--user", "x")
    shown = json.loads(tried(0, "-", "--user", "ada-of-payroll", "--json", given=issuer.token(sub="crm")))
    assert (shown["taken"], shown["end_user"]["roles"], shown["end_user"]["grants"]) == (
        *(True, ["invoker"]),
        ["desk"],
    )
    assert [(rule["source"], rule["counts"]) for rule in shown["end_user"]["rules"]] == [
        *(("settings", False), ("settings", True)),
        ("policy", False),
    ]
    said = tried(1, key, "--user", "mallory-of-payroll", "--json")
    refused = json.JSONDecoder().raw_decode(said)[0]["end_user"]
    assert (refused["taken"], refused["refusal"]) == (False, "refused")


def test_a_service_says_the_same_and_to_custodians_of_a_tenant_what_concerns_it(
    issuer: Issuer, tmp_path: Path
) -> None:
    entry = {"issuer": issuer.url, "audience": [AUDIENCE], "rules": RULES}
    with running(tmp_path, SLUICE_AUTH__ISSUERS=json.dumps([entry])) as service:

        def tried(code: int, key: str | None, *options: str, **claims: object) -> str:
            token = issuer.token(**claims)
            there = () if key is None else ("--url", service.url, "--key", key)
            done = sluice(
                *("access", "explain", "-", *options, *there), environment=service.environment, given=token
            )
            assert done.returncode == code, done.stderr
            assert token not in done.stdout + done.stderr
            assert "of-payroll" not in done.stdout + done.stderr
            notes = [line for line in done.stderr.splitlines() if not line.startswith("sluice: ")]
            return done.stdout + "".join(notes)

        made = sluice("keys", "create", "--role", "key-custodian", environment=service.environment)
        custodian = made.stdout.strip()
        for options in ((), ("--json",)):
            here = tried(0, None, *options, sub="ada", groups=["support", "of-payroll"])
            assert here == tried(0, service.key, *options, sub="ada", groups=["support", "of-payroll"])
        assert "elsewhere" in here
        own = json.loads(tried(0, custodian, "--json", sub="ada", groups=["support", "of-payroll"]))
        assert (own["taken"], own["issuer"], len(own["rules"])) == (True, issuer.url, 3)
        assert {rule["tenant"] for rule in own["rules"]} == {"default"}
        strange = json.loads(tried(1, custodian, "--json", sub="grace", groups=["strangers"]))
        assert (strange["reason"], [rule["maps"] for rule in strange["rules"]]) == ("elsewhere", [False] * 3)
        assert "audiences" in tried(1, custodian, aud="https://of-payroll.example.com")

        other = sluice("keys", "create", "--role", "invoker", environment=service.environment).stdout.strip()
        assert tried(1, other, sub="ada") == ""
        query = ("audit", "query", "--action", "identity.explain", "--json")
        events = sluice(*query, environment=service.environment).stdout
        assert [json.loads(event)["outcome"] for event in events.splitlines()].count("refused") == 1
        assert "eyJ" not in events
