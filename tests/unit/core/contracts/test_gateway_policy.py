"""What a policy says of the gateway: which pipeline, route, scope and arguments follow from it."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.core.contracts.gateway_policy import GatewayPolicy, types_match
from app.core.contracts.policy import Policy
from app.core.contracts.policy_widening import widenings

ROUTES = [
    {"when": {"types": ["secret"]}, "refuse": True},
    {"when": {"types": ["health"]}, "provider": "local", "model": "llama-4"},
]


def policy(**members: Any) -> GatewayPolicy:
    return Policy.model_validate({"gateway": members}).gateway


def names(steps: Any) -> list[str]:
    return [step.name for step in steps]


def test_without_a_word_everything_is_redacted_and_restored():
    chosen = policy().pipeline_of("main", "gpt-5")
    assert names(chosen.outbound) == ["pii_redaction", "secret_redaction"]
    assert names(chosen.inbound) == ["pii_restoration"]
    assert (policy().mode, policy().unscanned, policy().note, policy().stable_scope) == (
        *("enforce", "count"),
        *(True, False),
    )


def test_the_first_pipeline_that_matches_provider_and_model_applies():
    moderated = {"models": ["gpt-*"], "outbound": [{"name": "content_moderation"}]}
    local = {"providers": ["loc*"], "outbound": [], "inbound": []}
    rules = policy(pipelines=[local, moderated])
    assert names(rules.pipeline_of("main", "gpt-5").outbound) == ["content_moderation"]
    assert names(rules.pipeline_of("main", "gpt-5").inbound) == ["pii_restoration"]
    assert rules.pipeline_of("local", "gpt-5").outbound == []
    assert names(rules.pipeline_of("main", "claude").outbound) == ["pii_redaction", "secret_redaction"]
    assert names(rules.pipeline_of("main", "xgpt-5").outbound) == ["pii_redaction", "secret_redaction"]


@pytest.mark.parametrize(
    ("wanted", "present", "expected"),
    [
        (["health"], ["PERSON", "MRN"], True),
        (["HEALTH"], ["KVNR"], True),
        (["health"], ["PERSON", "IBAN"], False),
        (["mrn"], ["MRN"], True),
        (["payment", "contact"], ["EMAIL"], True),
        (["secret"], ["SECRET_GITHUB"], True),
        (["secret"], ["SECRET"], True),
        (["secret"], ["SECRETARY"], False),
        (["person"], [], False),
    ],
)
def test_types_and_their_classes_match_labels(wanted, present, expected):
    assert types_match(wanted, present) is expected


def test_the_first_route_whose_types_were_found_counts():
    rules = policy(routes=ROUTES)
    refused = rules.route_of(["MRN", "SECRET_AWS"])
    assert refused is not None and refused.refuse
    led = rules.route_of(["PERSON", "MRN"])
    assert led is not None and (led.provider, led.model) == ("local", "llama-4")
    assert rules.route_of(["PERSON"]) is None and policy().route_of(["MRN"]) is None


def test_tools_get_what_the_first_rule_says_and_the_default_otherwise():
    rules = policy(
        toolArguments=[
            {"tool": "crm__find", "types": ["EMAIL"], "restore": True},
            {"tool": "web_*", "restore": False},
            {"tool": "*", "types": ["secret"], "restore": False},
        ]
    )
    asked = [("crm__find", "EMAIL"), ("crm__find", "PERSON"), ("web_search", "EMAIL"), ("x", "SECRET_AWS")]
    assert [rules.restores(*question) for question in asked] == [True, None, False, False]


def test_both_spellings_of_a_member_are_one_and_the_later_change_wins():
    rules = policy(sharedScopes=["team-*"])
    assert rules == policy(shared_scopes=["team-*"])
    assert rules.is_shared("team-a") and not rules.is_shared("my-team-a")
    merged = GatewayPolicy.model_validate({**rules.model_dump(mode="json"), "sharedScopes": []})
    assert merged.shared_scopes == []


@pytest.mark.parametrize(
    ("members", "mending"),
    [
        ({"routes": [{"when": {"types": ["health"]}}]}, "either provider, or refuse"),
        ({"routes": [{"when": {"types": ["health"]}, "provider": "a", "refuse": True}]}, "either provider"),
        ({"routes": [{"when": {"types": ["health"]}, "refuse": True, "model": "m"}]}, "model needs provider"),
        ({"routes": [{"when": {"types": []}, "refuse": True}]}, "at least 1"),
        ({"routes": [{"when": {"types": ["a b"]}, "refuse": True}]}, "match pattern"),
        ({"mode": "off"}, "'enforce' or 'observe'"),
        ({"unscanned": "pass"}, "'count' or 'block'"),
        ({"toolArguments": [{"tool": "a"}]}, "required"),
        ({"sharedScope": []}, "not permitted"),
    ],
)
def test_what_protects_nothing_is_refused(members, mending):
    with pytest.raises(ValidationError) as refused:
        policy(**members)
    assert mending in str(refused.value)


RULE = {"tool": "a", "restore": True}
WIDER: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"mode": "observe"}, "/gateway/mode"),
    ({"unscanned": "block"}, {}, "/gateway/unscanned"),
    ({}, {"pipelines": [{"outbound": []}]}, "/gateway/pipelines"),
    ({}, {"shared_scopes": ["a"]}, "/gateway/shared_scopes"),
    ({}, {"stable_scope": True}, "/gateway/stable_scope"),
    ({"routes": ROUTES}, {"routes": ROUTES[1:]}, "/gateway/routes"),
    ({"routes": ROUTES}, {"routes": ROUTES[::-1]}, "/gateway/routes"),
    ({"routes": ROUTES[:1]}, {"routes": ROUTES}, "/gateway/routes/1"),
    ({}, {"tool_arguments": [RULE]}, "/gateway/tool_arguments"),
    ({"tool_arguments": [{**RULE, "restore": False}]}, {}, "/gateway/tool_arguments"),
]


@pytest.mark.parametrize(("narrow", "wide", "pointer"), WIDER)
def test_a_change_that_widens_is_named(narrow, wide, pointer):
    before, after = (Policy.model_validate({"gateway": members}) for members in (narrow, wide))
    assert [change.pointer for change in widenings(before, after)] == [pointer]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"mode": "observe"}, {}),
        ({}, {"unscanned": "block"}),
        ({"shared_scopes": ["a", "b"]}, {"shared_scopes": ["b"]}),
        ({"stable_scope": True}, {}),
        ({}, {"routes": ROUTES[:1]}),
        ({}, {"tool_arguments": [{"tool": "*", "restore": False}]}),
        ({"note": True}, {"note": False}),
    ],
)
def test_a_change_that_narrows_widens_nothing(before, after):
    old, new = (Policy.model_validate({"gateway": members}) for members in (before, after))
    assert widenings(old, new) == []


def test_a_request_without_a_model_gets_what_any_of_the_models_would():
    rules = GatewayPolicy.model_validate(
        {
            "pipelines": [
                {"providers": ["local"], "models": ["s-*"], "outbound": [], "inbound": []},
                {
                    "models": ["gpt-*"],
                    "inbound": [{"name": "pii_restoration"}, {"name": "content_moderation"}],
                },
                {"models": ["o*"], "outbound": [{"name": "tool_filter"}], "streams": "refuse"},
            ]
        }
    )
    joined = rules.pipeline_of("main", None)
    assert names(joined.outbound) == ["pii_redaction", "secret_redaction", "tool_filter"]
    assert names(joined.inbound) == ["pii_restoration", "content_moderation"]
    assert joined.streams == "refuse"
    # One entry that restores nothing, or hides nothing, does not widen what the others say.
    local = rules.pipeline_of("local", None)
    assert names(local.inbound) == ["content_moderation"]
    assert names(local.outbound) == ["pii_redaction", "secret_redaction", "tool_filter"]
    # Nothing is added behind an entry for every model.
    every = GatewayPolicy.model_validate({"pipelines": [{"outbound": [], "inbound": []}]}).pipeline_of(
        "x", None
    )
    assert (every.outbound, every.inbound, every.streams) == ([], [], "hold")
