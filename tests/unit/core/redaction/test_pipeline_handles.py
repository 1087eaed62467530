"""Handles for the length of one call: what goes in comes out, whatever the steps put around it."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.content.context import Context
from app.core.content.handles import Handle, Original, find_handles, restore_text
from app.core.content.text_edits import Conceal, Edit, Reveal
from app.core.contracts.engines import DetectionOptions
from app.core.redaction.pipeline_handles import Additions, PipelineHandles
from app.core.redaction.redaction import conceal_edits
from tests.fakes import FakeDetector

DETECTOR = FakeDetector()
SECRETS = FakeDetector({"SECRET_KEY": r"\bkey=\S+(?: \[[A-Z]+_\d+\])?"})

pieces = st.sampled_from(
    [
        *("Jane Smith", "John Doe", "123-45-6789", "jane@example.com", "José", "key=abc", "key=x Jane Smith"),
        *("[PERSON_1]", "[LITERAL_1]", "(Person 2)", "[SSN_9]", " and ", "\n", '"', "\\", "{", "é", "[", "]"),
        *("[SECRET_KEY_1]", "PERSON_1", "[[PERSON_1]]", '{"a": "Jane Smith"}', "key=[PERSON_1] [PERSON_2]"),
    ]
)
texts = st.lists(pieces, max_size=8).map("".join)
values = st.recursive(
    texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)


def items_of(text: str, value: Any) -> list[Any]:
    return [
        {"type": "text", "text": text},
        {"role": "user", "content": text},
        {"type": "tool_use", "id": "1", "name": "t", "input": {"v": value}},
        {"type": "resource_link", "uri": "https://x/[PERSON_1]", "name": "[PERSON_1]"},
    ]


def redacted(table: PipelineHandles, detector: FakeDetector, items: list[Any], **options: Any) -> list[Any]:
    """Return ``items`` as a redaction step leaves them."""
    context = Context.parse(items)
    edits = [
        edit
        for leaf in context.leaves
        if leaf.place not in {"uri", "key", "number", "field"}
        for edit in conceal_edits(leaf, detector._one(leaf.scannable, DetectionOptions()))
    ]
    return table.conceal(context.edited(edits), **options).to_json()


def vault_of(
    table: PipelineHandles, items: list[Any], first: int
) -> tuple[list[Any], Mapping[Handle, Original]]:
    """Return ``items`` with handles of a scope that has given others before, and what stands behind them."""
    context = Context.parse(items)
    real = {one: Handle(one.label, one.ordinal + first) for one in table.present(context)}
    originals = {handle: table.originals[one] for one, handle in real.items()}
    return table.with_vault_handles(context, real).to_json(), originals


def restored(items: list[Any], originals: Mapping[Handle, Original]) -> list[Any]:
    """Return ``items`` with originals in place of handles, as the restoring middleware puts them back."""
    context = Context.parse(items)
    edits = [
        Edit(leaf, match.start, match.end, Reveal(match.handle))
        for leaf in context.leaves
        if leaf.place not in {"uri", "key", "number", "field"}
        for match in find_handles(leaf.text)
    ]
    return context.edited(edits).resolved({}, originals).to_json()


@settings(max_examples=150, deadline=None)
@given(texts, values, texts, st.integers(0, 30))
def test_what_a_pipeline_redacts_comes_back_with_what_was_added(
    text: str, value: Any, document: str, first: int
) -> None:
    table = PipelineHandles()
    items = redacted(table, SECRETS, redacted(table, DETECTOR, items_of(text, value)))

    step = Context.parse(items).prefixed(f"Found: {document}\n\n")
    additions = Additions(step)
    cleaned = redacted(table, DETECTOR, additions.items, temporary=additions.moved)
    cleaned = redacted(table, SECRETS, cleaned)
    final, originals = vault_of(table, additions.replaced(cleaned).to_json(), first)

    expected = items_of(text, value)
    expected[1]["content"] = f"Found: {document}\n\n{text}"
    assert restored(final, originals) == expected


def test_additions_that_look_like_handles_are_not_taken_for_them() -> None:
    table = PipelineHandles()
    items = redacted(table, DETECTOR, ["Jane Smith"])
    step = Context.parse(items).prefixed("Says [PERSON_1]: ")
    additions = Additions(step)
    cleaned = redacted(table, DETECTOR, additions.items, temporary=additions.moved)
    assert additions.replaced(cleaned).to_json() == ["Says [LITERAL_1]: [PERSON_1]"]
    assert step.to_json() == ["Says [PERSON_1]: [PERSON_1]"], "the control: without it both are the same"


def test_text_that_an_edit_moves_keeps_its_handles() -> None:
    table = PipelineHandles()
    items = redacted(table, DETECTOR, ["Ask Jane Smith now"])
    context = Context.parse(items)
    leaf = context.leaves[0]
    step = context.edited([Edit(leaf, 0, len(leaf.text), f"({leaf.text}) John Doe [SSN_1]")])
    additions = Additions(step)
    cleaned = redacted(table, DETECTOR, additions.items, temporary=additions.moved)
    made = additions.replaced(cleaned).to_json()
    assert made == ["(Ask [PERSON_1] now) [PERSON_2] [LITERAL_1]"]
    assert table.originals[Handle("PERSON", 2)] == Original("John Doe")


def test_numbers_begin_behind_handles_that_stay() -> None:
    table = PipelineHandles()
    context = Context.parse(["[PERSON_3] and Jane Smith"])
    leaf = context.leaves[0]
    kept = Handle("PERSON", 3)
    planned = context.edited(
        [Edit(leaf, 0, 10, Conceal("LITERAL", kept)), Edit(leaf, 15, 25, Conceal("PERSON"))]
    )
    items = table.conceal(planned, kept={kept}).to_json()
    assert items == ["[PERSON_3] and [PERSON_4]"]
    final, originals = vault_of(table, items, 5)
    assert final == ["[PERSON_3] and [PERSON_9]"]
    assert {str(one.text) for one in originals.values()} == {"Jane Smith"}


def test_an_original_around_a_handle_is_what_stood_there_first() -> None:
    table = PipelineHandles()
    items = redacted(table, DETECTOR, ['{"p": "key=x Jos\\u00e9"}'])
    leaf = Context.parse(items).leaves[0]
    assert "[PERSON_1]" in leaf.text
    whole = Context.parse(items).edited([Edit(leaf, 0, len(leaf.text), Conceal("SECRET_KEY"))])
    final = table.conceal(whole).to_json()
    assert final == ['{"p": "[SECRET_KEY_1]"}']
    settled, originals = vault_of(table, final, 0)
    assert list(originals) == [Handle("SECRET_KEY", 1)], "a handle that stands nowhere is not given"
    assert restored(settled, originals) == ['{"p": "key=x Jos\\u00e9"}']


def test_names_in_metadata_follow_the_handles() -> None:
    table = PipelineHandles()
    redacted(table, DETECTOR, ["Jane Smith"])
    handles = {Handle("PERSON", 1): Handle("PERSON", 8)}
    said = {"findings": [{"text": "[PERSON_1] is tall", "score": 0.5, "seen": True}]}
    assert table.metadata_with_vault_handles(said, handles) == {
        "findings": [{"text": "[PERSON_8] is tall", "score": 0.5, "seen": True}]
    }
    assert restore_text("[PERSON_1]", {Handle("PERSON", 1): Original("x")}) == "x"
