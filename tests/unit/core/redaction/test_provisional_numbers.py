"""Where provisional handles begin to count, and which of them stand in a text."""

from app.core.content.context import Context
from app.core.content.handles import Handle, Original
from app.core.content.text_edits import Conceal, Edit
from app.core.redaction.pipeline_handles import Additions, PipelineHandles


def concealed(
    table: PipelineHandles, text: str, *finds: tuple[str, str], kept: set[Handle] | None = None
) -> str:
    """Return ``text`` with (found text, label) concealed."""
    context = Context.parse([text])
    leaf = context.leaves[0]
    edits = [
        Edit(leaf, text.index(found), text.index(found) + len(found), Conceal(label))
        for found, label in finds
    ]
    made = table.conceal(context.edited(edits), kept=kept or set()).to_json()
    return str(made[0])


def test_numbers_begin_behind_the_highest_kept_handle_whatever_comes_last() -> None:
    for order in ([2, 7, 3], [7, 3, 2], [3, 2, 7]):
        table = PipelineHandles()
        kept = dict.fromkeys(Handle("PERSON", number) for number in order)
        assert concealed(table, "Jane", ("Jane", "PERSON"), kept=kept) == "[PERSON_8]"  # type: ignore[arg-type]


def test_a_later_step_that_keeps_a_lower_handle_does_not_count_again() -> None:
    table = PipelineHandles()
    assert concealed(table, "Jane", ("Jane", "PERSON"), kept={Handle("PERSON", 5)}) == "[PERSON_6]"
    assert concealed(table, "John", ("John", "PERSON"), kept={Handle("PERSON", 2)}) == "[PERSON_7]"
    assert table.originals == {
        Handle("PERSON", 6): Original("Jane"),
        Handle("PERSON", 7): Original("John"),
    }


def test_every_label_counts_from_one_by_itself() -> None:
    table = PipelineHandles()
    text = concealed(
        table, "Jane a@b.c John", ("Jane", "PERSON"), ("a@b.c", "EMAIL"), ("John", "PERSON"),
        kept={Handle("SSN", 4)},
    )  # fmt: skip
    assert text == "[PERSON_1] [EMAIL_1] [PERSON_2]"


def test_equal_originals_share_a_handle_only_under_one_label() -> None:
    table = PipelineHandles()
    assert concealed(table, "May", ("May", "PERSON")) == "[PERSON_1]"
    assert concealed(table, "May", ("May", "DATE")) == "[DATE_1]"
    assert concealed(table, "May", ("May", "PERSON")) == "[PERSON_1]"


def test_handles_are_told_in_the_order_in_which_they_were_given() -> None:
    table = PipelineHandles()
    for name in ("Jane", "John", "Joan"):
        concealed(table, name, (name, "PERSON"))
    context = Context.parse(["[PERSON_3] and [PERSON_1], not [PERSON_9]", "[PERSON_3]"])
    assert table.present(context) == [Handle("PERSON", 1), Handle("PERSON", 3)]


def test_a_handle_in_a_uri_is_one_of_ours_only_where_it_was_put_there() -> None:
    table = PipelineHandles()
    link = {"type": "resource_link", "uri": "https://x/Jane", "name": "n"}
    other = {"type": "resource_link", "uri": "https://x/[PERSON_1]", "name": "n"}
    context = Context.parse([link, other])
    leaf = next(one for one in context.leaves if one.text == "https://x/Jane")
    items = table.conceal(context.edited([Edit(leaf, 10, 14, Conceal("PERSON"))])).to_json()
    handles = {Handle("PERSON", 1): Handle("PERSON", 8)}

    settled = table.with_vault_handles(Context.parse(items), handles).to_json()
    assert [item["uri"] for item in settled] == ["https://x/[PERSON_8]", "https://x/[PERSON_1]"]

    # A step that puts two items in front moves the places with the items.
    table.moved(2)
    moved = table.with_vault_handles(Context.parse(["a", "b", *items]), handles).to_json()
    assert [item["uri"] for item in moved[2:]] == ["https://x/[PERSON_8]", "https://x/[PERSON_1]"]


def test_only_handles_that_the_replaced_text_held_were_moved() -> None:
    context = Context.parse(["Ask [PERSON_1]"])
    leaf = context.leaves[0]
    step = context.edited([Edit(leaf, 0, len(leaf.text), "[PERSON_1] and [PERSON_2]")])
    assert Additions(step).moved == {Handle("PERSON", 1)}


def test_an_edit_that_adds_only_space_adds_nothing() -> None:
    context = Context.parse(["Ask"])
    leaf = context.leaves[0]
    assert Additions(context.edited([Edit(leaf, 3, 3, " \n")])).items == []
    assert Additions(context.edited([Edit(leaf, 3, 3, " x")])).items == [{"type": "text", "text": " x"}]


def test_metadata_is_named_at_any_depth_and_other_values_stay() -> None:
    handles = {Handle("PERSON", 1): Handle("PERSON", 4)}
    value = {"a": [{"b": ("[PERSON_1]", 1, None)}, "[PERSON_2]"], "[PERSON_1]": True}
    assert PipelineHandles().metadata_with_vault_handles(value, handles) == {
        "a": [{"b": ["[PERSON_4]", 1, None]}, "[PERSON_2]"],
        "[PERSON_1]": True,
    }


def test_an_original_around_two_depths_keeps_the_depth_of_the_outer_spelling() -> None:
    table = PipelineHandles()
    inner = Original("Jos\u00e9", "Jos\\\\u00e9", 2)
    table.originals[Handle("PERSON", 1)] = inner
    outer = Original("key \u00e9 [PERSON_1]", "key \\u00e9 [PERSON_1]", 1)
    made = table._with_inner_originals(outer, {Handle("PERSON", 1)})
    assert (made.text, made.spelling, made.depth) == (
        "key \u00e9 Jos\u00e9",
        f"key \\u00e9 {inner.at(1)}",
        1,
    )
