"""Administration over REST: keys, policies, the audit log, erasures. Values are the JSON of the API.

Each class serves both clients: ``R`` is what a call for one record returns, ``L`` for a list of them. These are the
values themselves for the blocking client, and coroutines of them for the asynchronous one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from sluice_client.errors import ProtocolError
from sluice_client.rest import problem
from sluice_client.results import Json
from sluice_client.wire import JSON_TYPE, Steps, WireCall, encoded

Record = dict[str, Any]
R = TypeVar("R")
L = TypeVar("L")
RunOne = Callable[[Steps[Record]], R]
RunList = Callable[[Steps[list[Record]]], L]
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


class Keys(Generic[R, L]):
    """API keys; needs the role key-custodian."""

    def __init__(self, run: RunOne[R], run_list: RunList[L]) -> None:
        self._run = run
        self._run_list = run_list

    def list(self, *, tenant: str | None = None) -> L:
        """Return all keys, without their secrets."""
        return self._run_list(listed("/keys", tenant=tenant))

    def get(self, key_id: str) -> R:
        """Return a key."""
        return self._record("GET", f"/{quote(key_id)}")

    def create(self, roles: Sequence[str], **members: Json) -> R:
        """Create a key; its secret is in ``key``, this once. Members: name, expires, cidrs, tenant."""
        return self._record("POST", "", {"roles": [*roles], **members})

    def rotate(self, key_id: str, **members: Json) -> R:
        """Give a key a new secret; the old one works for ``overlap_s`` seconds."""
        return self._record("POST", f"/{quote(key_id)}/rotate", members)

    def approve(self, key_id: str) -> R:
        """Approve the roles that a key waits for."""
        return self._record("POST", f"/{quote(key_id)}/approve")

    def revoke(self, key_id: str) -> R:
        """Revoke a key."""
        return self._record("DELETE", f"/{quote(key_id)}")

    def _record(self, method: str, path: str, body: Json = None) -> R:
        return self._run(asked(method, f"/keys{path}", body))


class Policies(Generic[R, L]):
    """A tenant's policy; needs the role operator."""

    def __init__(self, run: RunOne[R], run_list: RunList[L]) -> None:
        self._run = run
        self._run_list = run_list

    def get(self, *, tenant: str | None = None) -> R:
        """Return the current version."""
        return self._run(asked("GET", "/policies", tenant=tenant))

    def replace(
        self, policy: Mapping[str, Json], *, expected_version: int | None = None, tenant: str | None = None
    ) -> R:
        """Store the next version; with ``expected_version`` only over that one."""
        query = {"expected_version": expected_version, "tenant": tenant}
        return self._run(asked("PUT", "/policies", policy, **query))

    def change(
        self, patch: Mapping[str, Json], *, expected_version: int | None = None, tenant: str | None = None
    ) -> R:
        """Store the next version, with what ``patch`` names changed."""
        query = {"expected_version": expected_version, "tenant": tenant}
        return self._run(asked("PATCH", "/policies", patch, **query))

    def versions(self, *, tenant: str | None = None) -> L:
        """Return all versions, newest first."""
        return self._run_list(listed("/policies/versions", tenant=tenant))


class Audit(Generic[L]):
    """The audit log; needs the role auditor."""

    def __init__(self, run_list: RunList[L]) -> None:
        self._run_list = run_list

    def events(self, *, most: int | None = 1000, **filters: Json) -> L:
        """Return at most ``most`` events, newest first. Filters: since, until, actor, action, outcome, scope, …."""
        return self._run_list(listed("/audit/events", most, **filters))


class Erasures(Generic[R]):
    """Erasure of originals; needs the role eraser. Each returns a receipt with counts, never values."""

    def __init__(self, run: RunOne[R]) -> None:
        self._run = run

    def value(self, value: str) -> R:
        """Erase a value in all scopes."""
        return self._record("POST", "/vault/erasures", {"value": value})

    def scope(self, scope: str) -> R:
        """Erase a scope with all its originals."""
        return self._record("DELETE", _scope_path(scope))

    def handle(self, scope: str, handle: str) -> R:
        """Erase the original of one handle."""
        return self._record("DELETE", _scope_path(scope, handle))

    def _record(self, method: str, path: str, body: Json = None) -> R:
        return self._run(asked(method, path, body))
