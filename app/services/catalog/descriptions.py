"""What operators write about tools: as files, over REST, or not at all."""

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
_REMEMBERED_TENANTS = 1024

Origin = Literal["api", "file"]


class WrittenDescription(NamedTuple):
    """What holds for the tool of one name; ``origin`` says where the strongest part of it comes from."""

    name: str
    description: ToolDescription
    origin: Origin
    updated: datetime | None


class DescriptionPage(NamedTuple):
    """Descriptions by name, and the name behind which the next page begins (None: this was the last)."""

    items: list[WrittenDescription]
    next: str | None


@dataclass(frozen=True, slots=True)
class DescriptionService:
    """Reads and changes descriptions; subscribe ``changed`` to the announcements of other processes.

    What the database says wins over the files, member by member. ``files`` are the host's and hold for the tenant
    ``files_of`` alone; ``tell`` passes on in this process that a file changed.
    """

    database: Database
    audit: AuditService
    files: DescriptionFiles | None = None
    files_of: str = DEFAULT_TENANT
    tell: Callable[[Changed], None] = lambda _: None
    interval_s: float = 2.0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    memory: ShortMemory[str, Mapping[str, ToolDescription]] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_REMEMBERED_TENANTS)
    )

    async def descriptions(self, tenant: str) -> Mapping[str, ToolDescription]:
        """Return what is written about the tenant's tools, by exposed name."""
        found = self.memory.peek(tenant)
        if found is None:
            found = await self.memory.get(tenant, self._load)
        return found if found is not None else {}

    async def list(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> DescriptionPage:
        """Return what is written, by name; needs the role operator."""
        async with self.audit.refusals(caller, "descriptions.list", request):
            caller.require(Role.OPERATOR)
        files = self._files(caller.tenant)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            described = await list_described(tx, caller.tenant, after=after, limit=limit + 1)
            names = sorted({*described, *(name for name in files if after is None or name > after)})
            shown, following = page_of(names, limit, str)
            stored = await list_descriptions(tx, caller.tenant, shown)
        found = {one.name: one for one in stored}
        items = [_written(name, found.get(name), files.get(name)) for name in shown]
        return DescriptionPage(items, following)

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> WrittenDescription:
        """Return what is written about one tool; needs the role operator."""
        async with self.audit.refusals(caller, "descriptions.get", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                stored = await list_descriptions(tx, caller.tenant, [name])
            file = self._files(caller.tenant).get(name)
            if not stored and file is None:
                raise _nothing_written()
        return _written(name, stored[0] if stored else None, file)

    async def put(
        self, caller: Caller, name: str, description: ToolDescription, request: RequestInfo | None = None
    ) -> WrittenDescription:
        """Store what holds for the tool of that exposed name from now on, whether or not there is one."""
        document = description.model_dump(mode="json", exclude_none=True)
        stored = StoredDescription(name, document, self.now())
        async with self.audit.refusals(caller, "descriptions.put", request):
            caller.require(Role.OPERATOR)
            size = len(strictjson.dumps(document))
            if size > MAX_DOCUMENT_BYTES:
                raise TooLargeError(
                    f"A description may have {MAX_DOCUMENT_BYTES} bytes as JSON.",
                    details={"limit": "description_bytes", "maximum": MAX_DOCUMENT_BYTES},
                )
            async with self.database.transaction(caller.tenant) as tx:
                await put_description(tx, caller.tenant, stored)
                if await count_descriptions(tx, caller.tenant) > MAX_DESCRIPTIONS:
                    raise ConflictError(
                        f"A tenant may have {MAX_DESCRIPTIONS} descriptions; remove one of a tool that is gone.",
                        details={"maximum": MAX_DESCRIPTIONS},
                    )
                details = {"name": name, "members": ",".join(sorted(document)), "bytes": size}
                event = self.audit.new_event(caller, "descriptions.put", OUTCOME_OK, request, details=details)
                await self.audit.record_with(tx, event)
                await announce(tx, Changed(DESCRIPTIONS_CHANGED, caller.tenant))
        self.memory.forget(caller.tenant)
        return _written(name, stored, self._files(caller.tenant).get(name))

    async def remove(self, caller: Caller, name: str, request: RequestInfo | None = None) -> None:
        """Remove what is stored; a file of that name holds again, and nobody can remove it from here."""
        async with self.audit.refusals(caller, "descriptions.remove", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                if not await remove_description(tx, caller.tenant, name):
                    raise _nothing_written()
                event = self.audit.new_event(
                    caller, "descriptions.remove", OUTCOME_OK, request, details={"name": name}
                )
                await self.audit.record_with(tx, event)
                await announce(tx, Changed(DESCRIPTIONS_CHANGED, caller.tenant))
        self.memory.forget(caller.tenant)

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has overtaken."""
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
        await self._look()
        async with meanwhile(self._watch(), name="tool descriptions"):
            yield

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.interval_s)
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 - one broken look must not end the watch
                log.error("the tool descriptions cannot be read: %s", type(error).__name__)  # noqa: TRY400

    async def _look(self) -> None:
        if self.files is not None and await asyncio.to_thread(self.files.scan):
            changed = Changed(DESCRIPTIONS_CHANGED, self.files_of)
            self.changed(changed)
            self.tell(changed)

    async def _load(self, tenant: str) -> Mapping[str, ToolDescription]:
        async with self.database.transaction(tenant, write=False) as tx:
            stored = await list_descriptions(tx, tenant)
        files = self._files(tenant)
        above = {one.name: _written(one.name, one, files.get(one.name)).description for one in stored}
        return MappingProxyType({**files, **above})

    def _files(self, tenant: str) -> Mapping[str, ToolDescription]:
        return self.files.found if self.files is not None and tenant == self.files_of else {}


def _written(name: str, stored: StoredDescription | None, file: ToolDescription | None) -> WrittenDescription:
    if stored is None:
        return WrittenDescription(name, file or ToolDescription(), "file", None)
    own = ToolDescription.model_validate(stored.document)
    return WrittenDescription(name, own.completed_by(file), "api", stored.updated)


def _nothing_written() -> NotFoundError:
    return NotFoundError("Nothing is written about a tool of that name.")
