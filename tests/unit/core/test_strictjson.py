"""The strict JSON reader: what it refuses, what it keeps, and that it says nothing of the content."""

import contextlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InvalidRequestError, ServiceError, TooLargeError
from app.core.strictjson import depth_exceeds, dumps, loads
from tests.proportion import assert_in_proportion

SECRET = "Jane-Canary"

MALFORMED = {
    "empty": b"",
    "only space": b"  \n",
    "trailing garbage": b'{"a":1} x',
    "two values": b"{} {}",
    "trailing comma": b"[1,]",
    "comment": b"[1] // no",
    "single quotes": b"{'a': 1}",
    "unclosed object": b'{"a": 1',
    "unclosed string": b'{"a": "Jane-Canary',
    "raw control character": b'"a\x01b"',
    "raw NUL": b'"a\x00b"',
    "bad escape": b'"\\x"',
    "bad unicode escape": b'"\\u12g4"',
    "leading zero": b"[01]",
    "leading plus": b"[+1]",
    "bare dot": b"[.5]",
    "hexadecimal": b"[0x10]",
    "byte order mark": b"\xef\xbb\xbf{}",
    "utf-16": '{"a": "Jane-Canary"}'.encode("utf-16"),
    "utf-16 without mark": '{"a": 1}'.encode("utf-16-le"),
    "invalid utf-8": b'{"a": "\xff\xfe"}',
    "overlong utf-8": b'"\xc0\xaf"',
    "surrogate in utf-8": b'"\xed\xa0\x80"',
    "beyond unicode": b'"\xf5\x80\x80\x80"',
    "no-break space": b"\xc2\xa0[]",
    "duplicate key": b'{"Jane-Canary":1,"Jane-Canary":2}',
    "duplicate key by escape": b'{"a":1,"\\u0061":2}',
    "duplicate key deep": b'[{"x":[{"b":1,"a":2,"b":3}]}]',
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":Infinity}',
    "minus Infinity": b'{"a":-Infinity}',
    "1e400": b'{"a":1e400}',
    "-1e400": b'{"a":-1e400}',
    "5000 digits": b"[" + b"9" * 5000 + b"]",
    "-4301 digits": b"-" + b"9" * 4301,
    "NUL escape": b'"Jane-Canary\\u0000"',
    "NUL escape in a key": b'{"a\\u0000":1}',
    "NUL after a backslash": b'"\\\\\\u0000"',
    "lone high surrogate": b'"a\\ud83d b"',
    "lone high surrogate upper": b'"a\\uD83D"',
    "lone low surrogate": b'"\\ude00"',
    "swapped surrogates": b'"\\ude00\\ud83d"',
    "high then letter": b'"\\ud83d\\u0041"',
    "lone surrogate in a key": b'{"\\udc00":1}',
    "surrogate after a pair": b'"\\ud83d\\ude00\\ud83d"',
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_not_strict_json_is_refused_with_a_position_and_without_content(body: bytes) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        loads(body)
    assert 0 <= caught.value.details["position"] <= len(body)
    seen: BaseException | None = caught.value
    while seen is not None:
        assert SECRET not in f"{seen!r} {seen} {vars(seen)}"
        seen = seen.__cause__ or seen.__context__


@pytest.mark.parametrize(
    ("body", "position"),
    [
        (b'{"a":1,"b":{"a":2},"a":3}', 19),
        (b'{"a":[{"b":1}],"b":2,"a":3}', 21),
        (b"[1, NaN]", 4),
        (b'["NaN", 1e999]', 8),
        (b'["ok", "x\\u0000"]', 9),
        (b'["\\\\ud83d", "\\ud83d"]', 13),
        (b"[" + b"1," * 3 + b"9" * 4301 + b"]", 7),
        (b'["\xff"]', 2),
    ],
)
def test_the_position_points_at_the_fault(body: bytes, position: int) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        loads(body)
    assert caught.value.details["position"] == position


def test_integers_of_thirty_digits_and_of_the_bound_survive_exactly() -> None:
    for digits in ("123456789012345678901234567890", "-" + "9" * 4300, "0", "-1"):
        assert dumps(loads(f"[{digits}]".encode())) == f"[{digits}]".encode()


def test_text_that_only_looks_like_a_bad_escape_is_accepted() -> None:
    assert loads(b'"\\\\u0000"') == "\\u0000"
    assert loads(b'"\\\\ud83d"') == "\\ud83d"
    assert loads(b'"\\\\\\\\ud83d \\u0001 \\u00e9"') == "\\\\ud83d \x01 é"
    assert loads(b'"\\ud83d\\ude00\\uD83D\\uDE00"') == "😀😀"


def test_equal_names_in_different_objects_are_no_duplicates() -> None:
    assert loads(b'{"a":{"a":"a"},"b":["a","a",{"a":1}]}') == {"a": {"a": "a"}, "b": ["a", "a", {"a": 1}]}


def test_key_order_and_null_against_absent_are_kept() -> None:
    body = b'{"z":null,"a":[],"m":{},"b":-0.0}'
    assert dumps(loads(body)) == body


def test_depth_is_counted_exactly() -> None:
    assert loads(b"[" * 64 + b"]" * 64)
    assert loads(b'{"a":[' * 32 + b"1" + b"]}" * 32)
    with pytest.raises(TooLargeError) as caught:
        loads(b"[" * 65 + b"]" * 65)
    assert caught.value.details == {"limit": "depth", "maximum": 64}
    assert loads(b"[" + b"[]," * 500 + b"[[[1]]]]", max_depth=4)
    with pytest.raises(TooLargeError):
        loads(b"[" + b"[]," * 500 + b"[[[[1]]]]]", max_depth=4)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000 + b"]" * 200_000,
        b"[" * 200_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b'{"a":[' * 100_000,
        b"[" * 200_000 + b"}" * 200_000,
        b'["' + b"[" * 10 + b'",' + b"[" * 200_000,
    ],
)
def test_two_hundred_thousand_levels_are_too_large_and_no_recursion(body: bytes) -> None:
    with pytest.raises(TooLargeError):
        loads(body)


def test_brackets_inside_strings_do_not_count_as_depth() -> None:
    assert loads(b'["' + b"[{" * 5000 + b'\\"' + b"[" * 500 + b'"]')


@pytest.mark.parametrize(
    "body",
    [
        lambda count: b'"' + b'\\"' * 2 * count,
        lambda count: b"[" + b"[]," * count + b"1]",
        lambda count: b'"' + b"\\\\" * 2 * count + b'\\u0000"',
        lambda count: b"[" * 64 + b"[]" * 100 + b"x" * 4 * count,
        lambda count: b'"' + b"\\ud83d\\ude00" * (count // 2) + b'"',
    ],
    ids=["escaped quotes", "many pairs", "backslashes", "garbage", "pairs of surrogates"],
)
def test_megabytes_take_linear_time(body: Callable[[int], bytes]) -> None:
    def read(count: int) -> None:
        with contextlib.suppress(ServiceError):
            loads(body(count))

    assert_in_proportion(read, 100_000, 800_000)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), inner)
    ),
    max_leaves=30,
)


@given(JSON)
def test_what_was_written_is_read_back_whole(value: object) -> None:
    assert loads(dumps(value)) == value
    assert loads(json.dumps(value).encode()) == value


@given(st.binary(max_size=200) | st.text('[]{}",:\\ud08123nulltrue \n', max_size=80).map(str.encode))
def test_any_bytes_are_parsed_as_the_standard_library_does_or_refused(body: bytes) -> None:
    try:
        value = loads(body)
    except (InvalidRequestError, TooLargeError):
        return
    assert value == json.loads(body)


@given(st.lists(st.sampled_from([b"[", b"]", b"[]", b'"[["', b"1"]), max_size=60))
def test_the_depth_scan_agrees_with_counting_where_brackets_balance(parts: list[bytes]) -> None:
    body = b"".join(parts)
    deepest = level = 0
    for byte in body.replace(b'"[["', b""):
        level += {91: 1, 93: -1}.get(byte, 0)
        deepest = max(deepest, level)
        if level < 0:
            return
    if level == 0:
        assert depth_exceeds(body, 5) == (deepest > 5)
