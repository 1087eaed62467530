"""Which messages of a conversation a run need not read again, and what it then makes of all of them."""

from collections import Counter
from typing import Any

import pytest

from app.core.contracts.engines import Span
from app.core.contracts.policy_steps import Step
from app.core.contracts.settled_texts import SettledTexts, SettledTextsChangedError
from app.services.gateway.settled_items import SettledItems, parted, terms_of

PII, SECRETS = Step(name="pii_redaction"), Step(name="secret_redaction")
TERMS = terms_of([PII, SECRETS], 1)
FOUND = (Span(0, 3, "PERSON", 0.9),)


def message(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


OLD = [message("user", "Ada here"), message("assistant", "Hello Ada"), message("user", "Ada again")]


def settled(items: list[Any], *, terms: bytes | None = TERMS) -> SettledItems:
    """Return what is kept of a run that found ADA at the begin of each item."""
    kept, part = SettledItems(), parted(items, None, terms)
    found = {}
    for place, item in enumerate(items):
        found[place, "content"] = FOUND
        if not isinstance(item["content"], str):
            found[place, "content", 0, "text"] = FOUND
    texts = SettledTexts(of_new=found, counts={place: Counter(PERSON=2) for place in range(len(items))})
    part.settle(kept, [redacted(item) for item in items], texts)
    return kept


def redacted(item: Any) -> Any:
    if isinstance(item["content"], str):
        return {**item, "content": item["content"].replace("Ada", "[PERSON_1]")}
    return {**item, "content": [{**item["content"][0], "text": "[PERSON_1]"}, *item["content"][1:]]}


def test_a_run_reads_what_is_new_and_gives_back_all() -> None:
    new = message("assistant", "New")
    part = parted([*OLD, new], settled(OLD), TERMS)
    assert part.rest == [3]
    texts = part.texts()
    assert texts.texts == ["Ada here", "Hello Ada", "Ada again"]
    assert texts.findings == [FOUND] * 3 and texts.gaps == {0}
    assert part.merged([message("assistant", "Changed")]) == [
        *map(redacted, OLD),
        message("assistant", "Changed"),
    ]
    assert [item.counts for item in part.settled.values()] == [{"PERSON": 2}] * 3
    assert {handle for item in part.settled.values() for handle in item.handles} == {("PERSON", 1)}


def test_a_text_in_which_something_else_is_found_is_read_again() -> None:
    part = parted([*OLD, message("assistant", "New")], settled(OLD), TERMS)
    changed = [[Span(0, 3, "PERSON", 0.9)], [], [Span(0, 3, "PERSON", 0.9)], []]
    with pytest.raises(SettledTextsChangedError) as error:
        part.texts().new(changed)
    assert error.value.numbers == [1]
    part.unsettle(error.value.numbers)
    assert part.rest == [1, 3] and part.texts().gaps == {0, 1}
    assert part.texts().new([list(FOUND), list(FOUND), [], []]) == [[], []]


@pytest.mark.parametrize(
    "item",
    [
        message("user", "See [PERSON_1]"),
        message("user", "See PERSON_7"),
        message("user", "Ada", name="Ada"),
        message("user", ""),
        {"role": "user", "content": [{"type": "text", "text": "Ada"}, {"type": "text", "text": "here"}]},
        {"role": "user", "content": [{"type": "text", "text": "Ada", "cache_control": {"type": "x"}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
        {"type": "function_call_output", "role": "user", "content": "Ada"},
        message("user", "Ada iVBORw0KGgo" + "Ab3" * 100),
    ],
)
def test_what_means_more_than_its_own_text_is_read_each_time(item: Any) -> None:
    items = [item, message("assistant", "Hello Ada")]
    assert 0 in parted(items, settled(items), TERMS).rest


@pytest.mark.parametrize(
    "item",
    [
        message("tool", "Ada", tool_call_id="call_1"),
        {"role": "user", "content": [{"type": "text", "text": "Ada"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Ada"}]},
    ],
)
def test_messages_of_each_family_settle(item: Any) -> None:
    items = [item, message("assistant", "Hello Ada")]
    part = parted(items, settled(items), TERMS)
    assert part.rest == [] and part.merged([]) == [*map(redacted, items)]


@pytest.mark.parametrize(
    ("items", "rest"),
    [
        ([message("user", "Ada"), message("user", "said")], [0, 1]),
        ([message("user", "Ada"), message("assistant", ""), message("user", "said")], [0, 1, 2]),
        ([message("user", "Ada"), message("assistant", "So"), message("user", "said")], []),
        ([message("user", "Ada"), {"role": "assistant", "content": None}, message("tool", "said")], [1]),
        (["said", message("user", "Ada")], [0]),
    ],
)
def test_texts_that_may_be_read_as_one_are_read_together(items: list[Any], rest: list[int]) -> None:
    kept = settled([item for item in items if isinstance(item, dict) and item["content"]])
    assert parted(items, kept, TERMS).rest == rest


def test_other_terms_settle_nothing() -> None:
    other = terms_of([PII, SECRETS.model_copy(update={"arguments": {"entropy": False}})], 1)
    for terms in (terms_of([PII, SECRETS], 2), terms_of([PII], 1), other, None):
        assert parted(OLD, settled(OLD), terms).rest == [0, 1, 2]
    assert parted(OLD, settled(OLD, terms=None), TERMS).rest == [0, 1, 2]


@pytest.mark.parametrize(
    "steps", [[], [SECRETS], [SECRETS, PII], [PII, PII], [PII, Step(name="content_moderation")]]
)
def test_steps_that_read_more_than_a_message_settle_nothing(steps: list[Step]) -> None:
    assert terms_of(steps, 1) is None


def test_what_is_kept_is_counted() -> None:
    kept = settled(OLD)
    assert kept.size > sum(len(item["content"]) for item in OLD)
    again = kept.size
    parted(OLD, None, TERMS).settle(kept, [redacted(item) for item in OLD], SettledTexts())
    assert kept.size == again
    assert settled([*OLD, message("assistant", "Ada " * 1000)]).size > again + 4000
