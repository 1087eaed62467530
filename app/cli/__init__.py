"""The command line: ``sluice``."""

import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    from app.cli.root import run

    sys.exit(run(sys.argv[1:]))
