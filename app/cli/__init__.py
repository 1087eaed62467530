"""The command line: ``sluice``."""

import gc
import sys
from typing import Final

YOUNG_OBJECTS: Final = 50_000
"""Objects between two searches for cycles.

Importing makes half a million objects that stay, and searching them takes a fifth of a start. `sluice serve` sets
another number once it has started.
"""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
    from app.cli.root import run

    sys.exit(run(sys.argv[1:]))
