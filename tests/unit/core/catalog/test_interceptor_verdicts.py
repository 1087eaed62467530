"""What a middleware is as an interceptor, what is recommended for it, and what its verdict is."""

from typing import Any

import pytest

from app.core.catalog.interceptors import (
    KINDS,
    InterceptorKind,
    InterceptorPolicy,
    Message,
    PhasePriority,
    config_schema,
    kind_of,
    routing,
    verdict,
)

MUTATION = InterceptorKind("mutation", ("tools/call",), ("prompts/get",), priority=5)
VALIDATION = InterceptorKind("validation", ("tools/call",), priority=5, reports=True)


def test_a_hook_is_told_for_each_phase_that_has_events() -> None:
    assert MUTATION.hooks() == [
        {"events": ["tools/call"], "phase": "request"},
        {"events": ["prompts/get"], "phase": "response"},
    ]
    assert VALIDATION.hooks() == [{"events": ["tools/call"], "phase": "request"}]


def test_an_event_is_covered_in_its_own_phase_only() -> None:
    covered = [
        (event, phase)
        for event in ("tools/call", "prompts/get")
        for phase in ("request", "response")
        if MUTATION.covers(event, phase)
    ]
    assert covered == [("tools/call", "request"), ("prompts/get", "response")]


@pytest.mark.parametrize(
    ("action", "kind"),
    [("fix", "mutation"), ("annotate", "mutation"), ("report", "validation"), (None, "validation")],
)
def test_a_policy_that_lets_answers_be_mended_makes_their_check_a_mutation(action: Any, kind: str) -> None:
    found = kind_of("hallucination_detection", "inbound", {} if action is None else {"action": action})
    assert (found.type, bool(found.priority)) == (kind, kind == "mutation")
    assert kind_of("content_moderation", "outbound", {"action": "annotate"}) is KINDS["content_moderation"]


def test_middlewares_that_are_not_in_the_table_go_by_their_phase() -> None:
    outbound, inbound = kind_of("mine", "outbound", {}), kind_of("mine", "inbound", {})
    assert (bool(outbound.request), bool(outbound.response)) == (True, False)
    assert (bool(inbound.request), bool(inbound.response)) == (False, True)


@pytest.mark.parametrize(
    ("policy", "kind", "expected"),
    [
        ({}, MUTATION, {"priorityHint": 5}),
        ({}, VALIDATION, {}),
        ({"priority_hint": 9}, MUTATION, {"priorityHint": 9}),
        ({"priority_hint": 0}, MUTATION, {}),
        ({"priority_hint": 9}, VALIDATION, {}),
        ({"priority_hint": PhasePriority(request=3, response=0)}, MUTATION, {"priorityHint": {"request": 3}}),
        ({"priority_hint": PhasePriority()}, MUTATION, {}),
        ({"mode": "audit", "fail_open": True}, VALIDATION, {"mode": "audit", "failOpen": True}),
        ({"mode": "active", "fail_open": False}, VALIDATION, {}),
    ],
)
def test_what_is_as_usual_is_left_out(
    policy: dict[str, Any], kind: InterceptorKind, expected: dict[str, Any]
) -> None:
    assert routing(kind, InterceptorPolicy(**policy)) == expected


SCHEMA = {
    "properties": {"action": {"type": "string"}, "level": {"$ref": "#/$defs/Level"}},
    "required": ["action", "level"],
    "$defs": {"Level": {"enum": ["a"], "items": [{"$ref": "#/$defs/Level"}]}},
}


def test_a_validation_offers_nothing_to_do_about_its_findings() -> None:
    made = config_schema(SCHEMA, VALIDATION)
    assert (set(made["properties"]), made["required"]) == ({"level"}, ["level"])
    assert made["additionalProperties"] is False
    assert set(config_schema(SCHEMA, MUTATION)["properties"]) == {"action", "level"}
    mutating = InterceptorKind("mutation", reports=True)
    assert "action" in config_schema(SCHEMA, mutating)["properties"]
    assert "required" not in config_schema({"properties": {}, "required": ["gone"]}, MUTATION)


def test_a_definition_that_holds_itself_ends_somewhere() -> None:
    depth, part = 0, config_schema(SCHEMA, VALIDATION)["properties"]["level"]
    while part:
        assert part["enum"] == ["a"]
        depth, part = depth + 1, part["items"][0]
    assert depth == 8


def finding(**members: Any) -> dict[str, Any]:
    return {"kind": "forged_mark", "pointer": "/0/text", **members}


@pytest.mark.parametrize(
    ("name", "said", "valid", "severity"),
    [
        ("prompt_injection", {"suspected": True, "findings": [finding()]}, False, "error"),
        ("prompt_injection", {"suspected": True}, False, "error"),
        ("prompt_injection", {"suspected": False, "findings": [finding()]}, True, "warn"),
        ("prompt_injection", {"suspected": False}, True, "info"),
        ("prompt_injection", {}, True, "info"),
        ("hallucination_detection", {"supported": False}, False, "error"),
        ("hallucination_detection", {"supported": True, "findings": [finding()]}, True, "warn"),
        ("hallucination_detection", {}, True, "info"),
        ("content_moderation", {"allow": False, "flags": ["a"]}, False, "error"),
        ("content_moderation", {"allow": True, "flags": ["a"]}, True, "warn"),
        ("content_moderation", {"allow": True, "flags": []}, True, "info"),
        ("content_moderation", {}, True, "info"),
        ("audit_logging", {"suspected": True, "allow": False}, True, "info"),
    ],
)
def test_only_an_error_stops_a_message(name: str, said: Any, valid: bool, severity: str) -> None:
    made = verdict(name, said)
    assert (made.valid, made.severity) == (valid, severity)


def test_each_flagged_item_is_a_message_and_the_others_are_none() -> None:
    said = {"allow": False, "items": [{"item": 0, "flags": []}, {"item": 2, "flags": ["a", "b"]}]}
    assert verdict("content_moderation", said).messages == [Message("Flagged: a, b.", "error", "/2")]


def test_a_finding_is_told_in_its_own_words_else_by_its_kind_and_by_its_item_where_it_has_no_place() -> None:
    def told(name: str, **members: Any) -> Message:
        return verdict(name, {"findings": [members]}).messages[0]

    assert told("prompt_injection", kind="forged_mark", item=3) == Message(
        "Suspected attack: forged mark.", "warn", "/3"
    )
    assert told(
        "hallucination_detection", kind="url", severity="high", fix="x", pointer="/1/text"
    ) == Message("Found: url.", "error", "/1/text", "x")
    assert told("hallucination_detection", message="Said.", severity="low", item="no") == Message(
        "Said.", "info"
    )
    assert told("hallucination_detection", severity="medium", fix=7).suggestion is None
