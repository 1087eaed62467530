"""Examples of arguments that follow from a schema: valid, or none."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.core.catalog.schema_examples import example_arguments
from app.core.catalog.schema_reading import constraints, required_names
from tests.sampling import examples


def obj(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


SURE = {
    "nothing required": (obj(a={"type": "string"}), {}),
    "a string": (obj(["a"], a={"type": "string"}), {"a": "text"}),
    "lengths": (obj(["a"], a={"type": "string", "minLength": 6, "maxLength": 7}), {"a": "textte"}),
    "short": (obj(["a"], a={"type": "string", "maxLength": 2}), {"a": "te"}),
    "default": (obj(["a"], a={"type": "string", "default": "x"}), {"a": "x"}),
    "examples before default": (
        obj(["a"], a={"type": "string", "default": "x", "examples": ["y"]}),
        {"a": "y"},
    ),
    "wrong default": (obj(["a"], a={"type": "integer", "default": "x"}), {"a": 1}),
    "default out of range": (obj(["a"], a={"type": "integer", "default": 9, "maximum": 5}), {"a": 1}),
    "enum": (obj(["a"], a={"enum": ["asc", "desc"]}), {"a": "asc"}),
    "const": (obj(["a"], a={"const": 7}), {"a": 7}),
    "range": (obj(["a"], a={"type": "integer", "minimum": 10, "maximum": 20}), {"a": 10}),
    "exclusive": (obj(["a"], a={"type": "integer", "exclusiveMinimum": 3}), {"a": 4}),
    "between": (obj(["a"], a={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}), {"a": 0.5}),
    "multiples": (obj(["a"], a={"type": "integer", "multipleOf": 5, "minimum": 7}), {"a": 10}),
    "negative": (obj(["a"], a={"type": "integer", "maximum": -3}), {"a": -3}),
    "boolean": (obj(["a"], a={"type": "boolean"}), {"a": True}),
    "nullable": (obj(["a"], a={"type": ["null", "string"]}), {"a": "text"}),
    "format": (obj(["a"], a={"type": "string", "format": "date"}), {"a": "2026-01-31"}),
    "array": (obj(["a"], a={"type": "array", "items": {"type": "integer"}}), {"a": [1]}),
    "array of two": (
        obj(["a"], a={"type": "array", "items": {"type": "integer"}, "minItems": 2}),
        {"a": [1, 1]},
    ),
    "nested": (obj(["a"], a=obj(["b"], b={"type": "number"})), {"a": {"b": 1}}),
    "any of": (obj(["a"], a={"anyOf": [{"type": "null"}, {"type": "string"}]}), {"a": "text"}),
    "one of": (obj(["a"], a={"oneOf": [{"type": "integer"}, {"type": "string"}]}), {"a": 1}),
    "all of": (obj(["a"], a={"allOf": [{"type": "integer"}, {"minimum": 4}]}), {"a": 4}),
    "steps above two bounds": (
        obj(["a"], a={"type": "integer", "exclusiveMinimum": 2, "minimum": 50, "multipleOf": 7}),
        {"a": 56},
    ),
    "reference": ({**obj(["a"], a={"$ref": "#/$defs/A"}), "$defs": {"A": {"enum": ["x"]}}}, {"a": "x"}),
    "required and not described": ({"type": "object", "required": ["a"]}, {"a": "text"}),
    "optional with examples": (obj(a={"type": "string", "examples": ["x"]}), {"a": "x"}),
    "pattern with an example": (
        obj(["a"], a={"type": "string", "pattern": "^b+$", "examples": ["bb"]}),
        {"a": "bb"},
    ),
}
SURE |= {
    "a default of the wrong shape": (
        obj(["a"], a={**obj(["b"], b={"type": "integer"}), "default": {"b": "x"}}),
        {"a": {"b": 1}},
    ),
    "a default of an alternative": (
        obj(["a"], a={"anyOf": [{"type": "string"}, {"type": "null"}], "default": "x"}),
        {"a": "x"},
    ),
    "a list as default": (
        obj(["a"], a={"type": "array", "items": {"type": "string"}, "default": ["x"]}),
        {"a": ["x"]},
    ),
    "a list as default whose first member has a schema of its own": (
        obj(
            ["a"],
            a={
                "type": "array",
                "prefixItems": [{"type": "integer"}],
                "items": {"type": "string"},
                "default": [1, "x"],
            },
        ),
        {"a": [1, "x"]},
    ),
    "examples before the words of an enum": (
        obj(["a"], a={"enum": ["asc", "desc"], "examples": ["desc"]}),
        {"a": "desc"},
    ),
    "a default with too few properties": (
        obj(
            ["a"],
            a={
                **obj(b={"type": "integer"}),
                "minProperties": 2,
                "default": {"b": 1},
                "examples": [{"b": 1, "c": 2}],
            },
        ),
        {"a": {"b": 1, "c": 2}},
    ),
}
UNSURE = {
    "pattern": obj(["a"], a={"type": "string", "pattern": "^b+$"}),
    "not": obj(["a"], a={"not": {"type": "string"}}),
    "unknown format": obj(["a"], a={"type": "string", "format": "iban"}),
    "foreign reference": obj(["a"], a={"$ref": "https://example.com/a"}),
    "endless reference": {**obj(["a"], a={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}},
    "endless nesting": {**obj(["a"], a={"$ref": "#"})},
    "dependent": {**obj(["a"], a={"type": "string"}), "dependentRequired": {"a": ["b"]}},
    "impossible": obj(["a"], a={"type": "integer", "minimum": 3, "maximum": 2}),
    "impossible part": obj(["a"], a=False),
    "one of that overlaps": obj(["a"], a={"oneOf": [{"type": "integer"}, {"type": "number"}]}),
    "not allowed": {"type": "object", "required": ["a"], "additionalProperties": False},
    "huge bounds": obj(["a"], a={"type": "integer", "minimum": 10**400}),
    "no object": {"type": "string"},
    "unique": obj(
        ["a"], a={"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}
    ),
    "too few properties": {**obj(["a"], a={"type": "string"}), "minProperties": 2},
    "a default with too many properties": obj(
        ["a"], a={"type": "object", "maxProperties": 1, "default": {"b": 1, "c": 2}, "patternProperties": {}}
    ),
    "no schema": "text",
}


@pytest.mark.parametrize("name", SURE)
def test_an_example_is_derived_where_it_surely_fits(name):
    schema, expected = SURE[name]

    found = example_arguments(schema)

    assert found == expected
    Draft202012Validator(schema).validate(found)


@pytest.mark.parametrize("name", UNSURE)
def test_no_example_is_derived_where_that_is_not_sure(name):
    assert example_arguments(UNSURE[name]) is None


PLAIN = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": st.integers(0, 9),
            "maxLength": st.integers(0, 9),
            "default": st.text(max_size=5),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            "minimum": st.integers(-9, 9),
            "maximum": st.integers(-9, 9),
            "exclusiveMinimum": st.integers(-9, 9),
            "exclusiveMaximum": st.integers(-9, 9),
            "multipleOf": st.integers(1, 5),
            "default": st.integers(-9, 9),
        },
    ),
    st.builds(lambda values: {"enum": values}, st.lists(st.integers() | st.text(max_size=3), min_size=1)),
    st.just({"type": "boolean"}),
    st.builds(
        lambda given: {"type": "object", "properties": {"b": {"type": "string"}}, "default": given},
        st.dictionaries(st.sampled_from("bc"), st.integers() | st.text(max_size=2), max_size=2),
    ),
    st.builds(
        lambda given: {"type": "array", "items": {"type": "string"}, "default": given},
        st.lists(st.integers() | st.text(max_size=2), max_size=2),
    ),
    st.builds(lambda kinds: {"type": kinds}, st.permutations(["null", "integer", "string"])),
)
SCHEMAS = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.builds(
            lambda properties, count: obj(list(properties)[:count], **properties),
            st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
            st.integers(0, 4),
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={
                "minItems": st.integers(0, 3),
                "maxItems": st.integers(0, 3),
                "uniqueItems": st.booleans(),
            },
        ),
        st.builds(
            lambda word, parts: {word: parts},
            st.sampled_from(["anyOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(400, 100))
@example(
    {"allOf": [{"enum": [0]}, {"type": "object", "properties": {"b": {"type": "string"}}, "default": {}}]}
)
@example({"allOf": [{"not": {"type": "string"}}, {"type": "string"}]})
@given(SCHEMAS)
def test_whatever_is_derived_is_valid(inner):
    schema = obj(["a"], a=inner)

    found = example_arguments(schema)

    if found is not None:
        Draft202012Validator(schema).validate(found)


WORDS = st.sampled_from(
    [
        *(
            "type",
            "enum",
            "const",
            "properties",
            "required",
            "items",
            "prefixItems",
            "anyOf",
            "allOf",
            "oneOf",
        ),
        *(
            "$ref",
            "minimum",
            "multipleOf",
            "minLength",
            "maxItems",
            "minItems",
            "default",
            "examples",
            "format",
        ),
        *("additionalProperties", "minProperties", "uniqueItems", "object", "string", "#", "#/properties"),
    ]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(400, 100))
@given(JUNK)
def test_no_schema_however_broken_breaks_the_derivation(junk):
    for schema in (junk, {"type": "object", "properties": {"a": junk}, "required": ["a"]}):
        json.dumps([example_arguments(schema), constraints(schema), required_names(schema)])


def test_a_schema_that_fans_out_without_end_is_given_up_soon():
    wide = {
        "type": "object",
        "properties": {n: {"$ref": "#"} for n in "abcdefgh"},
        "required": list("abcdefgh"),
    }

    assert example_arguments(wide) is None


def test_bounds_are_told_in_words():
    schema = obj(
        ["a"],
        a={"type": "string", "minLength": 1, "maxLength": 5},
        b={"type": "array", "minItems": 1},
        c={"type": "string"},
        d={"const": "x"},
        e={"type": "string", "pattern": "^x$"},
        f={"enum": list(range(30))},
    )

    told = constraints(schema)

    assert told["a"] == "must be a string, at least 1 characters, at most 5 characters"
    assert told["b"] == "must be an array, at least 1 items"
    assert "c" not in told
    assert told["d"] == 'must be "x"'
    assert told["e"] == "must be a string, matching the pattern of its schema"
    assert told["f"].endswith("18, 19, …")
