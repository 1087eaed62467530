"""Programs of Debian that tests of `make outside` drive: which there are, and what is left out without them.

Run as a program it installs what is missing, but only where the variable CI is set: elsewhere the machine belongs to
its user, and the tests that need a missing program are left out and named at the end of the run.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable

import pytest

PACKAGES = {
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "chromium": "chromium",
    "haproxy": "haproxy",
    "nginx": "nginx-light",
    "pgbouncer": "pgbouncer",
    "promtool": "prometheus",
    "redis-server": "redis-server",
    "rsyslogd": "rsyslog rsyslog-openssl",
    "softhsm2-util": "softhsm2",
}
"""The packages of each program, apart by spaces."""
FOLDERS = {
    "SLUICE_TEST_SERVERS": "the example servers of the conformance suite, see CONTRIBUTING.md",
}
"""Variables that name a folder with what no package has; without one its tests are left out in CI, too."""
_PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
LEFT_OUT = pytest.StashKey[set[str]]()


def program(name: str) -> str | None:
    """Return the path of an installed program; servers stand where only root looks by itself."""
    return shutil.which(name, path=_PLACES)


def missing() -> list[str]:
    """Return the programs that are not installed."""
    return [name for name in PACKAGES if program(name) is None]


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the tests out that need a program which is not installed; in CI that is an error."""
    absent = {*missing(), *(name for name in FOLDERS if name not in os.environ)}
    without = {item: absent.intersection(_needed(item)) for item in items}
    if not any(without.values()):
        return
    lacking = set().union(*without.values())
    if "CI" in os.environ and lacking - FOLDERS.keys():
        absent -= FOLDERS.keys()
        raise pytest.UsageError(f"In CI nothing is left out, but these are not installed: {sorted(absent)}")
    config.hook.pytest_deselected(items=[item for item in items if without[item]])
    items[:] = [item for item in items if not without[item]]
    report(config, lacking)


def report(config: pytest.Config, programs: Iterable[str]) -> None:
    """Keep what was left out for the end of the run; a worker of xdist hands it to its controller."""
    config.stash.setdefault(LEFT_OUT, set()).update(programs)
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["left_out"] = sorted(config.stash[LEFT_OUT])


def lines(config: pytest.Config) -> list[str]:
    """Return a line for each program that tests were left out for."""
    return [
        f"left out: {name} names no folder with {FOLDERS[name]}"
        if name in FOLDERS
        else f"left out: {name} is not installed; apt-get install {PACKAGES[name]}"
        for name in sorted(config.stash.get(LEFT_OUT, set()))
    ]


def _needed(item: pytest.Item) -> set[str]:
    return {str(name) for mark in item.iter_markers("needs") for name in mark.args}


def install() -> None:
    """Install what is missing, where CI is set; no service that comes with a package is started."""
    wanted = [package for name in missing() for package in PACKAGES[name].split()]
    if "CI" not in os.environ or not wanted:
        return
    as_root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    # In runlevel 1 the packages' scripts start no daemon.
    setting = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"]
    subprocess.run([*as_root, *setting, "apt-get", "--quiet", "update"], check=True)
    options = ["--quiet", "--yes", "--no-install-recommends"]
    subprocess.run([*as_root, *setting, "apt-get", "install", *options, *wanted], check=True)


if __name__ == "__main__":
    install()
