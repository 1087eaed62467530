"""Issuers of tokens: those of the settings, and those that operators of the tenant system add beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final, Literal

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK
from app.core.contracts.issuers import IssuerSettings
from app.core.errors import (
    ConflictError,
    ForbiddenError,
    InternalError,
    InvalidArgumentsError,
    NotFoundError,
    PreconditionRequiredError,
)
from app.core.events import Changed
from app.core.identities import issuer_id
from app.core.request import RequestInfo
from app.core.tokens import TokenReader
from app.services.access.access import AccessService
from app.services.access.identity.issuer_sealing import (
    SubmittedIssuer,
    changed_members,
    opened_issuer,
    sealed_secrets,
    stored_document,
)
from app.services.access.identity.issuer_states import IssuerState, state_of
from app.services.access.identity.issuer_trials import IssuerTrial, tried
from app.services.access.identity.stored_issuers import ISSUERS_CHANGED
from app.services.access.identity.token_trials import TokenTrial
from app.services.access.token_callers import TokenCallers
from app.store.access.issuers import ISSUERS, StoredIssuer
from app.store.access.tenants import find_tenant
from app.store.audit.audit import Transaction
from app.store.changes import announce
from app.upstream.issuers import IssuerClient

MAX_ISSUERS: Final = 100
_MAKING_CALLERS: Final = frozenset({Role.OPERATOR, Role.KEY_CUSTODIAN})
_IN_SETTINGS: Final = (
    "The issuer stands in the settings (SLUICE_AUTH__ISSUERS); change it there, and start again."
)


@dataclass(frozen=True, slots=True)
class IssuerRecord:
    """An issuer, and where it stands; ``entry`` is None where what is stored cannot be read any more.

    One of the ``settings`` has no version, and nothing stored. ``hidden``: the settings name the same issuer, and
    what is stored of it does not count.
    """

    issuer: str
    source: Literal["settings", "stored"]
    entry: IssuerSettings | None
    state: IssuerState
    stored: StoredIssuer | None = None
    hidden: bool = False

    @property
    def id(self) -> str:
        """Return what stands for the issuer in addresses."""
        return issuer_id(self.issuer)


@dataclass(frozen=True, slots=True)
class IssuerService:
    """Administers stored issuers, for operators of the tenant system; ``settings`` are those that stay as they are.

    Whoever adds an issuer makes callers of every tenant, as keys do: that needs the role key custodian, too.
    """

    access: AccessService
    client: IssuerClient
    reader: TokenReader
    settings: Sequence[IssuerSettings] = ()

    async def list(self, caller: Caller, request: RequestInfo | None = None) -> Sequence[IssuerRecord]:
        """Return all issuers by name; what a stored one hides behind the settings comes after them."""
        async with self.access.audit.refusals(caller, "issuers.list", request):
            self.check(caller)
        return await self._records()

    async def get(self, caller: Caller, id_: str, request: RequestInfo | None = None) -> IssuerRecord:
        """Return one issuer by its id, or raise NotFoundError."""
        async with self.access.audit.refusals(caller, "issuers.get", request):
            self.check(caller)
            return self._named(await self._records(), id_)

    async def add(
        self, caller: Caller, submitted: SubmittedIssuer, request: RequestInfo | None = None
    ) -> IssuerRecord:
        """Store a new issuer, whose tokens count from now on in every process.

        Raises ConflictError for one that is there already, InvalidArgumentsError for what may not be stored.
        """
        async with self.access.audit.refusals(caller, "issuers.add", request):
            self._check_making(caller)
            entry = submitted.entry()
            self._check_addresses(entry)
            if any(own.issuer == entry.issuer for own in self.settings):
                raise ConflictError(_IN_SETTINGS, details={"pointer": "/issuer"})
            moment = self.access.now()
            added = StoredIssuer(
                tenant=SYSTEM_TENANT,
                name=entry.issuer,
                document=stored_document(entry),
                secrets=sealed_secrets(self.access.audit.keys, entry),
                created=moment,
                created_by=caller.key_id,
                updated=moment,
                version=1,
                updated_by=caller.key_id,
            )
            await self.access.audit.keys.ready(SYSTEM_TENANT)
            async with self.access.database.system_transaction() as tx:
                await self._check_others(tx, entry)
                if not await ISSUERS.add(tx, added):
                    raise ConflictError("There is an issuer of that name.", details={"pointer": "/issuer"})
                await self._note(tx, caller, "issuers.add", added, request, rules=len(entry.rules))
        self._follow(entry.issuer)
        return IssuerRecord(entry.issuer, "stored", entry, IssuerState(), added)

    async def put(
        self,
        caller: Caller,
        id_: str,
        submitted: SubmittedIssuer,
        request: RequestInfo | None = None,
        *,
        expected_version: int | None,
    ) -> IssuerRecord:
        """Replace what is stored of an issuer; secrets that are not repeated stay.

        Raises as ``add``, ConflictError where another version than ``expected_version`` is current, and
        PreconditionRequiredError where that is None.
        """
        async with self.access.audit.refusals(caller, "issuers.put", request):
            self._check_making(caller)
            await self.access.audit.keys.ready(SYSTEM_TENANT)
            async with self.access.database.system_transaction() as tx:
                before = await self._locked(tx, id_, expected_version)
                opened = self._opened(before)
                entry = submitted.entry(opened)
                if entry.issuer != before.name:
                    raise InvalidArgumentsError(
                        "The issuer of an entry cannot change; add another one, and remove this.",
                        details={"pointer": "/issuer"},
                    )
                self._check_addresses(entry)
                await self._check_others(tx, entry)
                changed = replace(
                    before,
                    document=stored_document(entry),
                    secrets=sealed_secrets(self.access.audit.keys, entry),
                    updated=max(self.access.now(), before.updated + timedelta(microseconds=1)),
                    updated_by=caller.key_id,
                    version=before.version + 1,
                )
                await ISSUERS.update(tx, changed)
                names = changed_members(opened, entry) if opened is not None else "all"
                await self._note(
                    tx, caller, "issuers.put", changed, request, changed=names, rules=len(entry.rules)
                )
        self._follow(before.name)
        await self._callers.ready()
        keys = self._callers.keys_of(before.name)
        hidden = any(own.issuer == before.name for own in self.settings)
        state = IssuerState() if hidden else state_of(keys, self.access.now())
        return IssuerRecord(before.name, "stored", entry, state, changed, hidden)

    async def remove(
        self,
        caller: Caller,
        id_: str,
        request: RequestInfo | None = None,
        *,
        expected_version: int | None,
    ) -> None:
        """Trust an issuer no more: its tokens and sessions end in every process; versions as for ``put``."""
        async with self.access.audit.refusals(caller, "issuers.remove", request):
            self.check(caller)
            await self.access.audit.keys.ready(SYSTEM_TENANT)
            async with self.access.database.system_transaction() as tx:
                before = await self._locked(tx, id_, expected_version)
                await ISSUERS.remove(tx, SYSTEM_TENANT, before.name)
                await self._note(tx, caller, "issuers.remove", before, request)
        self._follow(before.name)

    async def test(self, caller: Caller, id_: str, request: RequestInfo | None = None) -> IssuerTrial:
        """Ask an issuer for its metadata and keys once; a failure is a result, not an error."""
        audit = self.access.audit
        async with audit.refusals(caller, "issuers.test", request):
            self.check(caller)
            record = self._named(await self._records(), id_)
        if record.entry is None:
            return IssuerTrial(False, error=record.state.error)
        trial = await tried(self.client, self.reader, record.entry.trusted())
        outcome = OUTCOME_OK if trial.ready else OUTCOME_FAILED
        details = {"issuer": record.issuer, "ready": trial.ready, "keys": trial.keys}
        await audit.record(audit.new_event(caller, "issuers.test", outcome, request, details=details))
        return trial

    async def explain(self, caller: Caller, token: str, request: RequestInfo | None = None) -> TokenTrial:
        """Say whom a token would make: a dry run. Who acts for one tenant is shown its rules alone."""
        callers = await self._explaining(caller, request)
        trial = await callers.tried(token, self.access.now())
        return self._shown(caller, trial)

    async def explain_claims(
        self, caller: Caller, issuer: str, claims: Mapping[str, Any], request: RequestInfo | None = None
    ) -> TokenTrial:
        """Say whom a token of an issuer with these claims would make; nothing is signed, and nobody gets in."""
        callers = await self._explaining(caller, request)
        now = self.access.now().timestamp()
        return self._shown(caller, await callers.tried_claims(issuer, {**claims, "iat": now}))

    def check(self, caller: Caller) -> None:
        """Raise ForbiddenError unless ``caller`` may administer issuers."""
        caller.require(Role.OPERATOR)
        if not self.access.authority.reaches_all(caller):
            raise ForbiddenError("Issuers are administered by an operator of the tenant system.")

    def may_change(self, caller: Caller) -> bool:
        """Return whether ``caller`` may add issuers and change what is stored of them."""
        return caller.roles >= _MAKING_CALLERS and self.access.authority.reaches_all(caller)

    def _check_making(self, caller: Caller) -> None:
        self.check(caller)
        if not caller.roles >= _MAKING_CALLERS:
            raise ForbiddenError(
                "Issuers make callers of every tenant: to add and to change them needs the roles operator and "
                "key-custodian, as keys need the latter.",
                details={"required": [Role.KEY_CUSTODIAN]},
            )

    def _check_addresses(self, entry: IssuerSettings) -> None:
        """Refuse plain http, except for an issuer on this machine in development."""
        if entry.is_encrypted or (self.client.development and not entry.is_plain):
            return
        raise InvalidArgumentsError(
            "An issuer and what it is asked at have addresses that begin with https://; in development, one on this "
            "machine may have http://.",
            details={"pointer": "/issuer"},
        )

    async def _check_others(self, tx: Transaction, entry: IssuerSettings) -> None:
        """Refuse one issuer too many, and a second one that is shown tokens which do not say whose they are."""
        # Who adds another one at the same time waits here, and then sees this one.
        await find_tenant(tx, SYSTEM_TENANT, lock=True)
        rows = [row for row in await ISSUERS.list(tx, SYSTEM_TENANT) if row.name != entry.issuer]
        if len(rows) >= MAX_ISSUERS:
            raise ConflictError(f"At most {MAX_ISSUERS} issuers are stored; remove one first.")
        if not _takes_opaque(entry.model_dump(mode="json", by_alias=True)):
            return
        others = [
            *(own.model_dump(mode="json", by_alias=True) for own in self.settings),
            *(row.document for row in rows),
        ]
        if any(_takes_opaque(other) for other in others):
            raise ConflictError(
                "Another issuer takes opaque tokens already: they do not say whose they are, and no other is to see "
                "them. Leave `opaque` out of the tokens of one of the two.",
                details={"pointer": "/introspection/tokens"},
            )

    async def _locked(self, tx: Transaction, id_: str, expected: int | None) -> StoredIssuer:
        """Return what is stored under an id, to be changed; raise what refuses that."""
        if any(issuer_id(own.issuer) == id_ for own in self.settings) and not await _stored(tx, id_):
            raise ConflictError(_IN_SETTINGS)
        name = await _stored(tx, id_)
        row = await ISSUERS.find(tx, SYSTEM_TENANT, name, lock=True) if name is not None else None
        if row is None:
            raise NotFoundError("There is no such issuer.")
        if expected is None:
            raise PreconditionRequiredError(
                "Say on which version the change is based: ?expected_version=N, where N is the version that you read.",
                details={"parameter": "expected_version", "version": row.version},
            )
        if expected != row.version:
            raise ConflictError(
                "The issuer was changed meanwhile; read it again and repeat the change.",
                details={"version": row.version},
            )
        return row

    async def _records(self) -> Sequence[IssuerRecord]:
        callers = self._callers
        await callers.ready()
        async with self.access.database.system_transaction(write=False) as tx:
            rows = await ISSUERS.list(tx, SYSTEM_TENANT)
        own, now = {entry.issuer for entry in self.settings}, self.access.now()
        records = [
            IssuerRecord(entry.issuer, "settings", entry, state_of(callers.keys_of(entry.issuer), now))
            for entry in self.settings
        ]
        for row in rows:
            entry, hidden = self._opened(row), row.name in own
            state = state_of(callers.keys_of(row.name), now) if not hidden else IssuerState()
            if entry is None:
                state = IssuerState(
                    error="What is stored of it cannot be read; supply it again, or remove it."
                )
            records.append(IssuerRecord(row.name, "stored", entry, state, row, hidden))
        return sorted(records, key=attrgetter("issuer", "source"))

    def _named(self, records: Sequence[IssuerRecord], id_: str) -> IssuerRecord:
        named = next((record for record in records if record.id == id_), None)
        if named is None:
            raise NotFoundError("There is no such issuer.")
        return named

    def _opened(self, row: StoredIssuer) -> IssuerSettings | None:
        try:
            return opened_issuer(self.access.audit.keys, row)
        except (InternalError, InvalidArgumentsError, ValueError):
            return None

    async def _explaining(self, caller: Caller, request: RequestInfo | None) -> TokenCallers:
        async with self.access.audit.refusals(caller, "identity.explain", request):
            caller.require(Role.KEY_CUSTODIAN)
        return self._callers

    def _shown(self, caller: Caller, trial: TokenTrial) -> TokenTrial:
        return trial if self.access.authority.reaches_all(caller) else trial.within(caller.tenant)

    @property
    def _callers(self) -> TokenCallers:
        callers = self.access.authenticator.tokens
        if callers is None:
            raise NotFoundError("This process takes no tokens.")
        return callers

    def _follow(self, issuer: str) -> None:
        """Apply the change in this process before the caller is answered; the others get the announcement."""
        self.access.authenticator.changed(Changed(ISSUERS_CHANGED, None, issuer))

    async def _note(
        self,
        tx: Transaction,
        caller: Caller,
        action: str,
        stored: StoredIssuer,
        request: RequestInfo | None,
        **details: str | int,
    ) -> None:
        """Record a change, names and counts only, and announce it with the transaction."""
        noted: dict[str, Any] = {"issuer": stored.name, "version": stored.version, **details}
        events = self.access.events_of(caller, action, SYSTEM_TENANT, request, noted)
        await self.access.audit.record_with(tx, *events)
        await announce(tx, Changed(ISSUERS_CHANGED, None, stored.name))


async def _stored(tx: Transaction, id_: str) -> str | None:
    """Return the name of the stored issuer with an id."""
    names = (row.name for row in await ISSUERS.list(tx, SYSTEM_TENANT))
    return next((name for name in names if issuer_id(name) == id_), None)


def _takes_opaque(document: Mapping[str, Any]) -> bool:
    return "opaque" in ((document.get("introspection") or {}).get("tokens") or ())
