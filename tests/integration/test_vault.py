"""The vault gives each value one handle, and gives it back to its own tenant, whole and in time only."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from app.core.access import Role
from app.core.audit import AuditEvent
from app.core.content.handles import Handle, Original
from app.core.contracts.middleware import VaultOptions
from app.core.errors import ForbiddenError, InvalidArgumentsError, NotFoundError
from app.services.audit.audit import AuditQuery
from app.services.vault.vault import VaultReceipt, VaultWrite
from app.store.database import Database
from tests.factories import as_owner, caller_of, open_vault

CANONICAL, TAGGED = VaultOptions(canonical=True), VaultOptions(tagged=True)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.time = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.time


async def test_a_stored_value_comes_back_under_its_handle(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, None, "Ada", ("EMAIL", "ada@example.com"), "Ada", "Bob")
        names = [handle.name for handle in receipt.handles]
        assert names == ["PERSON_1", "EMAIL_1", "PERSON_1", "PERSON_2"]
        texts = await vault.texts(caller, receipt.scope, receipt.handles)
    assert texts == ["Ada", "ada@example.com", "Ada", "Bob"]


async def test_a_value_keeps_its_handle_over_turns_restarts_and_replicas(
    database: Database, database_url: str, tenant: str
) -> None:
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        for turn in range(20):
            receipt = await vault.store(caller, "talk", "Ada", f"friend {turn % 7}")
            assert receipt.handles[0] == Handle("PERSON", 1)
    replica = Database(database_url)
    async with open_vault(replica) as vault:
        assert (await vault.store(caller, "talk", "friend 3", "Ada")).handles == [
            Handle("PERSON", 5),
            Handle("PERSON", 1),
        ]
    await replica.close()


async def test_values_that_differ_in_a_byte_get_different_handles(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    values = [
        "Jos\u00e9",
        "Jose\u0301",
        "jos\u00e9",
        "Jos\u00e9 ",
        "\ud83d",
        "\ud83d\ude00",
        "\U0001f600",
        "'; --",
        "\x00",
    ]
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, "talk", *values)
        assert len(set(receipt.handles)) == len(values)
        assert await vault.texts(caller, "talk", receipt.handles) == values


async def test_spelling_inside_json_is_part_of_a_value(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    plain, spelled = Original("Jos\u00e9"), Original("Jos\u00e9", "Jos\\u00e9", 1)
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, "talk", ("PERSON", plain), ("PERSON", spelled))
        found = await vault.service.read(caller, "talk", receipt.handles)
    assert [found[handle] for handle in receipt.handles] == [plain, spelled]


async def test_canonical_values_share_a_handle_and_literals_never_do(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, "talk", "Ada  Lovelace", "ADA lovelace", options=CANONICAL)
        assert receipt.handles[0] == receipt.handles[1]
        assert await vault.texts(caller, "talk", receipt.handles[:1]) == ["Ada  Lovelace"]
        literal = await vault.store(
            caller, "talk", ("LITERAL", "[a_1]"), ("LITERAL", "[A_1]"), options=CANONICAL
        )
        assert literal.handles[0] != literal.handles[1]
        exact = await vault.store(caller, "talk", "Ada  Lovelace")
        assert exact.handles[0] != receipt.handles[0]


async def test_a_tagged_handle_never_names_another_value(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        (handle,) = (await vault.store(caller, "talk", "Ada", options=TAGGED)).handles
        assert handle.tag is not None
        forged = Handle("PERSON", 1, "aaaa" if handle.tag != "aaaa" else "bbbb")
        assert await vault.texts(caller, "talk", [handle, forged]) == ["Ada", None]
        assert (await vault.store(caller, "talk", "Ada", options=TAGGED)).handles == [handle]


async def test_unknown_foreign_and_strange_names_look_the_same(database: Database, tenant: str) -> None:
    caller, stranger = caller_of(tenant), caller_of(f"{tenant}-x")
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, "talk", "Ada")
        assert await vault.texts(stranger, "talk", receipt.handles) == [None]
        assert await vault.texts(caller, "walk", receipt.handles) == [None]
        assert await vault.texts(caller, "a\x00b", receipt.handles) == [None]
        assert await vault.texts(caller, "talk", [Handle("PERSON", 2), Handle("EMAIL", 1)]) == [None, None]
        assert await vault.service.known(caller, "talk", [*receipt.handles, Handle("PERSON", 2)]) == set(
            receipt.handles
        )


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "\x00", "\ud800"])
async def test_a_scope_needs_a_printable_name(database: Database, tenant: str, name: str) -> None:
    async with open_vault(database) as vault:
        with pytest.raises(InvalidArgumentsError, match="A scope's name"):
            await vault.store(caller_of(tenant), name, "Ada")


async def test_a_write_of_nothing_is_recorded_and_makes_no_scope(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, None)
        assert (receipt.handles, len(receipt.scope)) == ([], 32)
        assert (await vault.service.list_scopes(caller)).items == []
        assert len((await vault.audit.query(caller, AuditQuery())).items) == 1


async def test_an_event_that_fails_undoes_its_write_and_no_other(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)

    def broken(_receipt: VaultReceipt) -> Sequence[AuditEvent]:
        raise KeyError("a bug")

    write = VaultWrite("broken", [("PERSON", Original("Eve"))], VaultOptions(), broken)
    async with open_vault(database) as vault:
        good, bad, also = await asyncio.gather(
            vault.store(caller, "one", "Ada"),
            vault.service.commit(caller, write),
            vault.store(caller, "two", "Bob"),
            return_exceptions=True,
        )
        assert isinstance(bad, KeyError)
        assert isinstance(good, VaultReceipt)
        assert isinstance(also, VaultReceipt)
        assert [item.id for item in (await vault.service.list_scopes(caller)).items] == ["one", "two"]


async def test_a_scope_ends_at_once_and_its_ordinals_never_come_back(database: Database, tenant: str) -> None:
    caller, clock = caller_of(tenant), Clock()
    async with open_vault(database, now=clock) as vault:
        receipt = await vault.store(caller, "talk", "Ada", "Bob", ttl_s=60)
        clock.time += timedelta(seconds=59)
        assert await vault.texts(caller, "talk", receipt.handles) == ["Ada", "Bob"]
        clock.time += timedelta(seconds=2)
        assert await vault.texts(caller, "talk", receipt.handles) == [None, None]
        again = await vault.store(caller, "talk", "Eve")
        assert again.handles == [Handle("PERSON", 3)]
        assert await vault.texts(caller, "talk", [*receipt.handles, *again.handles]) == [None, None, "Eve"]


async def test_a_purge_deletes_ciphertext_and_keeps_counters(database: Database, tenant: str) -> None:
    caller, clock = caller_of(tenant), Clock()
    async with open_vault(database, now=clock) as vault:
        for number in range(5):
            await vault.store(caller, f"talk {number}", "Ada", ttl_s=60)
        await vault.store(caller, "lasting", "Ada", ttl_s=6000)
        clock.time += timedelta(seconds=61)
        assert await vault.service.purge_expired() >= 5
        assert await vault.service.purge_expired() == 0
        async with database.transaction(tenant, write=False) as tx:
            left = await tx.execute(text("SELECT DISTINCT scope FROM entry WHERE tenant = :t"), {"t": tenant})
            assert [row.scope for row in left] == ["lasting"]
        assert (await vault.store(caller, "talk 0", "Ada")).handles == [Handle("PERSON", 2)]


async def test_a_life_beyond_reason_is_refused(database: Database, tenant: str) -> None:
    async with open_vault(database) as vault:
        for ttl_s in (0, -1, 10**12):
            with pytest.raises(InvalidArgumentsError, match="A scope lives for"):
                await vault.store(caller_of(tenant), "talk", "Ada", ttl_s=ttl_s)


async def test_an_expiry_can_be_moved_and_is_on_record(database: Database, tenant: str) -> None:
    caller, clock = caller_of(tenant), Clock()
    async with open_vault(database, now=clock) as vault:
        receipt = await vault.store(caller, "talk", "Ada", ttl_s=60)
        kept = await vault.service.set_expiry(caller, "talk", None)
        assert kept.expires is None
        clock.time += timedelta(days=4000)
        assert await vault.texts(caller, "talk", receipt.handles) == ["Ada"]
        await vault.service.set_expiry(caller, "talk", clock.time)
        assert await vault.texts(caller, "talk", receipt.handles) == [None]
        with pytest.raises(NotFoundError):
            await vault.service.set_expiry(caller, "talk", None)
        actions = [event.action for event in (await vault.audit.query(caller, AuditQuery())).items]
        assert actions.count("vault.set_expiry") == 3


async def test_a_row_moved_or_changed_in_the_database_does_not_decrypt(
    database: Database, tenant: str
) -> None:
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, "talk", "Ada", "Bob", "Eve")
        for statement in (
            (
                "UPDATE entry SET ciphertext = (SELECT ciphertext FROM entry WHERE tenant = :t AND ordinal = 3) "
                "WHERE tenant = :t AND ordinal = 1"
            ),
            "UPDATE entry SET ciphertext = :junk WHERE tenant = :t AND ordinal = 2",
        ):
            await as_owner(database, statement, t=tenant, junk=b"\x01" + bytes(60))
        assert await vault.texts(caller, "talk", receipt.handles) == [None, None, "Eve"]


async def test_entries_show_originals_to_restorers_only(database: Database, tenant: str) -> None:
    caller, operator = caller_of(tenant), caller_of(tenant, Role.OPERATOR)
    async with open_vault(database) as vault:
        await vault.store(caller, "talk", *[f"name {number}" for number in range(5)], ("EMAIL", "a@b.c"))
        page = await vault.service.entries(operator, "talk", limit=4)
        assert [item.handle.name for item in page.items] == ["EMAIL_1", "PERSON_1", "PERSON_2", "PERSON_3"]
        assert {item.original for item in page.items} == {None}
        rest = await vault.service.entries(operator, "talk", limit=4, cursor=page.next)
        assert ([item.handle.name for item in rest.items], rest.next) == (["PERSON_4", "PERSON_5"], None)
        with pytest.raises(ForbiddenError):
            await vault.service.entries(operator, "talk", originals=True)
        shown = await vault.service.entries(caller_of(tenant, Role.RESTORER), "talk", originals=True)
        assert [item.original for item in shown.items][:2] == ["a@b.c", "name 0"]
        scope = await vault.service.get_scope(operator, "talk")
        assert scope.counts == {"PERSON": 5, "EMAIL": 1}


async def test_scopes_are_listed_page_by_page(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    async with open_vault(database) as vault:
        for number in range(7):
            await vault.store(caller, f"talk {number}", "Ada")
        first = await vault.service.list_scopes(caller, limit=4)
        second = await vault.service.list_scopes(caller, limit=4, cursor=first.next)
        assert [item.id for item in (*first.items, *second.items)] == [
            f"talk {number}" for number in range(7)
        ]
        assert second.next is None
        with pytest.raises(ForbiddenError):
            await vault.service.list_scopes(caller_of(tenant, Role.INVOKER))


async def test_ten_thousand_values_go_in_one_write(database: Database, tenant: str) -> None:
    caller = caller_of(tenant)
    values = [f"name {number}" for number in range(10_000)]
    async with open_vault(database) as vault:
        receipt = await vault.store(caller, "talk", *values)
        assert await vault.texts(caller, "talk", receipt.handles) == values
