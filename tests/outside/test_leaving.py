"""Who leaves is gone from every open stream within half a minute, at the intervals that the service comes with."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from app.edge.standing import RECHECK_S
from tests.protocol.ended_streams import Doors, streams_of
from tests.protocol.test_ended_streams import Place, heard, place_in, signs_out

pytestmark = pytest.mark.outside

SLACK_S = 5.0
"""For a busy machine; and how long the issuer's answer about a token may count (1 s here) on top."""


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with place_in(tmp_path) as made:
        yield made


async def test_every_stream_of_somebody_who_leaves_ends_within_half_a_minute(
    place: Place, record_property: Callable[[str, Any], None]
) -> None:
    ada, grace = place.token("ada"), place.token("grace")
    sessions = [await place.session(name) for name in ("ada", "grace")]
    doors = Doors(place.url)
    async with streams_of(doors, ada, sessions[0]) as hers, streams_of(doors, grace, sessions[1]) as others:
        left = time.monotonic()
        await signs_out(place, ada)
        await asyncio.gather(*(one.over(RECHECK_S + SLACK_S) for one in hers.values()))
        took = {name: round(one.ended - left, 1) for name, one in hers.items() if one.ended is not None}
        record_property("seconds", took)
        print(took)
        assert hers["session"].is_whole and hers["listening"].is_whole
        sizes = {name: len(one.seen) for name, one in hers.items()}
        await heard(place, others)
        assert {name: len(one.seen) for name, one in hers.items()} == sizes
        assert not [name for name, one in others.items() if one.ended is not None]
