"""restore(redact(x)) == x for every x, whatever is found in it and whatever it already looks like."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.content.context import Context
from app.core.content.handles import find_handles
from app.core.content.leaves import REPORTED_PLACES
from app.core.content.text_edits import Edit, Reveal
from app.core.contracts.engines import Span
from app.core.redaction.redaction import conceal_edits
from app.core.strictjson import dumps
from tests.fakes import MemoryVault
from tests.sampling import examples

PIECES = st.sampled_from(
    [
        *(
            "John Doe",
            "[PERSON_1]",
            "PERSON_1",
            "[person_2]",
            "[LITERAL_1]",
            "(EMAIL_1)",
            r"\[SSN\_1\]",
            "[X_1~abcd]",
        ),
        *(
            "[",
            "]",
            "[[",
            "]]",
            "(",
            ")",
            "<",
            ">",
            "{",
            "}",
            "\\",
            "\\[",
            "\\]",
            "_1",
            "_",
            "1",
            "0",
            "`",
            '"',
            " ",
        ),
        *(
            "PERSON",
            "PERS",
            "~abcd",
            "https://x.y/",
            "](",
            '{"a": "',
            '"}',
            '["',
            '"]',
            "\\u00e9",
            "\\ud83d",
            "\\n",
        ),
        *("José", "\u200b", "\n", "a@b.cd", "123-45-6789"),
    ]
)
STRINGS = st.lists(PIECES | st.text(max_size=3), max_size=10).map("".join)
WRAPPED = (
    STRINGS
    | STRINGS.map(lambda s: json.dumps({"k": s, "n": [s, 1]}))
    | STRINGS.map(lambda s: json.dumps({"k": json.dumps([s], ensure_ascii=False)}))
)
CLEAN = WRAPPED.map(lambda s: s.replace("\x00", "").encode("utf-8", "replace").decode())


def redacted(items: list[Any], draw: Any, vault: MemoryVault) -> list[Any]:
    """Conceal arbitrary spans of every leaf that may be changed."""
    context = Context.parse(items)
    edits: list[Edit] = []
    for leaf in context.leaves:
        if leaf.place in REPORTED_PLACES:
            continue
        cuts = sorted(draw(st.lists(st.integers(0, len(leaf.text)), max_size=6, unique=True)))
        spans = [
            Span(start, end, draw(st.sampled_from(["PERSON", "EMAIL", "IN_PAN"])), 1.0)
            for start, end in zip(cuts[::2], cuts[1::2], strict=False)
        ]
        edits += conceal_edits(leaf, spans)
    return vault.settle(context.edited(edits)).to_json()


def restored(items: list[Any], vault: MemoryVault) -> list[Any]:
    context = Context.parse(items)
    edits = [
        Edit(leaf, match.start, match.end, Reveal(match.handle))
        for leaf in context.leaves
        if leaf.place not in REPORTED_PLACES
        for match in find_handles(leaf.text)
    ]
    return vault.settle(context.edited(edits)).to_json()


@settings(max_examples=examples(20_000, 200), deadline=None)
@given(CLEAN, st.data())
def test_restoring_a_redaction_gives_the_text_back_to_the_character(text: str, data: st.DataObject) -> None:
    vault = MemoryVault()
    items = [{"type": "text", "text": text}]
    hidden = redacted(items, data.draw, vault)
    assert restored(hidden, vault) == items


@settings(max_examples=examples(300, 100), deadline=None)
@given(st.lists(CLEAN, min_size=1, max_size=4), st.data())
def test_the_law_holds_in_tool_calls_and_results_and_blobs(texts: list[str], data: st.DataObject) -> None:
    vault = MemoryVault()
    items = [
        {"role": "user", "content": texts[0]},
        {"type": "tool_use", "id": "1", "name": "n", "input": {"a": texts, "b": {"c": texts[-1]}}},
        {"type": "tool_result", "toolUseId": "1", "content": texts[0], "structuredContent": {"x": texts[-1]}},
    ]
    hidden = redacted(items, data.draw, vault)
    assert dumps(restored(hidden, vault)) == dumps(items)


@settings(max_examples=60, deadline=None)
@given(st.lists(CLEAN, min_size=1, max_size=50), st.data())
def test_the_law_holds_over_a_conversation_of_fifty_turns(turns: list[str], data: st.DataObject) -> None:
    vault = MemoryVault()
    hidden = [redacted([turn], data.draw, vault) for turn in turns]
    assert [restored(one, vault)[0] for one in hidden] == turns


def test_text_that_looks_like_a_handle_reveals_nothing() -> None:
    vault = MemoryVault()
    first = redacted_plain("My name is John Doe", [Span(11, 19, "PERSON", 1.0)], vault)
    assert first == "My name is [PERSON_1]"
    second = redacted_plain("Who is [PERSON_1] or person_1 or PERSON_1?", [], vault)
    assert second == "Who is [LITERAL_1] or person_1 or [LITERAL_2]?"
    assert restored([second], vault) == ["Who is [PERSON_1] or person_1 or PERSON_1?"]


def test_without_escaping_a_typed_handle_would_reveal_someone() -> None:
    """Negative control of the test above: the danger is real."""
    vault = MemoryVault()
    redacted_plain("John Doe", [Span(0, 8, "PERSON", 1.0)], vault)
    assert restored(["Who is [PERSON_1]?"], vault) == ["Who is John Doe?"]


def redacted_plain(text: str, spans: list[Span], vault: MemoryVault) -> str:
    context = Context.parse([text])
    edits = conceal_edits(context.leaves[0], spans)
    done: str = vault.settle(context.edited(edits)).to_json()[0]
    return done


def test_unusual_escapes_in_json_come_back_as_they_stood() -> None:
    vault = MemoryVault()
    text = '{"name": "Jos\\u00e9", "again": "José"}'
    context = Context.parse([text])
    edits = [edit for leaf in context.leaves for edit in conceal_edits(leaf, [Span(0, 4, "PERSON", 1.0)])]
    hidden = vault.settle(context.edited(edits)).to_json()
    assert hidden == ['{"name": "[PERSON_1]", "again": "[PERSON_2]"}']
    assert restored(hidden, vault) == [text]
    assert restored(["Dear [PERSON_1] and [PERSON_2]"], vault) == ["Dear José and José"]


def test_a_value_is_escaped_where_the_model_puts_it_into_json() -> None:
    vault = MemoryVault()
    redacted_plain('He said "hi"\n', [Span(0, 13, "CUSTOM", 1.0)], vault)
    assert restored(['{"quote": "[CUSTOM_1]"}'], vault) == [json.dumps({"quote": 'He said "hi"\n'})]


def test_a_keep_handle_stays_where_the_scope_knows_it() -> None:
    vault = MemoryVault()
    redacted_plain("John Doe", [Span(0, 8, "PERSON", 1.0)], vault)
    context = Context.parse(["[PERSON_1] met [PERSON_7]"])
    edits = conceal_edits(context.leaves[0], [], handles="keep")
    assert vault.settle(context.edited(edits)).to_json() == ["[PERSON_1] met [LITERAL_1]"]
