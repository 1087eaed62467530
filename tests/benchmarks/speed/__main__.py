"""Print the tables of the README: ``make bench``, or ``python -m tests.benchmarks.speed [--smoke] [TABLE ...]``.

Writes no files: everything lies in a temporary folder. SLUICE_TEST_NER_DATA, _TOOLS_DATA, _MODERATION_DATA,
_INJECTION_DATA, _RETRIEVAL_DATA and _GROUNDING_DATA name folders with the open sets of the tables of quality, which
are left out otherwise. Rivals that `make bench` has not installed are left out of their table.
"""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

import psutil

from tests.benchmarks.quality import (
    equality,
    grounding,
    identifiers,
    injection,
    linearity,
    moderation,
    names,
    restoring,
    retrieval,
    secrets,
    tools,
)
from tests.benchmarks.speed import (
    aggregation,
    detection,
    liveness,
    middlewares,
    restoration,
    serving,
    starting,
    surfaces,
    tokens,
    vault,
)
from tests.benchmarks.speed.sizes import FULL, SMOKE

TABLES = {
    "surfaces": surfaces.tables,
    "aggregation": aggregation.tables,
    "tokens": tokens.tables,
    "middlewares": middlewares.tables,
    "redaction": serving.redaction,
    "clients": serving.clients,
    "liveness": liveness.tables,
    "vault": vault.tables,
    "restoration": restoration.tables,
    "restoring": restoring.tables,
    "starting": starting.tables,
    "detection": detection.tables,
    "linearity": linearity.tables,
    "equality": equality.tables,
    "identifiers": identifiers.tables,
    "names": names.tables,
    "tools": tools.tables,
    "moderation": moderation.tables,
    "injection": injection.tables,
    "secrets": secrets.tables,
    "retrieval": retrieval.tables,
    "grounding": grounding.tables,
}


def main() -> None:
    """Measure what the command line names, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.speed", description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="Default: all.")
    parser.add_argument("--smoke", action="store_true", help="Tiny sizes: whether it runs, not how fast.")
    options = parser.parse_args()
    sizes = SMOKE if options.smoke else FULL
    memory = psutil.virtual_memory().total // 2**30
    _see_rivals()
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    print(f"{psutil.cpu_count()} cores, {memory} GiB, {machine}")
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        for name in options.tables or TABLES:
            for table in TABLES[name](sizes, Path(folder)):
                print(f"\n{table}", flush=True)


def _see_rivals() -> None:
    """Let rivals that are libraries be imported; what this environment has of the same name comes first."""
    rivals = Path(__file__).parents[3] / ".venv-rivals"
    for name in ("judging", "llmguard"):
        sys.path.extend(str(found) for found in (rivals / name).glob("lib/python3.*/site-packages"))


if __name__ == "__main__":
    sys.exit(main())
