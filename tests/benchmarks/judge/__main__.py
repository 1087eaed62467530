"""Print how well Sluice judges: ``make judge``, or ``python -m tests.benchmarks.judge [--smoke] [TABLE ...]``.

Each figure comes with its set, its size and a 95 % interval (1,000 sets of as many items, drawn again from it), and
rivals that are installed beside it. ``--write PAGE``, which `make judge` gives, also puts the tables into that page.
SLUICE_TEST_OPEN_DATA names the folder of the open sets, SLUICE_TEST_GROUNDING_DATA that of BEGIN; what needs them
is left out otherwise.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks.judge import contradictions, injections, moderations, names, rankings, scores, secrets
from tests.benchmarks.judge.curves import Picture
from tests.benchmarks.speed.page import updated

TABLES: dict[str, Callable[[bool], Iterator[str | Picture]]] = {
    "secrets": secrets.tables,
    "contradictions": contradictions.tables,
    "scores": scores.tables,
    "names": names.tables,
    "injection": injections.tables,
    "moderation": moderations.tables,
    "ranking": rankings.tables,
}


def main() -> None:
    """Judge what the command line names, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.judge", description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="Default: all.")
    parser.add_argument("--smoke", action="store_true", help="Small samples: whether it runs, not how well.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Also put the tables into this page.")
    options = parser.parse_args()
    _see_rivals()
    measured = f"Measured on {datetime.now(UTC):%Y-%m-%d}."
    for name in options.tables or TABLES:
        for part in TABLES[name](options.smoke):
            section = part.section if isinstance(part, Picture) else part
            print(f"\n{section}", flush=True)
            if options.write is not None:
                page = options.write.read_text(encoding="utf-8")
                options.write.write_text(updated(page, [section], measured), encoding="utf-8")
                if isinstance(part, Picture):
                    options.write.with_name(part.file).write_text(part.svg, encoding="utf-8")


def _see_rivals() -> None:
    """Let rivals be imported; what this environment has of the same name comes first."""
    rivals = Path(__file__).parents[3] / ".venv-rivals"
    sys.path.extend(str(found) for found in (rivals / "judging").glob("lib/python3.*/site-packages"))


if __name__ == "__main__":
    sys.exit(main())
