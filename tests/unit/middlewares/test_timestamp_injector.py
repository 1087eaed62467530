"""The current time stands in front of the user's text, in the words of the proposal."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.core.content.context import Context
from app.middlewares.timestamp_injector import TimestampArguments, TimestampInjector
from tests.fakes import engines


async def injected(items: list[Any], **arguments: Any) -> list[Any]:
    outcome = await TimestampInjector(engines()).apply(Context.parse(items), TimestampArguments(**arguments))
    assert outcome.metadata == {}
    return outcome.context.to_json()


async def test_the_proposal_s_example_holds_to_the_character() -> None:
    assert await injected([{"type": "text", "text": "What's on my calendar today?"}]) == [
        {
            "type": "text",
            "text": "[Current time: Saturday, October 4, 2025, 3:42 PM UTC]\n\nWhat's on my calendar today?",
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"timezone": "Europe/Berlin"}, "[Current time: Saturday, October 4, 2025, 5:42 PM CEST]\n\nHi"),
        ({"timezone": "Asia/Tokyo"}, "[Current time: Sunday, October 5, 2025, 12:42 AM JST]\n\nHi"),
        ({"format": "iso"}, "[Current time: 2025-10-04T15:42:00+00:00]\n\nHi"),
        ({"format": "unix"}, "[Current time: 1759592520]\n\nHi"),
        ({"placement": "after"}, "Hi\n\n[Current time: Saturday, October 4, 2025, 3:42 PM UTC]"),
    ],
)
async def test_zone_format_and_placement_can_be_chosen(arguments: dict[str, str], line: str) -> None:
    assert await injected(["Hi"], **arguments) == [line]


async def test_only_the_last_user_message_changes() -> None:
    items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    done = await injected(items, format="unix")
    assert done == [{"role": "user", "content": "[Current time: 1759592520]\n\na"}, items[1]]


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="IANA"):
        TimestampArguments(timezone="Mars/Olympus")


@pytest.mark.parametrize("placement", ["before", "after"])
async def test_where_there_is_no_text_of_the_user_the_time_stands_alone(placement: str) -> None:
    line = "[Current time: 1759592520]"
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    answer = {"role": "assistant", "content": "b"}
    chosen = {"format": "unix", "placement": placement}
    assert await injected([image], **chosen) == [{"type": "text", "text": line}, image]
    assert await injected([answer], **chosen) == [{"role": "user", "content": line}, answer]
