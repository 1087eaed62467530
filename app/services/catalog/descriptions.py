"""Operators' descriptions of tools, from files and over REST."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from app.core import strictjson
from app.core.access import DEFAULT_TENANT, Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.background import meanwhile
from app.core.catalog.primitives import DESCRIPTIONS_CHANGED
from app.core.errors import ConflictError, NotFoundError, TooLargeError
from app.core.events import Changed
from app.core.paging import page_of
from app.core.request import RequestInfo
from app.core.tools.disclosure import ToolDescription
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.services.catalog.description_files import DescriptionFiles
from app.store.catalog.descriptions import (
    StoredDescription,
    count_descriptions,
    list_described,
    list_descriptions,
    put_description,
    remove_description,
)
from app.store.changes import EVERYTHING, announce
from app.store.database import Database

log = logging.getLogger("sluice.descriptions")

MAX_DESCRIPTIONS: Final = 2000
MAX_DOCUMENT_BYTES: Final = 65_536
_STALE_S = 5.0
_CACHED_TENANTS = 1024

Origin = Literal["api", "file"]


class WrittenDescription(NamedTuple):
    """The description of one tool; ``origin`` is the source of its part with the highest precedence."""

    name: str
    description: ToolDescription
    origin: Origin
    updated: datetime | None


class DescriptionPage(NamedTuple):
    """Descriptions ordered by name, and the name after which the next page begins (None: this is the last)."""

    items: list[WrittenDescription]
    next: str | None


@dataclass(frozen=True, slots=True)
class DescriptionService:
    """Reads and changes descriptions; subscribe ``changed`` to the announcements of other processes.

    The database takes precedence over the files, member by member. ``files`` are the host's and apply to the tenant
    ``files_of`` only; ``publish`` announces in this process that a file changed.
    """

    database: Database
    audit: AuditService
    files: DescriptionFiles | None = None
    files_of: str = DEFAULT_TENANT
    publish: Callable[[Changed], None] = lambda _: None
    interval_s: float = 2.0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    memory: ShortMemory[str, Mapping[str, ToolDescription]] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_TENANTS)
    )

    async def descriptions(self, tenant: str) -> Mapping[str, ToolDescription]:
        """Return the descriptions of the tenant's tools, by exposed name."""
        descriptions = self.memory.peek(tenant)
        if descriptions is None:
            descriptions = await self.memory.get(tenant, self._load)
        return descriptions if descriptions is not None else {}

    async def list(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> DescriptionPage:
        """Return a page of descriptions ordered by name; needs the role operator."""
        async with self.audit.refusals(caller, "descriptions.list", request):
            caller.require(Role.OPERATOR)
        files = self._files(caller.tenant)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            described = await list_described(tx, caller.tenant, after=after, limit=limit + 1)
            names = sorted({*described, *(name for name in files if after is None or name > after)})
            page_names, following = page_of(names, limit, str)
            stored = await list_descriptions(tx, caller.tenant, page_names)
        stored_by_name = {description.name: description for description in stored}
        items = [_merged(name, stored_by_name.get(name), files.get(name)) for name in page_names]
        return DescriptionPage(items, following)

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> WrittenDescription:
        """Return the description of one tool; needs the role operator."""
        async with self.audit.refusals(caller, "descriptions.get", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                stored = await list_descriptions(tx, caller.tenant, [name])
            file = self._files(caller.tenant).get(name)
            if not stored and file is None:
                raise _not_described()
        return _merged(name, stored[0] if stored else None, file)

    async def put(
        self, caller: Caller, name: str, description: ToolDescription, request: RequestInfo | None = None
    ) -> WrittenDescription:
        """Store the description for the tool of that exposed name, whether or not the tool exists."""
        document = description.model_dump(mode="json", exclude_none=True)
        stored = StoredDescription(name, document, self.now())
        async with self.audit.refusals(caller, "descriptions.put", request):
            caller.require(Role.OPERATOR)
            size = len(strictjson.dumps(document))
            if size > MAX_DOCUMENT_BYTES:
                raise TooLargeError(
                    f"A description may have at most {MAX_DOCUMENT_BYTES} bytes as JSON.",
                    details={"limit": "description_bytes", "maximum": MAX_DOCUMENT_BYTES},
                )
            async with self.database.transaction(caller.tenant) as tx:
                await put_description(tx, caller.tenant, stored)
                if await count_descriptions(tx, caller.tenant) > MAX_DESCRIPTIONS:
                    raise ConflictError(
                        f"A tenant may have at most {MAX_DESCRIPTIONS} descriptions; remove an unused one.",
                        details={"maximum": MAX_DESCRIPTIONS},
                    )
                details = {"name": name, "members": ",".join(sorted(document)), "bytes": size}
                event = self.audit.new_event(caller, "descriptions.put", OUTCOME_OK, request, details=details)
                await self.audit.record_with(tx, event)
                await announce(tx, Changed(DESCRIPTIONS_CHANGED, caller.tenant))
        self.memory.forget(caller.tenant)
        return _merged(name, stored, self._files(caller.tenant).get(name))

    async def remove(self, caller: Caller, name: str, request: RequestInfo | None = None) -> None:
        """Remove a stored description; a file of that name then applies again, and cannot be removed here."""
        async with self.audit.refusals(caller, "descriptions.remove", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                if not await remove_description(tx, caller.tenant, name):
                    raise _not_described()
                event = self.audit.new_event(
                    caller, "descriptions.remove", OUTCOME_OK, request, details={"name": name}
                )
                await self.audit.record_with(tx, event)
                await announce(tx, Changed(DESCRIPTIONS_CHANGED, caller.tenant))
        self.memory.forget(caller.tenant)

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has made stale."""
        if changed.kind == EVERYTHING or (changed.kind == DESCRIPTIONS_CHANGED and changed.tenant is None):
            self.memory.forget_where(lambda _: True)
        elif changed.kind == DESCRIPTIONS_CHANGED and changed.tenant is not None:
            self.memory.forget(changed.tenant)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Read the files, and again when one changes, while the body runs."""
        if self.files is None:
            yield
            return
        await self._scan()
        async with meanwhile(self._watch(), name="tool descriptions"):
            yield

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.interval_s)
            try:
                await self._scan()
            except Exception as error:  # noqa: BLE001 - one failed scan must not end the watch
                log.error("the tool descriptions cannot be read: %s", type(error).__name__)  # noqa: TRY400

    async def _scan(self) -> None:
        if self.files is not None and await asyncio.to_thread(self.files.scan):
            changed = Changed(DESCRIPTIONS_CHANGED, self.files_of)
            self.changed(changed)
            self.publish(changed)

    async def _load(self, tenant: str) -> Mapping[str, ToolDescription]:
        async with self.database.transaction(tenant, write=False) as tx:
            stored = await list_descriptions(tx, tenant)
        files = self._files(tenant)
        from_database = {
            description.name: _merged(description.name, description, files.get(description.name)).description
            for description in stored
        }
        return MappingProxyType({**files, **from_database})

    def _files(self, tenant: str) -> Mapping[str, ToolDescription]:
        return self.files.descriptions if self.files is not None and tenant == self.files_of else {}


def _merged(name: str, stored: StoredDescription | None, file: ToolDescription | None) -> WrittenDescription:
    if stored is None:
        return WrittenDescription(name, file or ToolDescription(), "file", None)
    own = ToolDescription.model_validate(stored.document)
    return WrittenDescription(name, own.completed_by(file), "api", stored.updated)


def _not_described() -> NotFoundError:
    return NotFoundError("There is no description of a tool of that name.")
