"""JSON inside strings: what counts as a JSON text."""

from app.core.content.json_text import MAX_NESTING, is_json_text


def nested(levels: int, inside: str = "") -> str:
    return "[" * levels + inside + "]" * levels


def test_a_text_as_deep_as_the_limit_is_json_and_a_deeper_one_is_not() -> None:
    assert is_json_text(nested(MAX_NESTING))
    assert not is_json_text(nested(MAX_NESTING + 1))


def test_depth_is_counted_on_after_a_part_that_has_ended() -> None:
    assert is_json_text(nested(MAX_NESTING - 2, "[],[[]]"))
    assert not is_json_text(nested(MAX_NESTING - 1, "[],[[]]"))


def test_many_parts_beside_each_other_are_not_deep() -> None:
    assert is_json_text(nested(1, ",".join(["[]"] * (2 * MAX_NESTING))))
