"""Members of a call in JSON keep their handles wherever they stand, in a whole text and in every cut of a stream."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.content.begun_calls import LONGEST_HOLD, begun_calls, is_inside
from app.core.content.handles import Handle, Original, StreamingRestoration
from tests.proportion import assert_in_proportion
from tests.sampling import examples

HANDLE, EMAIL = "[EMAIL_1]", "ruth.okafor@harbour.example"
MAP = {Handle("EMAIL", 1): Original(EMAIL)}

CALLS = {
    "id first": '{"id":"[EMAIL_1]","name":"send","arguments":{}}',
    "in an object before": '{"to":{"a":["[EMAIL_1]"]},"tool_calls":[]}',
    "as a name": '{"[EMAIL_1]":1,"arguments":{}}',
    "bracket in a string": '{"id":"[EMAIL_1]","x":"}","name":"send","arguments":{}}',
    "brackets in strings": '{"id":"[EMAIL_1]","x":"}{","y":"}","name":"send","arguments":{}}',
    "escaped quote": '{"id":"[EMAIL_1]","x":"a\\"}","arguments":{}}',
    "even backslashes": '{"id":"[EMAIL_1]","x":"a\\\\","arguments":{}}',
    "in a string": '{"t":"{\\"id\\":\\"[EMAIL_1]\\",\\"x\\":\\"}\\",\\"arguments\\":{}}"}',
    "in a string with lines": '{"t":"{\\n  \\"id\\": \\"[EMAIL_1]\\",\\n  \\"arguments\\": {}}"}',
    "with quotes of Python": "{'id': '[EMAIL_1]', 'x': '}', 'arguments': {}}",
    "without quotes": '{id: "[EMAIL_1]", arguments: {}}',
    "two names": '{"id":"[EMAIL_1]","name":"send","input":{"a":1}}',
    "two names, turned": '{"id":"[EMAIL_1]","parameters":{"a":1},"name":"send"}',
    "value that shows it": '{"id": "[EMAIL_1]", "type" : "tool_use"}',
    "lines and blanks": '{\n  "id": "[EMAIL_1]",\n\n\n  "arguments"  :\n {}}',
    "short first name": '{"$":"[EMAIL_1]","arguments":{}}',
    "comment": '{/* a */"id":"[EMAIL_1]","arguments":{}}',
    "in a list": '[{"n":1},{"id":"[EMAIL_1]","function_call":{}}]',
}
DATA = (
    '{"customer":"[EMAIL_1]","tags":["a"]} and [EMAIL_1]',
    '{"a":{"b":"[EMAIL_1]"},"text":"}"}',
    '{"to": "[EMAIL_1]", "steps": [{"arguments": {}}]}',
    '{"note": "the arguments: [EMAIL_1]", "type": "text"}',
    "def f(x): return {x: '[EMAIL_1]'}",
    "Use { and } for sets. [EMAIL_1], arguments: yes",
    '{"open": "[EMAIL_1]',
)


def streamed(text: str, cuts: list[int]) -> str:
    stream = StreamingRestoration(MAP.get, safe_positions=True)
    pieces = [stream.feed(text[start:end]) for start, end in pairwise([0, *sorted(cuts), len(text)])]
    return "".join(pieces) + stream.finish()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_keeps_its_handles_in_a_whole_text_and_in_a_stream(name: str) -> None:
    text = f"Dear it's {HANDLE}, \n" + CALLS[name] + "\nBye " + HANDLE
    place = text.index(HANDLE, text.index(HANDLE) + 1)
    assert is_inside(begun_calls(text), place)
    expected = text[:place].replace(HANDLE, EMAIL) + CALLS[name][CALLS[name].index("[EMAIL_1]") :]
    for cuts in ([], list(range(len(text))), list(range(0, len(text), 7))):
        assert streamed(text, cuts) == f"{expected}\nBye {EMAIL}"


@pytest.mark.parametrize("text", DATA)
def test_other_objects_are_restored_in_a_stream(text: str) -> None:
    for cuts in ([], list(range(len(text))), [len(text) // 2]):
        assert streamed(text, cuts) == text.replace(HANDLE, EMAIL)


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *(
                '{"id":"',
                '"',
                "'",
                "\\",
                '\\"',
                "{",
                "}",
                ",",
                ":",
                " ",
                "\n",
                "\\n",
                "[EMAIL_1]",
                "{EMAIL_1}",
            ),
            *(
                '"arguments":',
                "arguments:",
                '"name":"a"',
                '"input":',
                '"type":"tool_use"',
                '\\"args\\":',
                "ab",
                "{/*",
            ),
        ]
    ),
    max_size=24,
).map("".join)


@settings(max_examples=examples(5_000, 200), deadline=None)
@given(FRAGMENTS, st.data())
def test_no_cut_changes_what_is_restored(text: str, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    assert streamed(text, cuts) == streamed(text, []) == streamed(text, list(range(len(text))))


def test_text_outside_of_objects_never_waits() -> None:
    stream = StreamingRestoration(MAP.get, safe_positions=True)
    assert stream.feed(f"Write to {HANDLE}, and ") == f"Write to {EMAIL}, and "
    assert stream.feed('{"a": 1, "b": "') == '{"a": 1, "b": "'
    assert stream.feed(f'{HANDLE}", ') == ""
    assert stream.feed('"c": 1}') == f'{EMAIL}", "c": 1}}'
    assert stream.feed(f" Bye {HANDLE}, ") == f" Bye {EMAIL}, "
    assert stream.feed(f'{{"a": "{HANDLE}", ') == '{"a": "'
    assert stream.feed('"arguments": 1') == f'{HANDLE}", "arguments": 1', (
        "what is decided does not wait for the end"
    )


@pytest.mark.parametrize("cut", [1 << 30, 50_000])
def test_an_object_too_long_to_wait_for_keeps_its_handles_until_it_ends(cut: int) -> None:
    long = '{"a": "[EMAIL_1]", "b": "' + "x" * (LONGEST_HOLD + 10) + '", "c": "[EMAIL_1]"} '
    text = long + "[EMAIL_1] "
    shown = streamed(text, list(range(0, len(text), cut)))
    assert shown == long + EMAIL + " "
    assert is_inside(begun_calls(text), text.index(HANDLE))
    assert not is_inside(begun_calls(text), text.rindex(HANDLE))
    fits = '{"a": "[EMAIL_1]", "b": "' + "x" * (LONGEST_HOLD // 2) + '"}'
    assert streamed(fits, list(range(0, len(fits), cut))) == fits.replace(HANDLE, EMAIL)


@pytest.mark.parametrize(
    "unit", ['{"a":"[EMAIL_1]",', "\\", '{"a":{', '{"a\\', "{,", '{"a":"\\\\"', ",\\n", "{ ", ', "args"']
)
def test_a_hostile_object_takes_linear_time(unit: str) -> None:
    def read(size: int, cut: int) -> None:
        text = '{"a":"' + unit * (size // len(unit))
        streamed(text, list(range(0, len(text), cut)))

    assert_in_proportion(lambda size: read(size, 13), 8_000, 64_000)
    assert_in_proportion(lambda size: read(size, 1 << 30), 8_000, 64_000)
