"""Administration over REST: keys, policies, the audit log, erasures. Values are the JSON of the API."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from sluice_client.errors import ProtocolError
from sluice_client.rest import problem
from sluice_client.results import Json
from sluice_client.wire import JSON_TYPE, Steps, WireCall, encoded

Record = dict[str, Any]
Run = Callable[[Callable[[], Steps[Any]]], Any]
AsyncRun = Callable[[Callable[[], Steps[Any]]], Awaitable[Any]]
PAGE = 1000


def asked(method: str, path: str, body: Json = None, **query: Json) -> Steps[Record]:
    """Send one request; only reads are repeatable. A member of ``query`` that is None is left out."""
    named = {name: value for name, value in query.items() if value is not None}
    answer = yield WireCall(
        method,
        f"/api/v1{path}{'?' + urlencode(named) if named else ''}",
        problem,
        headers={} if body is None else {"Content-Type": JSON_TYPE},
        body=None if body is None else encoded(body),
        repeatable=method == "GET",
    )
    value = answer.json() if answer.body else {}
    if not isinstance(value, dict):
        raise ProtocolError("The answer is no object: does Sluice listen at this address?")
    return value


def listed(path: str, most: int | None = None, **query: Json) -> Steps[list[Record]]:
    """Read a list page by page, at most ``most`` items."""
    items: list[Record] = []
    cursor = None
    while True:
        limit = PAGE if most is None else min(PAGE, most - len(items))
        page = yield from asked("GET", path, limit=limit, cursor=cursor, **query)
        items += page["items"]
        cursor = page.get("next")
        if cursor is None or (most is not None and len(items) >= most):
            return items


def _scope_path(scope: str, handle: str | None = None) -> str:
    entry = "" if handle is None else f"/entries/{quote(handle, safe='')}"
    return f"/vault/scopes/{quote(scope, safe='')}{entry}"


class Keys:
    """API keys; needs the role key-custodian."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def list(self, *, tenant: str | None = None) -> list[Record]:
        """Return all keys, without their secrets."""
        keys: list[Record] = self._run(lambda: listed("/keys", tenant=tenant))
        return keys

    def get(self, key_id: str) -> Record:
        """Return a key."""
        return self._record("GET", f"/{quote(key_id)}")

    def create(self, roles: Sequence[str], **members: Json) -> Record:
        """Create a key; its secret is in ``key``, this once. Members: name, expires, cidrs, tenant."""
        return self._record("POST", "", {"roles": [*roles], **members})

    def rotate(self, key_id: str, **members: Json) -> Record:
        """Give a key a new secret; the old one works for ``overlap_s`` seconds."""
        return self._record("POST", f"/{quote(key_id)}/rotate", members)

    def approve(self, key_id: str) -> Record:
        """Approve the roles that a key waits for."""
        return self._record("POST", f"/{quote(key_id)}/approve")

    def revoke(self, key_id: str) -> Record:
        """Revoke a key."""
        return self._record("DELETE", f"/{quote(key_id)}")

    def _record(self, method: str, path: str, body: Json = None) -> Record:
        record: Record = self._run(lambda: asked(method, f"/keys{path}", body))
        return record


class Policies:
    """A tenant's policy; needs the role operator."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def get(self, *, tenant: str | None = None) -> Record:
        """Return the current version."""
        record: Record = self._run(lambda: asked("GET", "/policies", tenant=tenant))
        return record

    def replace(
        self, policy: Mapping[str, Json], *, expected_version: int | None = None, tenant: str | None = None
    ) -> Record:
        """Store the next version; with ``expected_version`` only over that one."""
        query = {"expected_version": expected_version, "tenant": tenant}
        record: Record = self._run(lambda: asked("PUT", "/policies", policy, **query))
        return record

    def change(
        self, patch: Mapping[str, Json], *, expected_version: int | None = None, tenant: str | None = None
    ) -> Record:
        """Store the next version, with what ``patch`` names changed."""
        query = {"expected_version": expected_version, "tenant": tenant}
        record: Record = self._run(lambda: asked("PATCH", "/policies", patch, **query))
        return record

    def versions(self, *, tenant: str | None = None) -> list[Record]:
        """Return all versions, newest first."""
        versions: list[Record] = self._run(lambda: listed("/policies/versions", tenant=tenant))
        return versions


class Audit:
    """The audit log; needs the role auditor."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def events(self, *, most: int | None = 1000, **filters: Json) -> list[Record]:
        """Return at most ``most`` events, newest first. Filters: since, until, actor, action, outcome, scope, …."""
        events: list[Record] = self._run(lambda: listed("/audit/events", most, **filters))
        return events


class Erasures:
    """Erasure of originals; needs the role eraser. Each returns a receipt with counts, never values."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def value(self, value: str) -> Record:
        """Erase a value in all scopes."""
        return self._record("POST", "/vault/erasures", {"value": value})

    def scope(self, scope: str) -> Record:
        """Erase a scope with all its originals."""
        return self._record("DELETE", _scope_path(scope))

    def handle(self, scope: str, handle: str) -> Record:
        """Erase the original of one handle."""
        return self._record("DELETE", _scope_path(scope, handle))

    def _record(self, method: str, path: str, body: Json = None) -> Record:
        record: Record = self._run(lambda: asked(method, path, body))
        return record


class AsyncKeys:
    """API keys, as ``Keys``."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def list(self, *, tenant: str | None = None) -> list[Record]:
        """Return all keys, without their secrets."""
        keys: list[Record] = await self._run(lambda: listed("/keys", tenant=tenant))
        return keys

    async def get(self, key_id: str) -> Record:
        """Return a key."""
        return await self._record("GET", f"/{quote(key_id)}")

    async def create(self, roles: Sequence[str], **members: Json) -> Record:
        """Create a key; its secret is in ``key``, this once. Members: name, expires, cidrs, tenant."""
        return await self._record("POST", "", {"roles": [*roles], **members})

    async def rotate(self, key_id: str, **members: Json) -> Record:
        """Give a key a new secret; the old one works for ``overlap_s`` seconds."""
        return await self._record("POST", f"/{quote(key_id)}/rotate", members)

    async def approve(self, key_id: str) -> Record:
        """Approve the roles that a key waits for."""
        return await self._record("POST", f"/{quote(key_id)}/approve")

    async def revoke(self, key_id: str) -> Record:
        """Revoke a key."""
        return await self._record("DELETE", f"/{quote(key_id)}")

    async def _record(self, method: str, path: str, body: Json = None) -> Record:
        record: Record = await self._run(lambda: asked(method, f"/keys{path}", body))
        return record


class AsyncPolicies:
    """A tenant's policy, as ``Policies``."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def get(self, *, tenant: str | None = None) -> Record:
        """Return the current version."""
        record: Record = await self._run(lambda: asked("GET", "/policies", tenant=tenant))
        return record

    async def replace(
        self, policy: Mapping[str, Json], *, expected_version: int | None = None, tenant: str | None = None
    ) -> Record:
        """Store the next version; with ``expected_version`` only over that one."""
        query = {"expected_version": expected_version, "tenant": tenant}
        record: Record = await self._run(lambda: asked("PUT", "/policies", policy, **query))
        return record

    async def change(
        self, patch: Mapping[str, Json], *, expected_version: int | None = None, tenant: str | None = None
    ) -> Record:
        """Store the next version, with what ``patch`` names changed."""
        query = {"expected_version": expected_version, "tenant": tenant}
        record: Record = await self._run(lambda: asked("PATCH", "/policies", patch, **query))
        return record

    async def versions(self, *, tenant: str | None = None) -> list[Record]:
        """Return all versions, newest first."""
        versions: list[Record] = await self._run(lambda: listed("/policies/versions", tenant=tenant))
        return versions


class AsyncAudit:
    """The audit log, as ``Audit``."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def events(self, *, most: int | None = 1000, **filters: Json) -> list[Record]:
        """Return at most ``most`` events, newest first."""
        events: list[Record] = await self._run(lambda: listed("/audit/events", most, **filters))
        return events


class AsyncErasures:
    """Erasure of originals, as ``Erasures``."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run

    async def value(self, value: str) -> Record:
        """Erase a value in all scopes."""
        return await self._record("POST", "/vault/erasures", {"value": value})

    async def scope(self, scope: str) -> Record:
        """Erase a scope with all its originals."""
        return await self._record("DELETE", _scope_path(scope))

    async def handle(self, scope: str, handle: str) -> Record:
        """Erase the original of one handle."""
        return await self._record("DELETE", _scope_path(scope, handle))

    async def _record(self, method: str, path: str, body: Json = None) -> Record:
        record: Record = await self._run(lambda: asked(method, path, body))
        return record
