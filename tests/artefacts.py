"""Build distributions as they are published, and install them into environments of their own."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 300


def wheel_of(project: Path, folder: Path) -> Path:
    """Build the wheel of ``project`` from a copy of its files in ``folder``: the checkout stays as it is."""
    source, built = folder / "source", folder / "built"
    source.mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "."],
        cwd=project,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        other = name.startswith(("tests/", "docs/", "clients/")) and name != "docs/licences.md"
        if name and not other and (project / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(project / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "wheel"]
    run([*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(built), str(source)])
    (wheel,) = built.glob("*.whl")
    return wheel


def installed(wheel: Path, folder: Path) -> Path:
    """Install ``wheel`` into a fresh environment and return its folder of programs.

    Its dependencies are those that the tests run with; what is installed there as editable is not among them.
    """
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    programs = folder / "bin"
    packages = sysconfig.get_path("purelib", vars={"base": str(folder)})
    Path(packages, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    pip += ["--python", str(programs / "python"), "install", "--no-deps", "--no-index", "--no-compile"]
    run([*pip, "--ignore-installed", str(wheel)])
    return programs


def run(command: list[str], cwd: Path | None = None, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run ``command`` and return what it wrote; its failure is shown as it told it."""
    own = environment(**settings)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=own, cwd=cwd
    )
    assert done.returncode == 0, f"{command[:4]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done


def environment(**settings: str) -> dict[str, str]:
    """Return an environment in which neither the checkout nor settings of the service can be seen."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SLUICE_", "PYTHON", "COV_CORE", "PYTEST"))
    }
    return {**kept, **settings}
