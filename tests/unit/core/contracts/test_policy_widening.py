"""Which changes of a policy widen rights: each in one direction, and never in the other."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.core.contracts.policy import Policy
from app.core.contracts.policy_members import members
from app.core.contracts.widening.policies import RULES, widenings

REDACTS = {"name": "pii_redaction"}
HOOK: dict[str, Any] = {"servers": ["crm"], "results": [REDACTS]}
TOOL = {"kind": "tool", "name": "crm__find"}
TOOLS = {"kind": "tool", "name": "crm__*"}


MAPS = {"issuer": "https://login.example.com", "when": {"groups": "a"}, "roles": ["invoker"]}


def pointers(before: Any, after: Any) -> list[str]:
    return [found.pointer for found in widenings(Policy(**before), Policy(**after))]


@pytest.mark.parametrize(
    ("narrow", "wide", "pointer"),
    [
        ({"allowed_middlewares": ["a"]}, {"allowed_middlewares": ["b", "a"]}, "/allowed_middlewares"),
        ({"allowed_middlewares": []}, {}, "/allowed_middlewares"),
        ({"fixed_arguments": {"a": {"x": 1}}}, {}, "/fixed_arguments/a/x"),
        (
            {"fixed_arguments": {"a/b": {"x": 1, "y": 2}}},
            {"fixed_arguments": {"a/b": {"y": 2}}},
            "/fixed_arguments/a~1b/x",
        ),
        ({"timeouts_ms": {"a": 5}}, {"timeouts_ms": {"a": 6}}, "/timeouts_ms/a"),
        ({"timeouts_ms": {"a": 5}}, {}, "/timeouts_ms/a"),
        ({}, {"audit_content": True}, "/audit_content"),
        ({}, {"audit_end_users": True}, "/audit_end_users"),
        ({"scope_ttl_s": 60}, {"scope_ttl_s": 61}, "/scope_ttl_s"),
        ({"scope_ttl_s": 60}, {}, "/scope_ttl_s"),
        ({}, {"scope_ttl_s": 30 * 24 * 3600 + 1}, "/scope_ttl_s"),
        (
            {"limits": {"requests_per_second": 0.5}},
            {"limits": {"requests_per_second": 0.6}},
            "/limits/requests_per_second",
        ),
        ({"limits": {"max_depth": 5}}, {}, "/limits/max_depth"),
        ({"limits": {"description_reads_per_minute": 5}}, {}, "/limits/description_reads_per_minute"),
        ({"grants": []}, {}, "/grants"),
        ({"grants": []}, {"grants": [{"groups": ["g"]}]}, "/grants/0"),
        ({"grants": [{"members": [TOOL]}]}, {"grants": [{"members": [TOOLS]}]}, "/grants/0"),
        ({"grants": [{"keys": ["k"], "members": [TOOL]}]}, {"grants": [{"members": [TOOL]}]}, "/grants/0"),
        (
            {"grants": [{"roles": ["restorer"], "members": [TOOL]}]},
            {"grants": [{"roles": ["restorer", "invoker"], "members": [TOOL]}]},
            "/grants/0",
        ),
        (
            {"grants": [{"members": [{**TOOL, "server": "crm"}]}]},
            {"grants": [{"members": [TOOL]}]},
            "/grants/0",
        ),
        ({}, {"identity": {"rules": [MAPS]}}, "/identity/rules/0"),
        (
            {"identity": {"rules": [MAPS]}},
            {"identity": {"rules": [MAPS, {**MAPS, "roles": ["auditor"]}]}},
            "/identity/rules/1",
        ),
        ({"passages": [HOOK]}, {}, "/passages/0"),
        ({"passages": [HOOK]}, {"passages": [{**HOOK, "results": []}]}, "/passages/0"),
        ({"passages": [HOOK]}, {"passages": [{**HOOK, "names": ["x"]}]}, "/passages/0"),
        ({"passages": [HOOK]}, {"passages": [{**HOOK, "restore_arguments": True}]}, "/passages/0"),
        (
            {"passages": [{**HOOK, "restore_arguments": True}]},
            {"passages": [{**HOOK, "restore_arguments": True, "headers": ["X-Name"]}]},
            "/passages/0",
        ),
        ({"disclosure": {"default": "staged"}}, {"disclosure": {"default": "flat"}}, "/disclosure/default"),
        ({"disclosure": {"keys": {"k": "staged"}}}, {}, "/disclosure/keys/k"),
        ({}, {"disclosure": {"without_handle": "caller"}}, "/disclosure/without_handle"),
        ({}, {"disclosure": {"caller_ttl_s": 3601}}, "/disclosure/caller_ttl_s"),
        ({"concerns": {"apply_defaults": True}}, {}, "/concerns/apply_defaults"),
        ({}, {"concerns": {"expose": True}}, "/concerns/expose"),
        ({"untrusted": {"after": "refuse"}}, {"untrusted": {"after": "confirm"}}, "/untrusted/after"),
        (
            {"untrusted": {"after": "confirm"}},
            {"untrusted": {"after": "confirm", "servers": ["web"]}},
            "/untrusted/servers",
        ),
        (
            {"untrusted": {"after": "refuse"}},
            {"untrusted": {"after": "refuse", "without_handle": "trusted"}},
            "/untrusted/without_handle",
        ),
        ({"secrets": {"restorable_by": []}}, {}, "/secrets/restorable_by"),
        ({"secrets": {"keys": ["a"]}}, {"secrets": {"keys": ["a", "b"]}}, "/secrets/keys"),
        ({}, {"interceptors": {"a": {"mode": "audit"}}}, "/interceptors/a/mode"),
        ({}, {"interceptors": {"a": {"fail_open": True}}}, "/interceptors/a/fail_open"),
        ({}, {"agentic_groups": True}, "/agentic_groups"),
        ({"custody": {"delay_h": 48}}, {"custody": {"delay_h": 47}}, "/custody/delay_h"),
        ({}, {"retention": {"audit_days": 36_500}}, "/retention/audit_days"),
        (
            {"retention": {"audit_days": 30}},
            {"retention": {"audit_days": 29, "held_scopes": ["ab" * 32]}},
            "/retention/audit_days",
        ),
        ({"retention": {"hold": True}}, {"retention": {"hold": False}}, "/retention/hold"),
        (
            {"retention": {"held_scopes": ["ab" * 32, "cd" * 32]}},
            {"retention": {"held_scopes": ["cd" * 32]}},
            "/retention/held_scopes",
        ),
    ],
)
def test_a_change_widens_in_one_direction_only(narrow: Any, wide: Any, pointer: str) -> None:
    assert pointers(narrow, wide) == [pointer]
    assert pointer not in pointers(wide, narrow) or pointer == "/passages/0"
    assert pointers(narrow, narrow) == pointers(wide, wide) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"fixed_arguments": {"a": {"x": 1}}}, {"fixed_arguments": {"a": {"x": 2}}}),
        ({"fixed_arguments": {"a": {"x": 1}}}, {"fixed_arguments": {"a": {"x": True}}}),
        ({"fixed_arguments": {"a": {"x": ["b"]}}}, {"fixed_arguments": {"a": {"x": ["b", "c"]}}}),
    ],
)
def test_another_value_of_a_fixed_argument_is_told_in_both_directions(before: Any, after: Any) -> None:
    assert pointers(before, after) == pointers(after, before) == ["/fixed_arguments/a/x"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"default_arguments": {"a": {"x": 1}}}),
        ({"default_arguments": {"a": {"x": 1}}}, {}),
        ({}, {"tool_listing": {"mode": "off"}}),
        ({"limits": {"burst": 9}}, {"limits": {"burst": 8}}),
        (
            {"grants": [{"members": [TOOLS]}]},
            {"grants": [{"members": [TOOL]}, {"keys": [], "members": [TOOL]}]},
        ),
        ({"grants": [{"groups": ["a"]}, {"groups": ["b"]}]}, {"grants": [{"groups": ["b", "a"]}]}),
        ({}, {"passages": [HOOK]}),
        (
            {"passages": [HOOK]},
            {"passages": [{**HOOK, "results": [{"name": "secret_redaction"}, REDACTS]}, HOOK]},
        ),
        ({"untrusted": {"servers": ["web"]}}, {"untrusted": {"servers": [], "without_handle": "trusted"}}),
        ({"scope_ttl_s": 5}, {"scope_ttl_s": 4}),
    ],
)
def test_what_narrows_or_changes_no_right_widens_nothing(before: Any, after: Any) -> None:
    assert pointers(before, after) == []


def test_a_default_that_a_passage_uses_cannot_be_overridden_so_it_counts() -> None:
    before = {"passages": [HOOK], "default_arguments": {"pii_redaction": {"aggressiveness": "strict"}}}
    assert pointers(before, {"passages": [HOOK]}) == ["/default_arguments/pii_redaction/aggressiveness"]


@pytest.mark.parametrize("step", ["pii_restoration", "some_pipeline"])
def test_a_step_that_could_restore_is_told_wherever_it_is_added(step: str) -> None:
    adds = {**HOOK, "results": [REDACTS, {"name": step}]}
    assert pointers({"passages": [HOOK]}, {"passages": [adds]}) == ["/passages/0"]
    assert pointers({}, {"passages": [adds]}) == ["/passages/0"]


def test_the_first_hook_that_matches_applies_so_their_order_counts() -> None:
    other = {"servers": ["web"], "results": [REDACTS]}
    assert pointers({"passages": [HOOK, other]}, {"passages": [other, HOOK]}) == [
        "/passages/0",
        "/passages/1",
    ]


def test_the_first_rule_that_matches_maps_so_one_that_goes_lets_those_behind_it_count() -> None:
    other = {**MAPS, "roles": ["invoker", "auditor"]}
    assert pointers({"identity": {"rules": [MAPS, other]}}, {"identity": {"rules": [other]}}) == [
        "/identity/rules/0"
    ]
    assert pointers({"identity": {"rules": [MAPS, other]}}, {"identity": {"rules": [MAPS]}}) == []


PARTNERS: dict[str, Any] = {"users": ["*@partner.example"], "roles": ["invoker"], "grants": ["guests"]}
STAFF: dict[str, Any] = {"directory": {"groups": ["staff"]}, "roles": ["invoker", "restorer"]}
MIRROR = {"attribute": "userName", "required": True}


def bounding(*rules: dict[str, Any], provisioning: Any = MIRROR) -> dict[str, Any]:
    return {"identity": {"end_users": {"provisioning": provisioning, "rules": list(rules)}}}


@pytest.mark.parametrize(
    ("before", "after", "widened"),
    [
        ({}, bounding(PARTNERS, STAFF), []),
        (bounding(PARTNERS), bounding(PARTNERS, STAFF), []),
        (bounding(PARTNERS), bounding({**PARTNERS, "grants": []}), []),
        (bounding(PARTNERS), bounding({"users": PARTNERS["users"], "refuse": True}), []),
        (bounding(PARTNERS), bounding({**PARTNERS, "roles": ["invoker", "restorer"]}), ["/rules/0"]),
        (bounding(PARTNERS), bounding({**PARTNERS, "roles": None}), ["/rules/0"]),
        (bounding(PARTNERS), bounding({**PARTNERS, "grants": None}), ["/rules/0"]),
        (
            bounding({"users": ["x"], "refuse": True}),
            bounding({"users": ["x"], "roles": ["invoker"]}),
            ["/rules/0"],
        ),
        (bounding(PARTNERS, STAFF), bounding(PARTNERS), ["/rules/1"]),
        (bounding(PARTNERS, STAFF), bounding(STAFF, PARTNERS), ["/rules/0", "/rules/1"]),
        (bounding(PARTNERS), bounding({**PARTNERS, "users": ["x"]}), ["/rules/0"]),
        (bounding(PARTNERS), bounding(PARTNERS, provisioning=None), ["/provisioning"]),
        (
            bounding(PARTNERS),
            bounding(PARTNERS, provisioning={**MIRROR, "required": False}),
            ["/provisioning"],
        ),
        (
            bounding(STAFF),
            bounding(STAFF, provisioning={**MIRROR, "attribute": "externalId"}),
            ["/provisioning", "/rules/0"],
        ),
        (bounding(PARTNERS, provisioning=None), bounding(PARTNERS), []),
    ],
)
def test_services_may_do_more_for_end_users_where_a_bound_is_lifted_or_means_others(
    before: dict[str, Any], after: dict[str, Any], widened: list[str]
) -> None:
    assert pointers(before, after) == [f"/identity/end_users{pointer}" for pointer in widened]


def test_a_rule_for_tokens_by_other_groups_makes_other_callers() -> None:
    grouped = {**MAPS, "directory": {"groups": ["staff"]}}
    assert pointers({"identity": {"rules": [MAPS]}}, {"identity": {"rules": [grouped]}}) == [
        "/identity/rules/0"
    ]
    Policy.model_validate({"identity": {"rules": [{**grouped, "when": {}}]}})


@pytest.mark.parametrize(
    "changed",
    [
        {"directory": {}},
        {"directory": {"groups": [""]}},
        {"roles": ["restorer"]},
        {"roles": ["invoker", "operator"]},
        {"roles": ["key-custodian"]},
        {"roles": []},
        {"when": {}},
        {"when": {"groups": 7}},
        {"when": {"scope": 'a"b'}},
        {"grants": ["0123abcd"]},
        {"cidrs": ["10.0.0.1/8"]},
        {"tenant": "another"},
    ],
)
def test_a_rule_that_would_give_what_no_tenant_gives_is_refused(changed: dict[str, Any]) -> None:
    Policy.model_validate({"identity": {"rules": [MAPS]}})
    with pytest.raises(ValidationError):
        Policy.model_validate({"identity": {"rules": [{**MAPS, **changed}]}})


def test_every_member_of_a_policy_has_a_rule_and_one_without_is_always_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert set(Policy.model_fields) <= set(RULES)
    monkeypatch.delitem(RULES, "limits")  # type: ignore[arg-type]
    assert pointers({"limits": {"burst": 9}}, {"limits": {"burst": 8}}) == ["/limits"]


def test_every_member_is_described_for_the_page_that_lists_them() -> None:
    listed = {entry.path: entry for entry in members()}
    assert {name for name in listed if "." not in name} == set(Policy.model_fields)
    assert [name for name, entry in listed.items() if not entry.meaning] == []
    assert listed["custody.delay_h"].takes == "whole number, at least 1, at most 168"
    assert listed["passages[].results[].name"].default is ...


PII = "pii_redaction"


@pytest.mark.parametrize("part", ["default_arguments", "fixed_arguments"])
@pytest.mark.parametrize(
    ("argument", "narrow", "wide"),
    [
        ("aggressiveness", "strict", "standard"),
        ("names", "accurate", "fast"),
        ("exclude", ["Email"], ["email", "phone"]),
        ("allow_list", [], ["Jane"]),
        ("deny_list", ["Nimbus", "x"], ["x"]),
        ("entities", None, ["person"]),
        ("entities", ["person", "email"], ["PERSON"]),
        ("mode", "handle", "report"),
        ("mode", "block", "handle"),
        ("numbers", "block", "string"),
        ("uris", "change", "report"),
        ("unscanned", "block", "report"),
        ("return_mapping", False, True),
    ],
)
def test_arguments_of_a_redaction_widen_where_they_hide_less(
    part: str, argument: str, narrow: Any, wide: Any
) -> None:
    """Nobody can override them in the gateway, which redacts wherever the policy says nothing else."""
    before, after = ({part: {PII: {argument: value}}} for value in (narrow, wide))
    pointer = f"/{part}/{PII}/{argument}"
    assert pointers(before, after) == [pointer]
    assert pointers(after, before) == []


@pytest.mark.parametrize("part", ["default_arguments", "fixed_arguments"])
@pytest.mark.parametrize(
    ("argument", "value", "widens"),
    [
        ("exclude", ["email"], True),
        ("entities", ["person"], True),
        ("mode", "report", True),
        ("mode", {"EMAIL": "report"}, True),
        ("uris", "report", True),
        ("language", "de", True),
        ("invented_later", 7, True),
        ("aggressiveness", "strict", False),
        ("deny_list", ["Nimbus"], False),
        ("mode", "block", False),
        ("entropy", True, False),
    ],
)
def test_a_value_set_for_all_callers_is_compared_with_what_they_had(
    part: str, argument: str, value: Any, widens: bool
) -> None:
    expected = [f"/{part}/{PII}/{argument}"] if widens else []
    assert pointers({}, {part: {PII: {argument: value}}}) == expected


def test_a_default_that_a_fixed_value_overrides_changes_nothing() -> None:
    fixed = {"fixed_arguments": {PII: {"exclude": []}}}
    assert pointers(fixed, {**fixed, "default_arguments": {PII: {"exclude": ["email"]}}}) == []


def test_arguments_of_other_checks_are_told_and_those_of_harmless_steps_are_not() -> None:
    gateway = {"gateway": {"pipelines": [{"outbound": [{"name": "content_moderation"}]}]}}
    moderation = {"content_moderation": {"threshold": 0.9}}
    assert pointers(gateway, {**gateway, "default_arguments": moderation}) == [
        "/default_arguments/content_moderation/threshold"
    ]
    assert pointers({}, {"fixed_arguments": moderation}) == ["/fixed_arguments/content_moderation/threshold"]
    assert pointers({}, {"default_arguments": moderation}) == []
    assert pointers({}, {"fixed_arguments": {"timestamp_injector": {"zone": "UTC"}}}) == []
