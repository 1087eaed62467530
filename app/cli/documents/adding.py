"""``sluice documents add``: read files and store them, on the host or at a service."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app.cli.terminal import USAGE, fail, note

if TYPE_CHECKING:
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.core.access import Caller
    from app.core.catalog.collections import DocumentDetails

UNSPECIFIC: Final = "application/octet-stream"
"""The media type with which files are sent, so that their names say what they are."""
_OF_THE_FILE: Final = frozenset({"invalid_arguments", "too_large"})
"""Codes of errors that concern one file, not the others."""


@dataclass(slots=True)
class AddedFiles:
    """The files to add and where to, and what became of them; ``collection``: a name, ``source``: its source."""

    files: Sequence[tuple[Path, str]]
    collection: str
    source: str
    access: Sequence[str]
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("created", "updated", "unchanged"), 0)
    )
    faults: int = 0

    async def here(self, host: "Services", caller: "Caller") -> None:
        """Add the files with the services of this host."""
        from app.core.catalog.collections import CollectionDefinition
        from app.core.errors import InvalidArgumentsError, NotFoundError, ServiceError, TooLargeError
        from app.services.documents.ingestion import Submitted

        details = self._details()
        try:
            await host.collections.get(caller, self.collection)
        except NotFoundError:
            await host.collections.put(caller, CollectionDefinition(name=self.collection))
        for path, detail, progress in self._each(details):
            try:
                submitted = Submitted(self.collection, detail, path.read_bytes(), UNSPECIFIC)
                ingested = await host.ingestion.add(
                    caller, submitted, background=False, progress=progress.show
                )
                self._count(progress, ingested.outcome)
            except (InvalidArgumentsError, TooLargeError, OSError) as error:
                self._fault(progress, error.message if isinstance(error, ServiceError) else None)
        await host.ingestion.purge()

    def there(self, service: "ServiceCalls") -> None:
        """Send the files to a service."""
        from app.cli.calls import CallError, segment

        details, path = self._details(), f"/api/v1/collections/{segment(self.collection)}"
        try:
            service.ask("GET", path)
        except CallError as error:
            if error.code != "not_found":
                raise
            service.ask("PUT", path, {})
        for file, detail, progress in self._each(details):
            try:
                query: dict[str, Any] = {"source": detail.source, "external_id": detail.external_id}
                ingested = service.send(
                    "POST",
                    f"{path}/documents",
                    file.read_bytes(),
                    UNSPECIFIC,
                    background=False,
                    access=list(detail.access) or None,
                    **query,
                )
                self._count(progress, ingested["outcome"])
            except OSError:
                self._fault(progress, None)
            except CallError as error:
                if error.code not in _OF_THE_FILE:
                    raise
                self._fault(progress, error.message)

    def _details(self) -> "list[DocumentDetails]":
        """Return what is known of each file, or raise InvalidArgumentsError before any is read."""
        from pydantic import ValidationError

        from app.core.catalog.collections import CollectionDefinition, DocumentDetails
        from app.core.errors import InvalidArgumentsError

        try:
            CollectionDefinition(name=self.collection)
            return [
                DocumentDetails.model_validate(
                    {"source": self.source, "external_id": name, "access": list(self.access)}
                )
                for _, name in self.files
            ]
        except ValidationError as error:
            raise InvalidArgumentsError(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from None

    def _each(
        self, details: "Sequence[DocumentDetails]"
    ) -> "Iterator[tuple[Path, DocumentDetails, _Progress]]":
        for number, ((path, name), detail) in enumerate(zip(self.files, details, strict=True), 1):
            yield path, detail, _Progress(f"[{number}/{len(self.files)}] {name}")

    def _count(self, progress: "_Progress", outcome: str) -> None:
        self.counts[outcome] += 1
        progress.end(outcome)

    def _fault(self, progress: "_Progress", message: str | None) -> None:
        self.faults += 1
        progress.end(message or "cannot be read from the disk")


class _Progress:
    """One line per file on standard error; on a terminal it also shows the percentage of chunks done."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.animated = sys.stderr.isatty()

    async def show(self, done: int, total: int) -> None:
        if self.animated and total:
            print(f"\r\x1b[K{self.label}  {100 * done // total} %", end="", file=sys.stderr, flush=True)

    def end(self, outcome: str) -> None:
        note(("\r\x1b[K" if self.animated else "") + f"{self.label}  {outcome}")


def files_in(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield files and their external ids: the file name, or the path relative to the given folder."""
    from app.engines.documents.extraction import MEDIA_TYPES

    for path in paths:
        if path.is_dir():
            inside = sorted(
                file for file in path.rglob("*") if file.suffix.lower().lstrip(".") in MEDIA_TYPES
            )
            yield from ((file, file.relative_to(path).as_posix()) for file in inside if file.is_file())
        elif path.is_file():
            yield path, path.name
        else:
            fail(f"There is no file {path}.", USAGE)
