"""Print the tables of docs/figures.md: ``make bench``, or ``python -m tests.benchmarks.speed [--smoke] [TABLE ...]``.

``--write PAGE``, which `make bench` gives, also puts the tables into that page. Nothing else is written: all that is
measured lies in a temporary folder. SLUICE_TEST_NER_DATA, _TOOLS_DATA, _MODERATION_DATA, _INJECTION_DATA,
_RETRIEVAL_DATA and _GROUNDING_DATA name folders with the open sets of the tables of quality, which are left out
otherwise. Rivals that `make bench` has not installed are left out of their table.
"""

import argparse
import platform
import sys
import tempfile
from datetime import UTC, datetime
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
    batches,
    console,
    detection,
    evidence,
    finding,
    gateway,
    growth,
    identity,
    liveness,
    middlewares,
    operations,
    restoration,
    scaling,
    serving,
    starting,
    surfaces,
    tokens,
    vault,
    vectors,
)
from tests.benchmarks.speed.page import updated
from tests.benchmarks.speed.sizes import FULL, SMOKE

TABLES = {
    "surfaces": surfaces.tables,
    "identity": identity.tables,
    "aggregation": aggregation.tables,
    "gateway": gateway.tables,
    "tokens": tokens.tables,
    "middlewares": middlewares.tables,
    "redaction": serving.redaction,
    "clients": serving.clients,
    "liveness": liveness.tables,
    "vault": vault.tables,
    "batches": batches.tables,
    "finding": finding.tables,
    "growth": growth.tables,
    "evidence": evidence.tables,
    "console": console.tables,
    "operations": operations.tables,
    "vectors": vectors.tables,
    "replicas": scaling.replicas,
    "pooler": scaling.pooler,
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
    parser.add_argument("--write", type=Path, metavar="PAGE", help="Also put the tables into this page.")
    options = parser.parse_args()
    sizes = SMOKE if options.smoke else FULL
    _see_rivals()
    machine = _machine()
    print(machine)
    measured = f"Measured on {datetime.now(UTC):%Y-%m-%d}: {machine}."
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        for name in options.tables or TABLES:
            for table in TABLES[name](sizes, Path(folder)):
                print(f"\n{table}", flush=True)
                if options.write is not None:  # after each, so that a run that is stopped loses little
                    page = options.write.read_text(encoding="utf-8")
                    options.write.write_text(updated(page, [table], measured), encoding="utf-8")


def _machine() -> str:
    """Return the machine in words: cores, memory, system and Python."""
    memory = psutil.virtual_memory().total // 2**30
    system = f"{platform.system()} {platform.machine()}"
    return f"{psutil.cpu_count()} cores, {memory} GiB, {system}, Python {platform.python_version()}"


def _see_rivals() -> None:
    """Let rivals that are libraries be imported; what this environment has of the same name comes first."""
    rivals = Path(__file__).parents[3] / ".venv-rivals"
    for name in ("judging", "llmguard"):
        sys.path.extend(str(found) for found in (rivals / name).glob("lib/python3.*/site-packages"))


if __name__ == "__main__":
    sys.exit(main())
