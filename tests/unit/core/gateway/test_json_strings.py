"""Strings inside of JSON that arrives in parts."""

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.content.handles import Handle, Original
from app.core.gateway.channels import ChannelKind, TextChannel, ToolRunner
from app.core.gateway.json_strings import JsonEscaping, JsonStrings, perhaps_json
from app.core.gateway.offsets import hidden_map
from app.core.gateway.restoring import HandleRestoration

ORIGINALS = {Handle("PERSON", 1): 'A"\\\n\u00e9', Handle("PERSON", 2): "🙂 Ben"}


def resolve(handle):
    return Original(ORIGINALS[handle]) if handle in ORIGINALS else None


def restored(text, *cuts, depth=0):
    restoration = HandleRestoration(resolve, safe=False)
    pointers = []

    def open_string(pointer):
        pointers.append(pointer)
        return restoration(TextChannel(("a",), ChannelKind.ARGUMENTS, "f", ToolRunner.CLIENT, pointer))

    channel = perhaps_json(open_string, "", depth)
    pieces = [
        piece
        for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)
        for piece in channel.feed(text[i:j])
    ]
    pieces += channel.finish()
    assert "".join(piece.source for piece in pieces) == text
    return "".join(piece.text for piece in pieces), pointers


def in_value(value):
    """Return what a value is with originals in all strings and names of members."""
    if isinstance(value, str):
        for handle, original in ORIGINALS.items():
            value = value.replace(str(handle), original)
        return value
    if isinstance(value, list):
        return [in_value(element) for element in value]
    if isinstance(value, dict):
        return {in_value(name): in_value(member) for name, member in value.items()}
    return value


WORDS = st.lists(
    st.sampled_from(
        ["[PERSON_1]", "[PERSON_2]", "[PER", "x", " ", '"', "\\", "é", "🙂", "\n", "{", "}", "]", ":"]
    ),
    max_size=5,
)
WORDS = WORDS.map("".join).filter(lambda text: re.match(r"\s*(\{\s*[\"}]|\[\s*[{\"\]])", text) is None)
"""What begins like JSON is read as JSON, also where it never becomes JSON: the next test."""

VALUES = st.recursive(
    WORDS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=3), st.booleans(), st.data())
def test_strings_are_restored_over_any_cut(value, plain, data):
    text = json.dumps(value, ensure_ascii=plain)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=8)))
    out, _ = restored(text, *cuts)
    assert json.loads(out) == in_value(value)
    assert out == restored(text)[0] == restored(text, *range(1, len(text)))[0]


def test_json_inside_of_a_string_is_escaped_once_more():
    inner = json.dumps({"deep": "to [PERSON_1]"})
    text = json.dumps({"body": inner, "plain": "[PERSON_1]"})
    out, pointers = restored(text, *range(1, len(text)))
    body = json.loads(out)
    assert json.loads(body["body"]) == {"deep": f"to {ORIGINALS[Handle('PERSON', 1)]}"}
    assert "/body#/deep" in pointers and "/plain" in pointers


def test_a_string_that_only_begins_like_json_is_restored_where_names_stand():
    text = json.dumps({"a": '{"[PERSON_2] is no JSON'})
    assert json.loads(restored(text)[0]) == {"a": '{"🙂 Ben is no JSON'}


def test_pointers_lead_to_the_strings():
    text = json.dumps({"a/b": [1, "x", {"c~": "y"}], "d": "z"})
    named = [pointer for pointer in restored(text)[1] if pointer]
    assert named == ["/", "/a~1b/1", "/a~1b/2/", "/a~1b/2/c~0", "/", "/d"]


def test_what_surrounds_the_strings_stays_as_it_came():
    text = ' { "n" : 1.0 ,"e":"\\u00e9\\/" , "k[PERSON_9]": true} '
    assert restored(text)[0] == text


@pytest.mark.parametrize(
    "text", ['{"a": "[PERSON_', '{"a": "x\\', '{"a": "\\u00', '{"a', "{", "", "[PERSON_2] is it"]
)
def test_json_that_ends_too_early_keeps_its_characters(text):
    expected = text.replace("[PERSON_2]", ORIGINALS[Handle("PERSON", 2)])
    assert restored(text)[0] == restored(text, *range(1, len(text)))[0] == expected


def test_a_backslash_that_begins_no_escape_stays():
    assert restored('{"a": "\\ux [PERSON_2]"}')[0] == '{"a": "\\ux 🙂 Ben"}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": "[PERSON_1]"}', '{"a": "A\\"\\\\\\n\u00e9"}'),
        ('[1] says "[PERSON_1]"', '[1] says "A"\\\n\u00e9"'),
        ('{"a": 1} "[PERSON_1]"', '{"a": 1} "A"\\\n\u00e9"'),
        ("[PERSON_1]", 'A"\\\n\u00e9'),
        ('{x: "[PERSON_1]"}', '{x: "A"\\\n\u00e9"}'),
    ],
)
def test_a_text_is_escaped_where_it_is_json(text, expected):
    for cuts in ([], range(1, len(text))):
        channel = JsonEscaping(HandleRestoration(resolve, safe=False)(TextChannel(("a",), ChannelKind.TEXT)))
        bounds = [0, *cuts, len(text)]
        pieces = [piece for i, j in itertools.pairwise(bounds) for piece in channel.feed(text[i:j])]
        assert "".join(piece.text for piece in [*pieces, *channel.finish()]) == expected


def test_strings_that_nobody_changes_stay():
    channel = JsonStrings(lambda _: None)
    assert "".join(piece.text for piece in channel.feed('{"a": "\\u00e9"}')) == '{"a": "\\u00e9"}'


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["[PERSON_1]", "[PERSON_2]", "[PERSON_3]", "ab", "é ", "Ben"]), max_size=8))
def test_offsets_of_hidden_texts_lead_to_the_caller_s(parts):
    came = "".join(in_value(part) for part in parts)
    offsets = hidden_map("".join(parts), came, resolve)
    place = hidden = 0
    for part in parts:
        original = in_value(part)
        start, end = offsets.start(hidden), offsets.end(hidden + len(part))
        assert came[start:end] == original
        place, hidden = place + len(original), hidden + len(part)


def test_what_was_masked_is_compared():
    offsets = hidden_map("x *** by [PERSON_2]", "x Zoe by 🙂 Ben", resolve)
    assert (offsets.start(2), offsets.end(5)) == (2, 5)
    kept = hidden_map("[PERSON_2] and [PERSON_2]", "[PERSON_2] and 🙂 Ben", resolve)
    assert (kept.end(10), kept.end(25)) == (10, 20)
