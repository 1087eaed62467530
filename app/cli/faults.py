"""Turn the failures that a command or a start can expect into one sentence and an exit code."""

import socket

from app.cli.terminal import FAILED, UNREACHABLE
from app.core.errors import ServiceError, StoreUnavailableError

_SENTENCES = {
    "app.settings.ConfigurationError": "faults",
    "app.services.declare.declaration_files.FileError": "lines",
}
NO_DATABASE = "The database does not answer: check SLUICE_DATABASE__URL and that it runs."


def explained(error: BaseException) -> tuple[int, list[str]] | None:
    """Return the exit code and the sentences for ``error``, or None where it is a fault of this program.

    Heavy rooms are looked up, not loaded: an error of a room that was never imported cannot have happened.
    """
    if isinstance(error, StoreUnavailableError):
        return UNREACHABLE, [NO_DATABASE]
    if isinstance(error, ServiceError):
        return FAILED, [error.message]
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    for kind, sentences in _SENTENCES.items():
        if kind in kinds:
            return FAILED, list(getattr(error, sentences))
    if kinds & {
        "app.engines.cipher.KeyRingError",
        "app.store.dialects.UnsafeDatabaseError",
        "app.store.migrate.MigrationsMissingError",
    }:
        return FAILED, [str(error)]
    if "alembic.util.exc.CommandError" in kinds:
        return FAILED, ["That is no revision of this release; the files in migrations/versions name them."]
    return _of_the_system(error, kinds)


def _of_the_system(error: BaseException, kinds: set[str]) -> tuple[int, list[str]] | None:
    """Explain what the database driver or the operating system says, without repeating values."""
    if isinstance(error, ConnectionError | TimeoutError | socket.gaierror):
        return UNREACHABLE, [NO_DATABASE]
    if kinds & {"sqlalchemy.exc.SQLAlchemyError", "asyncpg.exceptions._base.PostgresError"}:
        kind = type(getattr(error, "orig", None) or error).__name__
        return UNREACHABLE, [f"The database refuses ({kind}): check SLUICE_DATABASE__URL."]
    if isinstance(error, OSError) and error.strerror:
        return FAILED, [f"{error.filename or 'A file'}: {error.strerror}."]
    return None
