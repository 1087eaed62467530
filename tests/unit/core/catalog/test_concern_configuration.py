"""Configurations: which source wins, what is ignored, moved or refused, what a session remembers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.catalog.concern_configuration import (
    Layer,
    effective,
    replaced,
    session_layers,
    updated,
    with_handshake,
)
from app.core.catalog.concern_configuration import requested_layer as said
from app.core.errors import InvalidArgumentsError
from tests.unit.core.catalog.test_concerns import ALL, COST, SECURITY, VALUES, configurations, defined


def codes(warnings: Any) -> list[tuple[str, str]]:
    return [(one["concern"], one["code"]) for one in warnings]


def test_a_name_that_is_not_declared_is_ignored_with_a_warning():
    found = effective([Layer({"colour": "red", "security": "high"})], ALL)
    assert found.configuration == {"security": "high"}
    assert codes(found.warnings) == [("colour", "undeclared")]


def test_a_value_outside_is_ignored_or_clamped_or_refused_as_its_concern_says():
    found = effective([Layer({"security": "extreme", "latency": 3600}, "/concerns")], ALL)
    assert found.configuration == {"latency": 60}
    assert codes(found.warnings) == [("security", "out_of_values"), ("latency", "clamped")]
    assert codes(effective([Layer({"latency": "fast"})], ALL).warnings) == [("latency", "out_of_values")]
    with pytest.raises(InvalidArgumentsError) as refusal:
        effective([Layer({"region": "mars"}, "/concerns")], ALL)
    assert refusal.value.details == {"pointer": "/concerns/region"}
    assert "mars" not in refusal.value.message


def test_what_cannot_be_mended_by_this_request_is_never_an_error():
    found = effective([Layer({}, "/concerns"), Layer({"region": "mars"})], ALL)
    assert (found.configuration, codes(found.warnings)) == ({}, [("region", "out_of_values")])


def test_the_stronger_source_wins_and_an_ignored_value_leaves_the_weaker_one():
    layers = [
        Layer({"security": "extreme"}),
        Layer({"security": "low"}),
        Layer({"security": "high", "cost": "any"}),
    ]
    assert effective(layers, ALL).configuration == {"security": "low", "cost": "any"}


def test_null_removes_what_weaker_sources_say():
    found = effective([Layer({"security": None}), Layer({"security": "low", "cost": "any"})], ALL)
    assert (found.configuration, found.warnings) == ({"cost": "any"}, ())


def test_defaults_count_only_where_the_operator_says_so():
    layers = [Layer({"security": "high", "cost": None})]
    assert effective(layers, ALL).configuration == {"security": "high"}
    assert effective(layers, ALL, apply_defaults=True).configuration == {
        "latency": 10,
        "region": "eu",
        "security": "high",
    }


def test_null_stops_a_default_from_every_source():
    for layers in (
        [Layer({"cost": None}, "/_meta")],
        session_layers(updated({}, Layer({"cost": None}), ALL)[0]),
        session_layers(updated({}, Layer({"cost": None, "region": "eu"}), ALL, replace=True)[0]),
        session_layers(with_handshake({}, "initialize", {"cost": None})),
    ):
        assert set(effective(layers, ALL, apply_defaults=True).configuration) == {
            "latency",
            "region",
            "security",
        }


def test_the_fingerprint_follows_what_filters():
    def of(configuration: dict[str, Any], definitions: Any = ALL) -> str:
        return effective([Layer(configuration)], definitions).fingerprint

    assert of({}) == of({"colour": "red"}) == ""
    assert of({"security": "high", "cost": "any"}) == of({"cost": "any", "security": "high"})
    reordered = defined({**SECURITY, "values": ["low", "medium", "high"]}, COST)
    fingerprints = {of({"security": "high"}), of({"security": "low"}), of({"cost": "any"})}
    assert len(fingerprints | {of({"security": "high"}, reordered)}) == 4


@pytest.mark.parametrize("wrong", [None, [], "high", 1, {f"c{n}": 1 for n in range(65)}, {"x" * 65: 1}])
def test_a_request_that_brings_no_configuration_is_refused_with_a_pointer(wrong: Any):
    with pytest.raises(InvalidArgumentsError) as refusal:
        said(wrong, "/concerns")
    assert refusal.value.details == {"pointer": "/concerns"}


def test_the_handshake_is_never_refused_and_remembers_a_bounded_amount():
    for wrong in (None, [], "high", 1):
        assert with_handshake({}, "initialize", wrong) == {}
    huge = {f"c{n}": "x" * 10_000 for n in range(1000)} | {"y" * 1000: 1}
    held = with_handshake({}, "initialize", {"region": "mars", "latency": [1], **huge})
    assert len(held["initialize"]) == 64
    assert len(repr(held)) < 2000
    found = effective(session_layers(held), ALL)
    assert codes(found.warnings)[:2] == [("region", "out_of_values"), ("latency", "out_of_values")]


def test_initialized_is_stronger_than_initialize_and_an_update_than_both():
    held = with_handshake({}, "initialize", {"security": "low", "cost": "any"})
    held = with_handshake(held, "initialized", {"security": "medium"})
    assert effective(session_layers(held), ALL).configuration == {"security": "medium", "cost": "any"}
    held, _ = updated(held, Layer({"security": "high"}), ALL)
    assert effective(session_layers(held), ALL).configuration == {"security": "high", "cost": "any"}


def test_updates_merge_null_removes_and_replace_replaces():
    held, _ = updated({"initialize": {"latency": 5}}, Layer({"security": "high"}), ALL)
    held, warnings = updated(held, Layer({"cost": "any", "colour": "red"}), ALL)
    assert effective(session_layers(held), ALL).configuration == {
        "cost": "any",
        "latency": 5,
        "security": "high",
    }
    assert codes(warnings) == [("colour", "undeclared")]
    held, _ = updated(held, Layer({"latency": None, "security": None}), ALL)
    assert effective(session_layers(held), ALL).configuration == {"cost": "any"}
    assert not replaced(held)
    held, _ = updated(held, Layer({"security": "low", "cost": None}), ALL, replace=True)
    assert effective(session_layers(held), ALL).configuration == {"security": "low"}
    assert replaced(held)
    held, _ = updated(held, Layer({"cost": "any"}), ALL)
    assert effective(session_layers(held), ALL).configuration == {"cost": "any", "security": "low"}
    assert replaced(held)


def test_a_value_that_an_update_is_warned_of_leaves_the_one_before():
    held, _ = updated({}, Layer({"security": "high"}), ALL)
    held, warnings = updated(held, Layer({"security": "extreme"}), ALL)
    assert effective(session_layers(held), ALL).configuration == {"security": "high"}
    assert codes(warnings) == [("security", "out_of_values")]


updates = st.lists(
    st.tuples(
        st.booleans(),
        st.fixed_dictionaries(
            {}, optional={name: st.none() | st.sampled_from(values) for name, values in VALUES.items()}
        ),
    ),
    max_size=8,
)


@given(configurations, configurations, updates)
def test_a_session_comes_to_what_one_dictionary_would(
    before: dict[str, Any], after: dict[str, Any], said_later: list[tuple[bool, dict[str, Any]]]
):
    held = with_handshake(with_handshake({}, "initialize", before), "initialized", after)
    model = {**before, **after}
    for replace, values in said_later:
        held, warnings = updated(held, Layer(values), ALL, replace=replace)
        assert not warnings
        model = {} if replace else model
        for name, value in values.items():
            if value is None:
                model.pop(name, None)
            else:
                model[name] = value
    assert dict(effective(session_layers(held), ALL).configuration) == model


@pytest.mark.parametrize("odd", [10**4000, 1e308, [], {}, {"min": 1}, [[1]], "", "\u200b", None])
def test_a_value_of_any_form_is_judged_and_never_breaks(odd: Any):
    found = effective([Layer(dict.fromkeys(("security", "latency", "colour"), odd))], ALL)
    assert set(found.configuration) <= {"latency"}
    assert with_handshake({}, "initialize", {"security": odd})
