"""A pattern of a user's that takes too long on a text refuses the call, and says whose it is."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.core.errors import UnscannableContentError
from app.engines.pii.processes.pool import PoolDetector
from app.engines.pii.processes.startup import Startup

SLOW = """
recognizers:
  - name: Room plan
    supported_entity: ROOM
    patterns: [{name: room, regex: '(a|a)+b', score: 0.6}]
"""


async def test_the_call_is_refused_with_the_name_of_the_recognizer() -> None:
    async with PoolDetector(1, startup=Startup(matcher="plain", recognizers=SLOW)) as pool:
        await pool.wait_ready()
        with pytest.raises(
            UnscannableContentError, match="a pattern of the recognizer Room plan takes too long"
        ):
            await pool.detect(["a" * 3_000 + "!b"], DetectionOptions())
        assert (await pool.detect(["SSN 219-09-9999"], DetectionOptions())).spans[0]
