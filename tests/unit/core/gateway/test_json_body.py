"""Change values in a JSON text: every byte around them stays."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core import strictjson
from app.core.errors import TooLargeError
from app.core.gateway.json_body import JsonBody, RawJson, json_text

SPELLED = '{ "a" : 1.00 ,\n "b":["x\\u00e9", {"c" :"y"} , 1e5],"d":{}, "e":[ ] }'


def paths_of(value, path=()):
    yield path
    if isinstance(value, dict):
        for name, member in value.items():
            yield from paths_of(member, (*path, name))
    elif isinstance(value, list):
        for number, element in enumerate(value):
            yield from paths_of(element, (*path, number))


@pytest.mark.parametrize(
    ("values", "fronts", "expected"),
    [
        ({("b", 1, "c"): "ö"}, {}, SPELLED.replace('"y"', '"ö"')),
        ({("a",): "one"}, {}, SPELLED.replace("1.00", '"one"')),
        ({("f",): 2, ("g",): 3}, {}, SPELLED.replace("[ ] }", '[ ],"f":2,"g":3 }')),
        ({("d", "n"): 1, ("d", "m"): 2}, {}, SPELLED.replace("{}", '{"n":1,"m":2}')),
        ({}, {("b",): [0, "z"]}, SPELLED.replace("[", '[0,"z",', 1)),
        ({}, {("e",): [{"k": 1}]}, SPELLED.replace("[ ]", '[{"k":1} ]')),
        ({("b", 0): "q"}, {("b",): ["first"]}, SPELLED.replace('["x\\u00e9"', '["first","q"')),
        ({}, {("b",): [], ("e",): []}, SPELLED),
        ({("b",): RawJson("[ 7 ]")}, {}, '{ "a" : 1.00 ,\n "b":[ 7 ],"d":{}, "e":[ ] }'),
    ],
)
def test_only_the_changed_values_differ(values, fronts, expected):
    assert JsonBody.parse(SPELLED.encode()).replaced(values, fronts).text == expected


def test_nothing_changed_is_the_same_text():
    assert JsonBody.parse(SPELLED.encode()).replaced({}).text == SPELLED


def test_the_text_of_a_value_is_as_it_came():
    body = JsonBody.parse(SPELLED.encode())
    assert body.raw(("b", 0)) == '"x\\u00e9"'
    assert body.raw(("b", 2)) == "1e5"
    with pytest.raises(KeyError):
        body.raw(("z",))


@pytest.mark.parametrize("path", [("a", "x"), ("b", 9), ("z", "y"), ("b", 0, 1)])
def test_a_path_that_leads_nowhere_is_an_error(path):
    with pytest.raises(KeyError):
        JsonBody.parse(SPELLED.encode()).replaced({path: 1})


def test_half_a_surrogate_pair_is_escaped():
    assert json_text("a\ud800é") == '"a\\ud800\\u00e9"'
    assert JsonBody.lenient('{"a":"\\ud800"}').replaced({("b",): "ö"}).text == '{"a":"\\ud800","b":"ö"}'


def test_what_is_no_json_is_told():
    assert JsonBody.lenient("[DONE]") is None
    assert JsonBody.lenient("[" * 100_000) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.data(), st.sampled_from([None, 1]), st.booleans())
def test_a_replaced_value_is_the_only_difference(value, data, indent, plain):
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    path = data.draw(st.sampled_from(list(paths_of(value))))
    body = JsonBody(text, value)
    raw = body.raw(path)
    changed = body.replaced({path: "§new§"})
    before, mark, after = changed.text.partition('"§new§"')
    assert mark and before + raw + after == text


def test_a_body_that_was_parsed_before_is_the_same_body():
    raw = '{"model":"m", "messages": [{"content": "é", "n": 1.50}]}'.encode()
    value = strictjson.loads(raw)
    body = JsonBody.parsed(raw, value)
    assert body.value is value and body.text.encode() == raw
    changed = body.replaced({("messages", 0, "content"): "ü"})
    assert changed.text == '{"model":"m", "messages": [{"content": "ü", "n": 1.50}]}'
    deep = b"[" * 65 + b"]" * 65
    with pytest.raises(TooLargeError):
        JsonBody.parsed(deep, [[]])
