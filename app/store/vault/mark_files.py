"""Keep the high-water mark of a database in a folder outside it, where no restore of the database reaches it."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Final, Protocol

_LOCK_WAIT_S: Final = 2.0
_LOCK_TRY_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class HighWater:
    """How far a database has come.

    ``line`` names the history that the database has; ``address`` is where it was found (no credentials).
    """

    line: str
    address: str
    epoch: int
    erasures: int
    step: int


class MarkUnreadableError(Exception):
    """A mark is damaged, or its place (with the erasures there) cannot be read or written; the message names it."""


class MarkStore(Protocol):
    """Where marks are kept: ``place`` names it in messages, ``shared`` says that all hosts use it.

    The calls wait for files or for the network: call them in a thread.
    """

    @property
    def place(self) -> str:
        """Return the name of the place."""

    @property
    def shared(self) -> bool:
        """Return whether all hosts use it."""

    def find(self, line: str) -> HighWater | None:
        """Return the mark of the database whose history is ``line``."""

    def find_at(self, address: str) -> HighWater | None:
        """Return the mark of the database that was last found at ``address``: the highest, if there are several."""

    def raise_to(self, mark: HighWater) -> HighWater | None:
        """Store ``mark`` durably and return None, or return the stored mark where it has this step or a later one."""


class MarkFolder:
    """The marks of the databases that this host (or all hosts that share the folder) serve, one file each.

    Its calls do file operations: call them in a thread.
    """

    def __init__(self, path: Path, *, shared: bool) -> None:
        self.path = path
        self.place = str(path)
        self.shared = shared

    def find(self, line: str) -> HighWater | None:
        """Return the mark of the database whose history is ``line``."""
        path = self._path(line)
        return _read(path) if path.exists() else None

    def find_at(self, address: str) -> HighWater | None:
        """Return the mark of the database that was last found at ``address``: the highest, if there are several."""
        marks = [mark for path in sorted(self.path.glob("mark-*.json")) if (mark := _read(path))]
        return max((mark for mark in marks if mark.address == address), key=height_of, default=None)

    def raise_to(self, mark: HighWater) -> HighWater | None:
        """Store ``mark`` durably and return None, or return the stored mark where it has this step or a later one."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with self._locked():
                stored = self.find(mark.line)
                if stored is not None and stored.step >= mark.step:
                    return stored
                _replace(self._path(mark.line), json.dumps(asdict(mark)).encode())
        except OSError as error:
            raise MarkUnreadableError(
                f"The mark of the database cannot be written in {self.path}: {error.strerror}. "
                "Let SLUICE_VAULT__MARK name a folder that the service may write."
            ) from None
        return None

    def _path(self, line: str) -> Path:
        return self.path / f"mark-{line}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing meanwhile; go on after a while, since a file is replaced as a whole.

        Without the lock, the worst is that the lower of two marks stays for one step.
        """
        descriptor = os.open(self.path / "mark.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            until = monotonic() + _LOCK_WAIT_S
            while monotonic() < until:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    sleep(_LOCK_TRY_S)
            yield
        finally:
            os.close(descriptor)


def height_of(mark: HighWater) -> int:
    """Return what compares two marks of one place."""
    return mark.step


def mark_of(body: bytes, name: str) -> HighWater:
    """Return the mark that is written as ``body``; ``name`` says in an error where it was."""
    try:
        read = json.loads(body)
        return HighWater(
            *(str(read["line"]), str(read["address"])),
            *(int(read["epoch"]), int(read["erasures"]), int(read["step"])),
        )
    except (ValueError, KeyError, TypeError):
        raise MarkUnreadableError(
            f"The mark {name} is damaged. If the database was not restored, remove it and start again."
        ) from None


def _read(path: Path) -> HighWater:
    try:
        body = path.read_bytes()
    except OSError as error:
        raise MarkUnreadableError(f"The mark {path} cannot be read: {error.strerror}.") from None
    return mark_of(body, str(path))


def _replace(path: Path, body: bytes) -> None:
    """Write a new file and give it the name in one step, so that no reader and no crash sees half of it."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
