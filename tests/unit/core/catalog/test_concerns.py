"""Concerns: which definitions make sense, which mapping applies, what is listed."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.core.catalog.concern_configuration import (
    Layer,
    effective,
)
from app.core.catalog.concerns import ConcernDefinition, ConcernMapping, ConcernTable, matches
from app.core.catalog.primitives import PrimitiveKind

SECURITY = {
    "name": "security",
    "description": "Security level required for the operation",
    "values": ["high", "medium", "low"],
    "default": "medium",
}
COST = {
    "name": "cost",
    "description": "What it may cost",
    "values": ["minimal", "moderate", "any"],
    "default": "any",
}
LATENCY = {
    "name": "latency",
    "description": "Seconds",
    "values": {"min": 1, "max": 60, "step": 1},
    "default": 10,
    "on_invalid": "clamp",
}
STRICT = {
    "name": "region",
    "description": "Where",
    "values": ["eu", "us"],
    "default": "eu",
    "on_invalid": "error",
}


def defined(*definitions: Mapping[str, Any]) -> dict[str, ConcernDefinition]:
    return {one["name"]: ConcernDefinition.model_validate(one) for one in definitions}


ALL = defined(SECURITY, COST, LATENCY, STRICT)


# Definitions


def test_the_definition_of_the_proposal_is_told_to_hosts_as_it_stands():
    assert ConcernDefinition.model_validate(SECURITY).wire() == SECURITY


def test_a_range_is_told_with_its_step_only_where_it_has_one():
    free = {**LATENCY, "values": {"min": 0.5, "max": 2}, "default": 1}
    assert ConcernDefinition.model_validate(LATENCY).wire()["values"] == {"min": 1, "max": 60, "step": 1}
    assert ConcernDefinition.model_validate(free).wire()["values"] == {"min": 0.5, "max": 2}


@pytest.mark.parametrize(
    "change",
    [
        {"default": "extreme"},
        {"default": None},
        {"values": []},
        {"values": ["high", "high"], "default": "high"},
        {"values": ["high", None], "default": "high"},
        {"values": ["high", ["low"]], "default": "high"},
        {"values": ["x" * 201], "default": "x" * 201},
        {"values": ["a\nb"], "default": "a\nb"},
        {"values": list(range(101)), "default": 1},
        {"values": "high", "default": "high"},
        {"values": {"min": 5, "max": 5}, "default": 5},
        {"values": {"min": 5, "max": 1}, "default": 5},
        {"values": {"min": 1, "max": 5, "step": 0}, "default": 1},
        {"values": {"min": 1, "max": 5, "step": 2}, "default": 2},
        {"values": {"min": 1}, "default": 1},
        {"values": {"min": 1, "max": float("inf")}, "default": 1},
        {"values": {"min": True, "max": 5}, "default": 1},
        {"values": {"min": 1, "max": 5, "also": 1}, "default": 1},
        {"values": [10**30], "default": 10**30},
        {"on_invalid": "clamp"},
        {"on_invalid": "guess"},
        {"name": ""},
        {"name": "a b"},
        {"name": "x" * 65},
        {"description": ""},
        {"more": 1},
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(change: dict[str, Any]):
    with pytest.raises(ValidationError):
        ConcernDefinition.model_validate({**SECURITY, **change})


def test_a_definition_needs_its_four_members():
    for missing in SECURITY:
        with pytest.raises(ValidationError):
            ConcernDefinition.model_validate({k: v for k, v in SECURITY.items() if k != missing})


def test_true_is_not_one():
    flags = ConcernDefinition.model_validate({**SECURITY, "values": [True, 1, "1"], "default": 1})
    only = ConcernDefinition.model_validate({**SECURITY, "values": [True, False], "default": True})
    assert all(flags.includes(value) for value in (True, 1, "1"))
    assert not only.includes(1)
    assert not only.includes(0)


def test_a_step_is_counted_in_decimals():
    tenth = ConcernDefinition.model_validate(
        {**SECURITY, "values": {"min": 0, "max": 1, "step": 0.1}, "default": 0.3}
    )
    assert tenth.includes(0.7)
    assert not tenth.includes(0.75)


@pytest.mark.parametrize(
    ("values", "value", "nearest"),
    [
        ({"min": 1, "max": 60}, 1000, 60),
        ({"min": 1, "max": 60}, -3, 1),
        ({"min": 1, "max": 10, "step": 4}, 4, 5),
        ({"min": 1, "max": 10, "step": 4}, 3, 1),
        ({"min": 1, "max": 10, "step": 4}, 10, 9),
        ({"min": 0, "max": 1, "step": 0.25}, 0.3, 0.25),
        ([1, 5, 10], 7, 5),
        ([10, 5, 1], 7.5, 5),
        ([1, 5, 10], 10**4000, 10),
        ({"min": 1, "max": 10, "step": 4}, -(10**4000), 1),
    ],
)
def test_the_nearest_value_is_of_two_the_lower(values: Any, value: float, nearest: float):
    first = values["min"] if isinstance(values, dict) else values[0]
    definition = ConcernDefinition.model_validate({**SECURITY, "values": values, "default": first})
    assert definition.nearest(value) == nearest


@given(
    st.integers(-1000, 1000),
    st.integers(1, 500),
    st.one_of(st.none(), st.integers(1, 700)),
    st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6),
)
def test_the_nearest_value_is_always_one_of_the_range(low: int, width: int, step: int | None, value: float):
    values = {"min": low, "max": low + width} | ({} if step is None else {"step": step})
    definition = ConcernDefinition.model_validate({**SECURITY, "values": values, "default": low})
    nearest = definition.nearest(value)
    assert definition.includes(nearest)
    assert (nearest == value) == definition.includes(value)


# Mappings


def mapping(name: str, kind: str = "tool", **concerns: Any) -> ConcernMapping:
    return ConcernMapping.model_validate({"kind": kind, "name": name, "concerns": concerns})


def test_the_exact_name_wins_then_the_pattern_that_says_most_then_the_alphabet():
    table = ConcernTable.build(
        ALL.values(),
        [
            mapping("*", security="low"),
            mapping("mail__*", security="medium"),
            mapping("*__send", security="high"),
            mapping("mail__send", cost="any"),
            mapping("mail__*t", cost="minimal"),
        ],
    )
    assert table.mapping_of(PrimitiveKind.TOOL, "mail__send") == {"cost": "any"}
    assert table.mapping_of(PrimitiveKind.TOOL, "mail__draft") == {"cost": "minimal"}
    assert table.mapping_of(PrimitiveKind.TOOL, "mail__read") == {"security": "medium"}
    assert table.mapping_of(PrimitiveKind.TOOL, "chat__send") == {"security": "high"}
    assert table.mapping_of(PrimitiveKind.TOOL, "other") == {"security": "low"}
    assert table.mapping_of(PrimitiveKind.PROMPT, "mail__send") == {}
    tied = ConcernTable.build(ALL.values(), [mapping("b*", cost="any"), mapping("*c", cost="minimal")])
    assert tied.mapping_of(PrimitiveKind.TOOL, "bc") == {"cost": "minimal"}


@given(st.permutations(["*", "a*", "*a", "a*b", "ab", "*b*", "**a"]), st.text("ab", max_size=4))
def test_which_mapping_applies_does_not_hang_on_the_order_in_which_they_were_made(
    names: list[str], name: str
):
    def table(order: list[str]) -> ConcernTable:
        return ConcernTable.build(ALL.values(), [mapping(one, cost=["any", one]) for one in order])

    assert table(names).mapping_of(PrimitiveKind.TOOL, name) == table(sorted(names)).mapping_of(
        PrimitiveKind.TOOL, name
    )


def test_what_a_primitive_says_itself_counts_where_no_mapping_names_it():
    own = {"concerns": {"security": "high", "cost": "minimal"}}  # the proposal's example
    table = ConcernTable.build(ALL.values(), [mapping("validateData")])
    assert table.mapping_of(PrimitiveKind.TOOL, "encryptData", own) == {"security": "high", "cost": "minimal"}
    assert table.mapping_of(PrimitiveKind.TOOL, "validateData", own) == {}


@pytest.mark.parametrize(
    "said_by_it", [None, [], "high", {"security": None}, {"security": {}}, {"other": "x"}]
)
def test_what_a_primitive_says_without_sense_filters_nothing(said_by_it: Any):
    table = ConcernTable.build(ALL.values())
    assert table.mapping_of(PrimitiveKind.TOOL, "t", {"concerns": said_by_it}) == {}
    assert table.mapping_of(PrimitiveKind.TOOL, "t", None) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "group"},
        {"kind": "middleware"},
        {"kind": "gadget"},
        {"name": ""},
        {"name": "a\tb"},
        {"concerns": {"security": None}},
        {"concerns": {"security": []}},
        {"concerns": {"security": {}}},
        {"concerns": {"security": {"min": 1, "step": 2}}},
        {"concerns": {"security": {"min": [1]}}},
        {"concerns": {"a b": "x"}},
        {"concerns": ["security"]},
        {"also": 1},
    ],
)
def test_a_mapping_that_makes_no_sense_is_refused(wrong: dict[str, Any]):
    with pytest.raises(ValidationError):
        ConcernMapping.model_validate({"kind": "tool", "name": "t", "concerns": {}, **wrong})


# Matching


PROPOSAL = {
    "encryptData": {"security": "high", "cost": "minimal"},
    "logData": {"security": "medium"},
    "validateData": {},
}


def listed(configuration: Mapping[str, Any]) -> list[str]:
    said_by_host = effective([Layer(configuration)], ALL)
    return [name for name, mapped in PROPOSAL.items() if said_by_host.lists(mapped)]


def test_the_workflow_of_the_proposal():
    assert listed({}) == ["encryptData", "logData", "validateData"]
    assert listed({"security": "high", "cost": "minimal"}) == ["encryptData", "validateData"]
    assert listed({"security": "high", "cost": "moderate"}) == ["validateData"]


def test_a_mapped_list_is_any_of_and_a_range_follows_the_order_of_the_values():
    several = {"security": ["high", "medium"]}
    assert [matches(several, {"security": one}, ALL) for one in ("high", "medium", "low")] == [
        True,
        True,
        False,
    ]
    down = {"security": {"min": "medium"}}  # from medium on, in the order in which they are declared
    assert [matches(down, {"security": one}, ALL) for one in ("high", "medium", "low")] == [False, True, True]
    fast = {"latency": {"max": 5}}
    assert [matches(fast, {"latency": one}, ALL) for one in (1, 5, 6)] == [True, True, False]
    nonsense = {"security": {"min": "extreme"}}
    assert not matches(nonsense, {"security": "high"}, ALL)


VALUES = {
    "security": ["high", "medium", "low"],
    "cost": ["minimal", "moderate", "any"],
    "region": ["eu", "us"],
}
configurations = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in VALUES.items()}
)


@given(configurations, configurations)
def test_a_primitive_is_listed_when_every_configured_concern_that_it_is_mapped_to_matches(
    mapped: dict[str, str], configured: dict[str, str]
):
    expected = all(mapped[name] == value for name, value in configured.items() if name in mapped)
    assert matches(mapped, configured, ALL) == expected
    assert matches({}, configured, ALL)
    assert matches(mapped, {}, ALL)


@given(configurations, configurations, st.sampled_from(sorted(VALUES)))
def test_configuring_one_concern_more_never_shows_more(
    mapped: dict[str, str], configured: dict[str, str], name: str
):
    more = {**configured, name: configured.get(name, VALUES[name][0])}
    assert matches(mapped, configured, ALL) or not matches(mapped, more, ALL)
