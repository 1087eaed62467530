"""Turn expected failures of a command or of start-up into sentences and an exit code."""

import socket

from app.cli.terminal import FAILED, UNREACHABLE
from app.core.errors import ServiceError, StoreUnavailableError

_SENTENCES = {
    "app.settings.ConfigurationError": "faults",
    "app.services.declare.declaration_files.FileError": "lines",
}
_BEHIND = "app.services.vault.mark.DatabaseBehindError"
NO_DATABASE = "The database does not answer: check SLUICE_DATABASE__URL and that the database is running."


def explained(error: BaseException) -> tuple[int, list[str]] | None:
    """Return the exit code and the sentences for ``error``, or None for a bug in this program.

    Classes of heavy modules are matched by name, not imported: a module that was never imported raised no error.
    """
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    if isinstance(error, StoreUnavailableError) and _BEHIND not in kinds:
        return UNREACHABLE, [NO_DATABASE]
    if isinstance(error, ServiceError):
        return FAILED, [error.message]
    for kind, sentences in _SENTENCES.items():
        if kind in kinds:
            return FAILED, list(getattr(error, sentences))
    if kinds & {
        "app.core.archive.ArchiveError",
        "app.engines.cipher.KeyRingError",
        "app.store.dialects.UnsafeDatabaseError",
        "app.store.migrate.MigrationsMissingError",
        "app.store.vault.mark_files.MarkUnreadableError",
    }:
        return FAILED, [str(error)]
    if "alembic.util.exc.CommandError" in kinds:
        return FAILED, ["This release has no such revision; the files in migrations/versions name them."]
    return _of_the_system(error, kinds)


def _of_the_system(error: BaseException, kinds: set[str]) -> tuple[int, list[str]] | None:
    """Explain an error of the database driver or the operating system without repeating values."""
    if isinstance(error, ConnectionError | TimeoutError | socket.gaierror):
        return UNREACHABLE, [NO_DATABASE]
    if kinds & {"sqlalchemy.exc.SQLAlchemyError", "asyncpg.exceptions._base.PostgresError"}:
        kind = type(getattr(error, "orig", None) or error).__name__
        return UNREACHABLE, [f"The database refused the operation ({kind}): check SLUICE_DATABASE__URL."]
    if isinstance(error, OSError) and error.strerror:
        return FAILED, [f"{error.filename or 'A file'}: {error.strerror}."]
    return None
