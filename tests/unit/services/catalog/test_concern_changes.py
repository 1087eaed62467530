"""What a change of concerns does to the mappings that use them, to the very bound."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.core.catalog.concerns import ConcernDefinition, ConcernMapping
from app.core.catalog.primitives import PrimitiveKind
from app.core.errors import ConflictError, InvalidArgumentsError, TooLargeError
from app.services.catalog.concern_changes import (
    MAX_MAPPINGS,
    ConcernInfo,
    ConcernState,
    MappingInfo,
    check_mapping,
    fitted,
)

NOON = datetime(2025, 10, 4, 12, tzinfo=UTC)


def defined(name: str, *values: Any) -> ConcernDefinition:
    return ConcernDefinition(name=name, description="d", values=values, default=values[0])


def mapping(name: str, **concerns: Any) -> ConcernMapping:
    return ConcernMapping(kind=PrimitiveKind.TOOL, name=name, concerns=concerns)


def state(definitions: list[ConcernDefinition], mappings: list[ConcernMapping]) -> ConcernState:
    return ConcernState(
        {one.name: ConcernInfo(one, "api", NOON, NOON) for one in definitions},
        {(one.kind, one.name): MappingInfo(one, "file", NOON, NOON) for one in mappings},
    )


COST = defined("cost", "low", "mid", "high")


@pytest.mark.parametrize(
    ("mapped", "left"),
    [
        ({"cost": "low"}, {"cost": "low"}),
        ({"cost": ["low", "gone"]}, {"cost": ["low"]}),
        ({"cost": ["gone"]}, {}),
        ({"cost": "gone"}, {}),
        ({"cost": {"min": "low", "max": "high"}}, {"cost": {"min": "low", "max": "high"}}),
        ({"cost": {"min": "low", "max": "gone"}}, {}),
        ({"cost": "low", "lost": 1}, {"cost": "low"}),
    ],
)
def test_what_fits_no_more_is_refused_or_by_force_taken_out(
    mapped: dict[str, Any], left: dict[str, Any]
) -> None:
    after = state([COST], [mapping("t", **mapped), mapping("kept", cost="mid")])
    forced = fitted(after, force=True)
    found = forced.mappings[PrimitiveKind.TOOL, "t"]
    assert found.mapping.concerns == left
    assert (found.origin, found.created) == ("file", NOON)
    assert forced.mappings[PrimitiveKind.TOOL, "kept"].mapping.concerns == {"cost": "mid"}
    if left == mapped:
        assert fitted(after, force=False) == after
    else:
        with pytest.raises(ConflictError) as refused:
            fitted(after, force=False)
        assert refused.value.details == {"mappings": 1, "named": ["tool t"]}


def test_of_many_mappings_in_the_way_ten_are_named_and_all_are_counted() -> None:
    after = state([COST], [mapping(f"t{number}", cost="gone") for number in range(11)])
    with pytest.raises(ConflictError) as refused:
        fitted(after, force=False)
    assert refused.value.details == {"mappings": 11, "named": [f"tool t{number}" for number in range(10)]}


def test_as_many_concerns_and_mappings_fit_as_are_told_and_not_one_more() -> None:
    many = [defined(f"c{number}", 1) for number in range(65)]
    fitted(state(many[:64], []), force=False)
    with pytest.raises(TooLargeError):
        fitted(state(many, []), force=False)
    one = mapping("t")
    rows = {
        (PrimitiveKind.TOOL, f"t{number}"): MappingInfo(one, "api", NOON, NOON)
        for number in range(MAX_MAPPINGS)
    }
    fitted(ConcernState({}, rows), force=False)
    rows[PrimitiveKind.PROMPT, "more"] = MappingInfo(one, "api", NOON, NOON)
    with pytest.raises(TooLargeError):
        fitted(ConcernState({}, rows), force=True)


@pytest.mark.parametrize(
    ("mapped", "pointer"),
    [
        ({"lost": 1}, "/concerns/lost"),
        ({"cost": "gone"}, "/concerns/cost"),
        ({"cost": ["low", "gone"]}, "/concerns/cost/1"),
        ({"cost": {"min": "low", "max": "gone"}}, "/concerns/cost/max"),
        ({"cost": {"min": "gone", "max": "lost"}}, "/concerns/cost/min"),
    ],
)
def test_the_first_value_that_is_not_declared_is_named(mapped: dict[str, Any], pointer: str) -> None:
    check_mapping(mapping("t", cost=["low", "high"]), {"cost": COST})
    with pytest.raises(InvalidArgumentsError) as refused:
        check_mapping(mapping("t", **mapped), {"cost": COST}, "/at")
    assert refused.value.details == {"pointer": f"/at{pointer}"}
