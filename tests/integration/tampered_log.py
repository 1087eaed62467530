"""A sealed record is tampered with thousands of times; after each the verifier must name what was done.

    python -m tests.integration.tampered_log FOLDER [NUMBER [SEED [URL]]]

The kinds come in turn on a record with a whole tile; after each hundred, nothing must be found on what was put back.
FOLDER has the database, unless URL names a migrated one, and the progress: a run that was interrupted goes on.
"""

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.factories import with_schema
from tests.integration.tampering import Tampered, tampered_on
from tests.integration.tampering_kinds import KINDS

_EACH = 100


async def tried(log: Tampered, tamper: Callable[[Tampered], Awaitable[str]], seed: str) -> str | None:
    """Tamper, verify and put everything back; return what is wrong with the findings, None: it was named."""
    log.random = random.Random(seed)
    expected = await tamper(log)
    result = await log.verify(anchors=[log.anchor])
    await log.restore()
    kinds = sorted({finding.kind for finding in result.findings})
    return None if expected in kinds and not result.holds else f"{seed}: {expected} expected, found {kinds}"


def replace_text(path: Path, text: str) -> None:
    """Write a file so that whoever is cut off leaves the whole of the old one or of the new one."""
    draft = path.with_suffix(".part")
    draft.write_text(text)
    draft.replace(path)


async def main(folder: Path, number: int, seed: int, url: str) -> dict[str, Any]:
    """Go on until so many were tried; return how many were, what was overlooked, and false alarms."""
    folder.mkdir(parents=True, exist_ok=True)
    progress = folder / "tampered.json"
    done: dict[str, Any] = {"tried": 0, "verified_whole": 0, "overlooked": [], "false_alarms": []}
    if progress.exists():
        done = json.loads(progress.read_text())
    async with tampered_on(with_schema(url)) as log:
        while done["tried"] < number:
            tamper = KINDS[done["tried"] % len(KINDS)]
            overlooked = await tried(log, tamper, f"{seed} {tamper.__name__} {done['tried']}")
            done["overlooked"] += [] if overlooked is None else [overlooked]
            done["tried"] += 1
            if done["tried"] % _EACH == 0 or done["tried"] == number:
                result = await log.verify(anchors=[log.anchor])
                done["false_alarms"] += [f"after {done['tried']}: {made.kind}" for made in result.findings]
                done["verified_whole"] += 1
                replace_text(progress, json.dumps(done))
                print(json.dumps(done), file=sys.stderr, flush=True)
    return done


if __name__ == "__main__":
    place = Path(sys.argv[1])
    defaults = ["5000", "1", f"sqlite:///{place}/tampered.db"]
    amount, start, database = [*sys.argv[2:], *defaults[len(sys.argv) - 2 :]]
    said = asyncio.run(main(place, int(amount), int(start), database))
    print(json.dumps(said))
    sys.exit(bool(said["overlooked"] or said["false_alarms"]))
