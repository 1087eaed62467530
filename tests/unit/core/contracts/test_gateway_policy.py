"""What a policy says of the gateway: which pipeline, route, scope and arguments follow from it."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.core.contracts.gateway_pipelines import flattened, joined
from app.core.contracts.gateway_policy import GatewayPipeline, GatewayPolicy, types_match
from app.core.contracts.pipelines import Pipeline, PipelineStep
from app.core.contracts.policy import Policy
from app.core.contracts.widening.policies import widenings
from app.core.errors import BlockedByPolicyError

ROUTES = [
    {"when": {"types": ["secret"]}, "refuse": True},
    {"when": {"types": ["health"]}, "provider": "local", "model": "llama-4"},
]


def policy(**members: Any) -> GatewayPolicy:
    return Policy.model_validate({"gateway": members}).gateway


def pipeline_of(rules: GatewayPolicy, provider: str, model: str | None, **pipelines: Any) -> GatewayPipeline:
    """Return what runs for a model; ``pipelines`` are those of the tenant, as lists of steps."""
    stored = {
        name: Pipeline.model_validate({"name": name, "steps": steps}) for name, steps in pipelines.items()
    }
    return joined([flattened(entry, stored.get) for entry in rules.pipelines_of(provider, model)])


def names(steps: Any) -> list[str]:
    return [step.name for step in steps]


def test_without_a_word_everything_is_redacted_and_restored():
    chosen = pipeline_of(policy(), "main", "gpt-5")
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
    assert names(pipeline_of(rules, "main", "gpt-5").outbound) == ["content_moderation"]
    assert names(pipeline_of(rules, "main", "gpt-5").inbound) == ["pii_restoration"]
    assert pipeline_of(rules, "local", "gpt-5").outbound == []
    assert names(pipeline_of(rules, "main", "claude").outbound) == ["pii_redaction", "secret_redaction"]
    assert names(pipeline_of(rules, "main", "xgpt-5").outbound) == ["pii_redaction", "secret_redaction"]


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
    every = pipeline_of(rules, "main", None)
    assert names(every.outbound) == ["pii_redaction", "secret_redaction", "tool_filter"]
    assert names(every.inbound) == ["pii_restoration", "content_moderation"]
    assert every.streams == "refuse"
    # One entry that restores nothing, or hides nothing, does not widen what the others say.
    local = pipeline_of(rules, "local", None)
    assert names(local.inbound) == ["content_moderation"]
    assert names(local.outbound) == ["pii_redaction", "secret_redaction", "tool_filter"]
    # Nothing is added behind an entry for every model.
    every = pipeline_of(policy(pipelines=[{"outbound": [], "inbound": []}]), "x", None)
    assert (every.outbound, every.inbound, every.streams) == ([], [], "hold")


def test_a_pipeline_stands_for_its_steps_with_limits_and_arguments():
    steps = [
        {"name": "tool_filter", "arguments": {"maxTools": 3}, "on_error": "skip", "timeout_ms": 40},
        {"name": "pii_redaction"},
    ]
    asked = {"name": "ours", "arguments": {"tool_filter": {"minScore": 1}, "pii_redaction": {"mode": "mask"}}}
    rules = policy(
        pipelines=[{"outbound": [{"name": "timestamp_injector"}, asked], "inbound": [{"name": "back"}]}]
    )
    entry = pipeline_of(rules, "main", "gpt-5", ours=steps, back=[{"name": "pii_restoration"}])
    assert entry.outbound == [
        PipelineStep(name="timestamp_injector"),
        PipelineStep(
            name="tool_filter", arguments={"minScore": 1, "maxTools": 3}, on_error="skip", timeout_ms=40
        ),
        PipelineStep(name="pii_redaction", arguments={"mode": "mask"}),
    ]
    assert entry.restores and names(entry.inbound) == ["pii_restoration"]
    assert not pipeline_of(rules, "main", "gpt-5").restores  # no such pipeline, so a middleware of that name


def test_entries_restore_together_only_where_the_pipelines_of_each_do():
    rules = policy(pipelines=[{"models": ["a"], "inbound": [{"name": "back"}]}, {"models": ["b"]}])
    both = pipeline_of(
        rules, "main", None, back=[{"name": "pii_restoration"}, {"name": "content_moderation"}]
    )
    assert names(both.inbound) == ["pii_restoration", "content_moderation"]
    one = pipeline_of(rules, "main", None, back=[{"name": "content_moderation"}])
    assert names(one.inbound) == ["content_moderation"]
    # The same step in two entries runs once.
    assert names(both.outbound) == ["pii_redaction", "secret_redaction"]


@pytest.mark.parametrize(
    ("entry", "pointer"),
    [
        ({"inbound": [{"name": "pii_restoration"}, {"name": "far__check"}]}, "/inbound/1/name"),
        ({"inbound": [{"name": "far__check"}, {"name": "back"}]}, "/inbound/0/name"),
        ({"inbound": [{"name": "away"}, {"name": "back"}]}, "/inbound/0/name"),
        ({"inbound": [{"name": "pii_restoration", "arguments": {"scope": "s"}}]}, "/inbound/0/arguments"),
        ({"inbound": [{"name": "back"}, {"name": "elsewhere"}]}, "/inbound/1/arguments"),
        ({"outbound": [{"name": "away", "arguments": {"x": {}}}]}, "/outbound/0/arguments/x"),
        (
            {"outbound": [{"name": "masks", "arguments": {"pii_redaction": 1}}]},
            "/outbound/0/arguments/pii_redaction",
        ),
        (
            {"outbound": [{"name": "masks", "arguments": {"pii_redaction": {"mode": "handles"}}}]},
            "/outbound/0/arguments/pii_redaction",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(entry, pointer):
    tenant = {
        "back": [{"name": "pii_restoration"}],
        "away": [{"name": "far__check"}],
        "elsewhere": [{"name": "pii_restoration", "arguments": {"redactions": {}}}],
        "masks": [{"name": "pii_redaction", "arguments": {"mode": "mask"}}],
    }
    with pytest.raises(BlockedByPolicyError) as refused:
        pipeline_of(policy(pipelines=[entry]), "main", "gpt-5", **tenant)
    assert refused.value.details == {"pointer": pointer}
