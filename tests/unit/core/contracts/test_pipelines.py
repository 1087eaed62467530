"""The JSON Schema of a pipeline's arguments, made of those of its steps."""

from app.core.contracts.pipelines import Pipeline, input_schema


def test_definitions_of_two_steps_are_kept_apart_and_references_follow_them() -> None:
    def schema_of(kind: str) -> dict[str, object]:
        return {
            "$defs": {"Mode": {"type": kind}, "Modes": {"type": "array", "items": {"$ref": "#/$defs/Mode"}}},
            "properties": {"modes": {"anyOf": [{"$ref": "#/$defs/Modes"}, {"type": "null"}]}},
        }

    pipeline = Pipeline(name="both", steps=[{"name": "first"}, {"name": "second"}])
    schema = input_schema(pipeline, {"first": schema_of("string"), "second": schema_of("integer")})

    assert schema["$defs"] == {
        "first.Mode": {"type": "string"},
        "first.Modes": {"type": "array", "items": {"$ref": "#/$defs/first.Mode"}},
        "second.Mode": {"type": "integer"},
        "second.Modes": {"type": "array", "items": {"$ref": "#/$defs/second.Mode"}},
    }
    modes = schema["properties"]["second"]["properties"]["modes"]
    assert modes == {"anyOf": [{"$ref": "#/$defs/second.Modes"}, {"type": "null"}]}
