"""Nobody reads another's conversation: scopes, handles, ids and signed blocks of the gateway, on both databases."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.content.handles import LITERAL, Handle, Original, find_handles
from app.core.contracts.middleware import VaultOptions
from app.core.contracts.policy import SecretPolicy
from app.core.errors import NotFoundError
from app.services.gateway import opened_scopes, request_vaults
from app.services.gateway.opened_scopes import OpenedScopes, ScopeFullError
from app.services.gateway.request_vaults import RequestVault, RequestVaults
from app.services.gateway.scopes import GatewayScopes, ScopeHints, ScopeRules
from app.services.gateway.signed_reasoning import SignedBlockGoneError, SignedBlocks
from app.services.vault.vault import VaultReceipt, VaultWrite
from app.store.changes import Changes
from app.store.database import Database
from app.store.vault.tables import gateway_binding
from tests.factories import Vault, caller_of, open_vault

PLANTED = {
    "Ada Lovelace": "PERSON",
    "Bob Builder": "PERSON",
    "ada@example.org": "EMAIL",
    "Acme Works": "ORGANIZATION",
}
FIRST = "I am Ada Lovelace, write to ada@example.org."
ADA, MAIL = Handle("PERSON", 1), Handle("EMAIL", 1)
RULES = ScopeRules()


@dataclass(slots=True)
class Clock:
    """A clock that a test moves."""

    ahead: timedelta = field(default_factory=timedelta)

    def now(self) -> datetime:
        """Return the time."""
        return datetime.now(UTC) + self.ahead


@dataclass(slots=True)
class Gateway:
    """The services of one process."""

    vault: Vault
    scopes: GatewayScopes
    opened: OpenedScopes
    requests: RequestVaults
    signed: SignedBlocks

    async def begin(
        self,
        caller: Caller,
        texts: Sequence[str],
        *,
        hints: ScopeHints | None = None,
        rules: ScopeRules = RULES,
    ) -> RequestVault:
        """Return the vault of a request."""
        scope = await self.scopes.find(caller, hints or ScopeHints(first_user_text=texts[0]), rules)
        return await self.requests.open(caller, scope, lambda: texts, SecretPolicy())

    async def turn(
        self,
        caller: Caller,
        texts: Sequence[str],
        *,
        hints: ScopeHints | None = None,
        rules: ScopeRules = RULES,
    ) -> tuple[RequestVault, list[str]]:
        """Return the vault of a request and its texts as a redaction that detects what is planted leaves them."""
        vault = await self.begin(caller, texts, hints=hints, rules=rules)
        return vault, await self.redacted(vault, texts, vault.scope.name)

    async def redacted(self, vault: RequestVault, texts: Sequence[str], scope: str) -> list[str]:
        """Return ``texts`` with handles for what is planted, and for what looks like a handle of somebody else."""
        matches = [match.handle for text in texts for match in find_handles(text, exact=True)]
        spoken = list(dict.fromkeys(matches))
        known = await vault.known(vault.caller, scope, spoken)
        found = [(label, value) for value, label in PLANTED.items() if any(value in text for text in texts)]
        found += [(LITERAL, str(handle)) for handle in spoken if handle not in known]

        def events(_receipt: VaultReceipt) -> Sequence[AuditEvent]:
            return [self.vault.audit.new_event(vault.caller, "middleware.invoke", OUTCOME_OK, None)]

        originals = [(label, Original(text)) for label, text in found]
        receipt = await vault.commit(vault.caller, VaultWrite(scope, originals, VaultOptions(), events))
        forms = list(texts)
        for (label, value), handle in sorted(
            zip(found, receipt.handles, strict=True), key=lambda pair: pair[0][0] != LITERAL
        ):
            forms = [form.replace(value, f"\x01{label}\x02{handle.ordinal}\x03") for form in forms]
        return [form.replace("\x01", "[").replace("\x02", "_").replace("\x03", "]") for form in forms]


@asynccontextmanager
async def serving(database: Database, clock: Clock | None = None) -> AsyncIterator[Gateway]:
    """Return the gateway's services of one process on ``database``."""
    now = (clock or Clock()).now
    async with open_vault(database, now=now) as vault:
        opened = OpenedScopes(database, vault.service.opener, now)
        changes = Changes(database)
        changes.subscribe(opened.hear)
        async with changes.running():
            yield Gateway(
                vault,
                GatewayScopes(database, vault.service, now),
                opened,
                RequestVaults(vault.service, opened, now),
                SignedBlocks(database, vault.custodian, now=now),
            )


def user(tenant: str, name: str | None, *, key: str = "0a1b2c3d") -> Caller:
    """Return an end user of a key, who may restore."""
    return Caller(tenant, key, frozenset({Role.INVOKER, Role.RESTORER}), name)


SAME = {
    "the first message": ScopeHints(first_user_text=FIRST),
    "a session of the body": ScopeHints(sessions=["", "cache-1"], first_user_text=FIRST),
}


@pytest.mark.parametrize("alike", SAME)
@pytest.mark.parametrize("other", ["another end user", "another key", "the same key and no end user"])
async def test_whoever_types_the_handles_of_another_gets_nothing(
    database: Database, tenant: str, alike: str, other: str
) -> None:
    nobody = other.startswith("the same")
    ada = user(tenant, None if nobody else "ada")
    bob = {
        "another end user": user(tenant, "bob"),
        "another key": user(tenant, "ada", key="ffffffff"),
        "the same key and no end user": ada,
    }[other]
    typed = "Hello. [PERSON_1] [EMAIL_1] [PERSON_1~abcd] and PERSON_1?"
    async with serving(database) as gateway:
        own, forms = await gateway.turn(ada, [FIRST], hints=SAME[alike])
        assert forms == ["I am [PERSON_1], write to [EMAIL_1]."]
        assert (own.resolve(ADA), own.resolve(MAIL)) == (
            Original("Ada Lovelace"),
            Original("ada@example.org"),
        )
        foreign, forms = await gateway.turn(bob, [typed], hints=SAME[alike])
        assert (foreign.scope.name == own.scope.name) is nobody
        for handle in (ADA, MAIL):
            assert foreign.resolve(handle) is None
            assert await foreign.read(bob, foreign.scope.name, [handle]) == {}
            assert str(handle) not in forms[0]
        assert foreign.handles == [Handle(LITERAL, 1), Handle(LITERAL, 2), Handle(LITERAL, 3)] or nobody
        # The name of the scope is no key to it either.
        if not nobody:
            with pytest.raises(NotFoundError):
                await gateway.begin(bob, [typed], hints=ScopeHints(named=own.scope.name))
            assert await gateway.vault.service.read(bob, own.scope.name, [ADA]) == {}


async def test_a_caller_without_the_role_gets_handles(database: Database, tenant: str) -> None:
    async with serving(database) as gateway:
        vault, _ = await gateway.turn(replace(user(tenant, "ada"), roles=frozenset({Role.INVOKER})), [FIRST])
        assert vault.resolve(ADA) is None


async def test_handles_come_back_in_a_history_and_literals_stay_literal(
    database: Database, tenant: str
) -> None:
    ada = user(tenant, "ada")
    async with serving(database) as gateway:
        texts = ["Is [PERSON_1] a name? Ask Ada Lovelace."]
        _, first = await gateway.turn(ada, texts)
        texts += ["Ada Lovelace says: no. See [PERSON_1].", "And [PERSON_2]? Bob Builder knows [PERSON_2]."]
        _, second = await gateway.turn(ada, texts)
        assert second[:1] == first
        assert second[2] == "And [LITERAL_2]? [PERSON_2] knows [LITERAL_2]."
        history = [FIRST, "[PERSON_1] wrote to [EMAIL_1]."]
        _, forms = await gateway.turn(ada, history, hints=ScopeHints(sessions=["s"]))
        assert forms[1] == "[LITERAL_1] wrote to [LITERAL_2]."  # nothing was known when it was typed
        _, begun = await gateway.turn(ada, history[:1], hints=ScopeHints(sessions=["t"]))
        vault, forms = await gateway.turn(ada, history, hints=ScopeHints(sessions=["t"]))
        assert forms == [*begun, "[PERSON_1] wrote to [EMAIL_1]."]
        assert vault.resolve(MAIL) == Original("ada@example.org")


async def test_a_handle_with_a_tag_is_restored_where_the_tag_is_its_own(
    database: Database, tenant: str
) -> None:
    ada = user(tenant, "ada")
    async with serving(database) as gateway:
        vault, _ = await gateway.turn(ada, [FIRST])
        names = [("PERSON", Original(name)) for name in ("Ada Lovelace", "Bob Builder")]
        options = VaultOptions(tagged=True)
        receipt = await vault.commit(ada, VaultWrite(vault.scope.name, names, options, lambda _: []))
        later = await gateway.begin(ada, [FIRST, "Bob Builder"])
        await later.commit(ada, VaultWrite(vault.scope.name, names, options, lambda _: []))
        (first, second), (_, ada_s), (_, bob_s) = receipt.handles, *names
        assert first.tag and second.tag and first.tag != second.tag
        for seen in (vault, later):
            assert [seen.resolve(handle) for handle in (first, second, ADA)] == [ada_s, bob_s, ada_s]
            for handle, tag in ((first, second.tag), (second, first.tag), (first, "0" * len(first.tag))):
                assert seen.resolve(Handle(handle.label, handle.ordinal, tag)) is None


async def test_an_id_leads_its_owner_to_what_the_conversation_met(database: Database, tenant: str) -> None:
    ada, bob = user(tenant, "ada"), user(tenant, "bob")
    async with serving(database) as gateway:
        vault, _ = await gateway.turn(ada, [FIRST])
        await gateway.scopes.bind(ada, vault.scope, "main", ["resp_1"], vault.handles)
        hints = ScopeHints(ids=["resp_1"])
        later, _ = await gateway.turn(ada, ["And now?"], hints=hints)
        assert (later.scope.name, later.scope.provider) == (vault.scope.name, "main")
        assert later.resolve(ADA) == Original("Ada Lovelace")
        # Another conversation in the same scope has met nothing of it.
        other, _ = await gateway.turn(ada, ["Hello."], hints=ScopeHints(first_user_text=FIRST))
        await gateway.scopes.bind(ada, other.scope, "main", ["resp_2"], other.handles)
        beside, _ = await gateway.turn(ada, ["[PERSON_1]?"], hints=ScopeHints(ids=["resp_2"]))
        assert (beside.scope.name, beside.resolve(ADA)) == (vault.scope.name, None)
        for caller, ids in ((bob, ["resp_1"]), (ada, ["resp_9"]), (ada, ["resp_1", "resp_9"])):
            with pytest.raises(NotFoundError, match="no such conversation"):
                await gateway.begin(caller, ["x"], hints=ScopeHints(ids=ids))
        await gateway.scopes.unbind(bob, ["resp_1"])
        assert await gateway.begin(ada, ["x"], hints=hints)
        await gateway.scopes.unbind(ada, ["resp_1"])
        with pytest.raises(NotFoundError):
            await gateway.begin(ada, ["x"], hints=hints)
        await gateway.vault.service.erase_scope(caller_of(tenant), vault.scope.name)
        with pytest.raises(NotFoundError):
            await gateway.begin(ada, ["x"], hints=ScopeHints(ids=["resp_2"]))


async def test_what_has_expired_is_removed(database: Database, tenant: str) -> None:
    ada, clock = user(tenant, "ada"), Clock()
    count = select(func.count()).select_from(gateway_binding).where(gateway_binding.c.tenant == tenant)
    async with serving(database, clock) as gateway:
        vault = await gateway.begin(ada, ["Hello."])
        await gateway.scopes.bind(ada, vault.scope, "main", ["resp_1"], [], ttl_s=60)
        await gateway.scopes.bind(ada, vault.scope, "main", ["resp_2"], [], ttl_s=6000)
        clock.ahead = timedelta(seconds=70)
        await gateway.vault.service.purge_expired()
        async with database.transaction(tenant, write=False) as tx:
            assert (await tx.execute(count)).scalar_one() == 1
        assert await gateway.begin(ada, ["x"], hints=ScopeHints(ids=["resp_2"]))
        with pytest.raises(NotFoundError):
            await gateway.begin(ada, ["x"], hints=ScopeHints(ids=["resp_1"]))


async def test_a_named_scope_is_its_makers_unless_the_policy_shares_it(
    database: Database, tenant: str
) -> None:
    ada, bob = user(tenant, "ada"), user(tenant, "bob")
    named, shared = ScopeHints(named="desk"), ScopeRules(shared=["desk"])
    async with serving(database) as gateway:
        await gateway.turn(ada, [FIRST], hints=named)
        with pytest.raises(NotFoundError):
            await gateway.begin(bob, ["x"], hints=named)
        vault, forms = await gateway.turn(bob, ["[PERSON_1]?"], hints=named, rules=shared)
        assert (forms, vault.resolve(ADA)) == (["[PERSON_1]?"], Original("Ada Lovelace"))
        # A scope that the tenant made without the gateway is the tenant's.
        await gateway.vault.store(ada, "team", "Ada Lovelace")
        vault, _ = await gateway.turn(bob, ["x"], hints=ScopeHints(named="team"))
        assert vault.resolve(ADA) == Original("Ada Lovelace")


async def test_the_stable_scope_is_the_same_for_all_and_restores_what_stands_there(
    database: Database, tenant: str
) -> None:
    rules, acme = ScopeRules(stable=True), Handle("ORGANIZATION", 1_000_001)
    async with serving(database) as gateway:
        forms = []
        for name in ("ada", "bob"):
            system = "You work for Acme Works."
            vault = await gateway.begin(user(tenant, name), [system, FIRST], rules=rules)
            forms.append(await gateway.redacted(vault, [system], vault.scope.stable or ""))
            assert await gateway.redacted(vault, [FIRST], vault.scope.name) == [
                "I am [PERSON_1], write to [EMAIL_1]."
            ]
            assert vault.resolve(acme) == Original("Acme Works")
        assert forms == [["You work for [ORGANIZATION_1000001]."]] * 2
        vault, forms[0] = await gateway.turn(user(tenant, "eve"), [f"Who is {acme}?"], rules=rules)
        assert (vault.resolve(acme), forms[0]) == (None, ["Who is [LITERAL_1]?"])
        with pytest.raises(NotFoundError):
            await gateway.begin(user(tenant, "eve"), ["x"], hints=ScopeHints(named=vault.scope.stable))


@pytest.mark.parametrize("erased", ["scope", "handle", "value"])
async def test_what_is_erased_or_expired_is_dropped_in_every_process(
    database: Database, tenant: str, erased: str
) -> None:
    ada, clock = user(tenant, "ada"), Clock()
    async with serving(database, clock) as gateway, serving(database, clock) as other:
        vault, _ = await gateway.turn(ada, [FIRST])
        elsewhere, _ = await other.turn(ada, [FIRST])
        assert elsewhere.resolve(ADA) == Original("Ada Lovelace")
        service, name = gateway.vault.service, vault.scope.name
        await {
            "scope": lambda: service.erase_scope(caller_of(tenant), name),
            "handle": lambda: service.erase_handle(caller_of(tenant), name, ADA),
            "value": lambda: service.erase_value(caller_of(tenant), "Ada Lovelace"),
        }[erased]()
        again = await other.begin(ada, ["x"], hints=ScopeHints(named=name))
        assert again.find_originals("I am Ada Lovelace.") == []
        assert (await gateway.begin(ada, ["x"])).find_originals("I am Ada Lovelace.") == []
        if erased == "handle":
            assert again.find_originals("ada@example.org")
        clock.ahead = timedelta(days=31)
        assert elsewhere.resolve(MAIL) is None
        assert (await other.begin(ada, ["x"])).find_originals("ada@example.org") == []


async def test_signed_blocks_come_back_in_their_conversation_alone(database: Database, tenant: str) -> None:
    ada, bob, clock = user(tenant, "ada"), user(tenant, "bob"), Clock()
    blocks = {"d1": b'{"type":"thinking","signature":"\xc3\xa9"}', "d2": b'{"type":"redacted_thinking"}'}
    async with serving(database, clock) as gateway:
        vault = await gateway.begin(ada, ["Hello."])
        await gateway.signed.keep(vault, blocks)
        await gateway.signed.keep(vault, blocks)
        again = await gateway.begin(ada, ["Hello."])
        assert await gateway.signed.fetch(again, ["d2", "d1", "d1"]) == blocks
        assert await gateway.signed.fetch(again, []) == {}
        strangers = [
            await gateway.begin(bob, ["Hello."]),
            await gateway.begin(ada, ["Another conversation."]),
        ]
        await gateway.signed.keep(strangers[1], {"d3": b"{}"})
        for stranger, digest in ((strangers[0], "d1"), (strangers[1], "d1"), (again, "d3"), (again, "d4")):
            with pytest.raises(SignedBlockGoneError):
                await gateway.signed.fetch(stranger, [digest])
        clock.ahead = timedelta(days=31)
        with pytest.raises(SignedBlockGoneError):
            await gateway.signed.fetch(again, ["d1"])
        clock.ahead = timedelta()
        await gateway.vault.service.erase_scope(caller_of(tenant), vault.scope.name)
        with pytest.raises(SignedBlockGoneError):
            await gateway.signed.fetch(again, ["d1"])


async def test_a_full_scope_takes_no_new_originals_and_keeps_the_others(
    database: Database, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_scopes, "MAX_ORIGINALS", 2)
    monkeypatch.setattr(request_vaults, "MAX_ORIGINALS", 2)
    ada, named = user(tenant, "ada"), ScopeHints(named="desk")
    async with serving(database) as gateway:
        await gateway.turn(ada, [FIRST], hints=named)
        _, forms = await gateway.turn(ada, [FIRST], hints=named)
        assert forms == ["I am [PERSON_1], write to [EMAIL_1]."]
        with pytest.raises(ScopeFullError, match="takes no new ones"):
            await gateway.turn(ada, [FIRST, "I am Bob Builder."], hints=named)


async def test_what_is_kept_stays_below_its_budget(database: Database, tenant: str) -> None:
    async with serving(database) as gateway:
        ada = user(tenant, "ada")
        for number in range(12):
            await gateway.turn(ada, [FIRST], hints=ScopeHints(sessions=[str(number)]))
        assert gateway.opened.size > 0
        each = gateway.opened.size // 12
        gateway.opened.budget = 3 * each + each // 2
        vault, _ = await gateway.turn(ada, [FIRST], hints=ScopeHints(sessions=["0"]))
        assert gateway.opened.size <= gateway.opened.budget
        assert vault.resolve(ADA) == Original("Ada Lovelace")


async def test_two_processes_look_for_what_either_of_them_stored(database: Database, tenant: str) -> None:
    ada, hints = user(tenant, "ada"), ScopeHints(sessions=["shared"])
    names = [f"Ada Lovelace{'abcdefgh'[number]}" for number in range(8)]
    async with serving(database) as here, serving(database) as there:
        for number, name in enumerate(names):
            if not number % 4:  # then both write to what they opened before the other wrote
                vaults = [await gateway.begin(ada, names, hints=hints) for gateway in (here, there)]
            vault = vaults[number % 2]
            write = VaultWrite(vault.scope.name, [("PERSON", Original(name))], VaultOptions(), lambda _: [])
            await vault.commit(ada, write)
        for gateway in (here, there):
            vault = await gateway.begin(ada, names, hints=hints)
            text = ", ".join(names)
            assert [text[match.start : match.end] for match in vault.find_originals(text)] == names
            assert not vault.find_originals("Ada Lovelacei")


async def test_an_earlier_text_that_leaves_in_another_form_is_counted_once(
    database: Database, tenant: str
) -> None:
    ada = user(tenant, "ada")
    async with serving(database) as gateway:
        counts = []
        for before, after in (
            (["Hi Zoe"], ["Hi Zoe"]),
            (["Hi Zoe", "I am Zoe"], ["Hi [PERSON_1]", "I am [PERSON_1]"]),
            (["Hi Zoe", "I am Zoe", "x"], ["Hi [PERSON_1]", "I am [PERSON_1]", "x"]),
        ):
            counts.append((await gateway.begin(ada, before)).count_changed(before, after))
        assert counts == [0, 1, 0]
        assert (await gateway.begin(user(tenant, "bob"), ["Hi Zoe"])).count_changed(
            ["Hi Zoe"], ["Hi Zoe"]
        ) == 0
