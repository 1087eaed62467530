"""A finding that begins or ends in the middle of a key takes the whole key: the rest would be a secret that stays."""

import pytest

from app.core.content.context import Context
from app.core.contracts.engines import Span
from app.core.redaction.plan import RedactionArguments, RedactionPlan

TOKEN = "16C7e42F292c6912E7710c838347Ae4H2Y7G"


async def concealed(text: str, *parts: str) -> list[str]:
    spans = [Span(text.index(part), text.index(part) + len(part), "ADDRESS", 0.6) for part in parts]
    context = Context.parse([{"type": "text", "text": text}])
    edited = await RedactionPlan(RedactionArguments(), {"": "handle"}, "data").edited(context, [spans])
    return [one.original.text for one in edited.conceals]


@pytest.mark.parametrize("parts", [("7710c838347Ae4H2Y7G",), ("16C7e42F",), ("C7e4", "7710c8"), (TOKEN,)])
async def test_no_part_of_a_token_is_left_beside_a_handle(parts: tuple[str, ...]) -> None:
    assert await concealed(f"key ghp_{TOKEN}, see", *parts) == [TOKEN]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Donaudampfschifffahrtsgesellschaft", "dampf"),
        ("12345678901234567890123", "4567"),
        ("call5551234now", "5551234"),
        (f"x\\{TOKEN}", "7710c8"),
        ("at 12 Main Street", "12 Main Street"),
    ],
)
async def test_words_numbers_and_escapes_are_not_taken_for_tokens(text: str, part: str) -> None:
    assert await concealed(text, part) == [part]
