"""How results and errors look on a terminal."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from app.cli.faults import explained
from app.cli.terminal import FAILED, UNREACHABLE, CommandError, cell, confirm, show_table
from app.core.errors import InvalidArgumentsError, StoreUnavailableError
from app.settings import ConfigurationError


def test_a_table_is_as_wide_as_its_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("A", "LONG"), [("xyz", 1), (None, "")])

    assert capsys.readouterr().out == "A    LONG\nxyz  1\n-    -\n"


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert cell("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"


def test_times_are_in_utc() -> None:
    assert cell(datetime(2026, 11, 20, 1, 2, 3, tzinfo=UTC)) == "2026-11-20T01:02:03Z"


def test_without_a_terminal_nothing_is_destroyed_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/null") as nobody:  # noqa: PTH123 - the stream that a job without terminal has
        monkeypatch.setattr("sys.stdin", nobody)
        with pytest.raises(CommandError, match="--yes"):
            confirm("Erase?", yes=False)
        confirm("Erase?", yes=True)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreUnavailableError("x"), UNREACHABLE),
        (ConnectionRefusedError(111, "Connection refused"), UNREACHABLE),
        (InvalidArgumentsError("Wrong."), FAILED),
        (ConfigurationError(["Wrong."]), FAILED),
        (PermissionError(13, "Permission denied", "/x"), FAILED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_expected_failures_have_a_sentence_and_a_code(error: Exception, code: int) -> None:
    found = explained(error)

    assert found is not None
    assert found[0] == code
    assert all(sentence.endswith(".") for sentence in found[1])


def test_a_bug_is_not_explained_away() -> None:
    assert explained(KeyError("x")) is None


def test_help_loads_no_heavy_room() -> None:
    program = (
        "import sys; from app.cli.root import run; run(['--help'])\n"
        "heavy = {'fastapi', 'sqlalchemy', 'numpy', 'presidio_analyzer', 'httpx2', 'pydantic', 'mcp'}\n"
        "sys.exit(','.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.returncode == 0
