"""Administration over REST: keys, policies, the audit log, people's values, erasures. Values are the JSON of the API.

Each class serves both clients: ``R`` is what a call for one record returns, ``L`` for a list of them, ``T`` for text.
These are the values themselves for the blocking client, and coroutines of them for the asynchronous one.
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
T = TypeVar("T")
RunOne = Callable[[Steps[Record]], R]
RunList = Callable[[Steps[list[Record]]], L]
RunText = Callable[[Steps[str]], T]
Value = str | Mapping[str, Json]
"""A value of a person: as text, or ``{"value": …, "type": "PERSON"}`` where it was masked as that type alone."""
PAGE = 1000


def asked(method: str, path: str, body: Json = None, **query: Json) -> Steps[Record]:
    """Send one request; only reads are repeatable. A member of ``query`` that is None is left out."""
    answer = yield _call(method, path, body, query)
    value = answer.json() if answer.body else {}
    if not isinstance(value, dict):
        raise ProtocolError("The answer is no object: does Sluice listen at this address?")
    return value


def read(path: str, **query: Json) -> Steps[str]:
    """Read what is text."""
    answer = yield _call("GET", path, None, query)
    return answer.body.decode()


def _call(method: str, path: str, body: Json, query: Mapping[str, Json]) -> WireCall:
    named = {name: value for name, value in query.items() if value is not None}
    return WireCall(
        method,
        f"/api/v1{path}{'?' + urlencode(named, doseq=True) if named else ''}",
        problem,
        headers={} if body is None else {"Content-Type": JSON_TYPE},
        body=None if body is None else encoded(body),
        repeatable=method == "GET",
    )


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


class Audit(Generic[R, L, T]):
    """The audit log; needs the role auditor."""

    def __init__(self, run: RunOne[R], run_list: RunList[L], run_text: RunText[T]) -> None:
        self._run = run
        self._run_list = run_list
        self._run_text = run_text

    def events(self, *, most: int | None = 1000, **filters: Json) -> L:
        """Return at most ``most`` events, newest first. Filters: since, until, actor, action, outcome, scope, …."""
        return self._run_list(listed("/audit/events", most, **filters))

    def counts(self, **filters: Json) -> R:
        """Return how many events there are, by day, action, outcome or actor (``by``); since, until, …."""
        return self._run(asked("GET", "/audit/counts", **filters))

    def content(self, event: str, reason: str) -> R:
        """Open what an event keeps sealed, for a reason that is on record; also needs the role restorer."""
        return self._run(asked("POST", f"/audit/events/{quote(event)}/content", {"reason": reason}))

    def end_user(self, event: str, reason: str) -> R:
        """Open the name of the end user that an event keeps, likewise."""
        return self._run(asked("POST", f"/audit/events/{quote(event)}/end-user", {"reason": reason}))

    def keys(self) -> R:
        """Return the public keys of the log in ``items``; the last one signs now."""
        return self._run(asked("GET", "/audit/keys"))

    def checkpoint(self, *, old: int | None = None) -> T:
        """Return the newest signed head; ``old``: with a proof that the log only grew since that size."""
        return self._run_text(read("/audit/checkpoint", old=old))

    def proofs(
        self, events: Sequence[str] | None = None, *, since: str | None = None, until: str | None = None
    ) -> T:
        """Return events with their proofs as JSON Lines, for deploy/verify_audit.py: these (100 at most), or all."""
        return self._run_text(read("/audit/proofs", event=events and [*events], since=since, until=until))


class Subjects(Generic[R]):
    """Where the values of a person are; needs the role eraser."""

    def __init__(self, run: RunOne[R]) -> None:
        self._run = run

    def search(
        self,
        values: Sequence[Value],
        reason: str,
        *,
        variants: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> R:
        """Return a page of scopes, types, counts and times, never originals; ``variants``: other spellings, too.

        ``next`` is the cursor of the next page. The reason is on record; a tenant searches for 60 values a minute.
        """
        body = {"values": _valued(values), "variants": variants, "reason": reason}
        return self._run(asked("POST", "/subjects/search", body, limit=limit, cursor=cursor))


class Erasures(Generic[R]):
    """Erasure of originals; needs the role eraser. Receipts have counts, never values."""

    def __init__(self, run: RunOne[R]) -> None:
        self._run = run

    def preview(
        self,
        reason: str,
        *,
        values: Sequence[Value] | None = None,
        scopes: Sequence[str] | None = None,
        tenant: str | None = None,
        variants: bool = False,
    ) -> R:
        """Return what ``order`` would erase now, and change nothing."""
        order = _order(reason, values, scopes, tenant, variants=variants)
        return self._record("POST", "/erasures", {**order, "preview": True})

    def order(
        self,
        reason: str,
        *,
        values: Sequence[Value] | None = None,
        scopes: Sequence[str] | None = None,
        tenant: str | None = None,
        variants: bool = False,
    ) -> R:
        """Order an erasure of values, of scopes or of a tenant, which the service does in the background."""
        return self._record("POST", "/erasures", _order(reason, values, scopes, tenant, variants=variants))

    def get(self, erasure: str) -> R:
        """Return how far an erasure is, and its signed ``receipt`` once its ``state`` is ``done``."""
        return self._record("GET", f"/erasures/{quote(erasure)}")

    def scope(self, scope: str) -> R:
        """Erase a scope with all its originals, at once."""
        return self._record("DELETE", _scope_path(scope))

    def handle(self, scope: str, handle: str) -> R:
        """Erase the original of one handle, at once."""
        return self._record("DELETE", _scope_path(scope, handle))

    def _record(self, method: str, path: str, body: Json = None) -> R:
        return self._run(asked(method, path, body))


def _valued(values: Sequence[Value]) -> list[Json]:
    return [{"value": value} if isinstance(value, str) else dict(value) for value in values]


def _order(
    reason: str,
    values: Sequence[Value] | None,
    scopes: Sequence[str] | None,
    tenant: str | None,
    *,
    variants: bool,
) -> dict[str, Json]:
    members = {
        "values": None if values is None else _valued(values),
        "scopes": None if scopes is None else [*scopes],
        "tenant": tenant,
        "variants": variants or None,
    }
    return {"reason": reason, **{name: value for name, value in members.items() if value is not None}}
