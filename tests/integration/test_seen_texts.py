"""What is remembered of texts that were scanned: bounded in bytes, and no longer than the scope lives."""

import pytest

from app.core.events import Changed
from app.services.gateway.seen_texts import SeenTexts
from app.services.vault.erasure import VAULT_CHANGED
from app.store.changes import EVERYTHING
from app.store.database import Database
from tests.factories import caller_of, open_vault

BUDGET = 200_000
ITEM = b'{"content":"Mail [PERSON_1]"}'


async def test_bytes_are_bounded_and_the_oldest_conversation_goes_first(
    database: Database, tenant: str
) -> None:
    seen = SeenTexts(database, budget=BUDGET)
    async with open_vault(database) as vault:
        for number in range(5):
            scope = f"talk-{number}"
            await vault.store(caller_of(tenant), scope, "Jane Smith")
            opened = await seen.open(tenant, scope)
            await seen.keep(opened, {f"{number}-{each}": ITEM * 1000 for each in range(2)})
            assert 0 < seen.size <= BUDGET
        left = [scope for scope in range(5) if (await seen.open(tenant, f"talk-{scope}")).items]
        assert left == [2, 3, 4]
        opened = await seen.open(tenant, "talk-4")
        roomy = SeenTexts(database)  # only the size of the item counts there
        opened = await roomy.open(tenant, "talk-4")
        await roomy.keep(opened, {"too large": b"x" * 2_000_000, "large": b"x" * 1_000_000})
        assert (await roomy.open(tenant, "talk-4")).items.keys() == {"large"}
        seen.hear(Changed(EVERYTHING))
        assert seen.size == 0


async def test_the_conversation_that_was_used_last_stays_longest(database: Database, tenant: str) -> None:
    seen = SeenTexts(database, budget=BUDGET)
    async with open_vault(database) as vault:
        for scope in ("read", "written", "idle"):
            await vault.store(caller_of(tenant), scope, "Jane Smith")
            await seen.keep(await seen.open(tenant, scope), {"first": ITEM * 1_500})
        opened = [await seen.open(tenant, scope) for scope in ("written", "idle", "read")]
        await seen.keep(opened[0], {"second": ITEM * 1_500})
        await vault.store(caller_of(tenant), "new", "Jane Smith")
        await seen.keep(await seen.open(tenant, "new"), {"first": ITEM * 1_500})
        names = ("read", "written", "idle", "new")
        assert [name for name in names if (await seen.open(tenant, name)).items] == ["read", "written", "new"]


async def test_an_item_counts_once_and_its_size_goes_with_the_scope(database: Database, tenant: str) -> None:
    seen = SeenTexts(database)
    async with open_vault(database) as vault:
        await seen.keep(await seen.open(tenant, "talk"), {"clean": None})
        clean = await seen.open(tenant, "talk")
        await vault.store(caller_of(tenant), "talk", "Jane Smith")
        await seen.keep(clean, {"hidden": ITEM})
        at_once = SeenTexts(database)
        await at_once.keep(await at_once.open(tenant, "talk"), {"clean": None, "hidden": ITEM})
        size = seen.size
        assert size == at_once.size
        await seen.keep(await seen.open(tenant, "talk"), {"hidden": ITEM, "clean": None})
        assert seen.size == size
        opened = await seen.open(tenant, "talk")
        assert opened.items == {"clean": None, "hidden": ITEM}
        await seen.keep(opened, {"more": None})
        assert seen.size > size
        seen.hear(Changed(VAULT_CHANGED, tenant, "talk"))
        assert seen.size == 0


async def test_what_was_scanned_for_an_erased_scope_is_not_kept_for_its_successor(
    database: Database, tenant: str
) -> None:
    """Another process erased it, and the news has not come yet."""
    seen = SeenTexts(database)
    async with open_vault(database) as vault:
        await vault.store(caller_of(tenant), "talk", "Jane Smith")
        opened = await seen.open(tenant, "talk")
        await vault.service.erase_scope(caller_of(tenant), "talk")
        await vault.store(caller_of(tenant), "talk", "John Doe")
        await seen.keep(opened, {"hidden": ITEM})
        assert (await seen.open(tenant, "talk")).items == {}


@pytest.mark.parametrize(
    ("kind", "whose", "name", "stays"),
    [
        (VAULT_CHANGED, "own", "talk", False),
        (VAULT_CHANGED, "own", None, False),
        (VAULT_CHANGED, "own", "another", True),
        (VAULT_CHANGED, "another", "talk", True),
        ("policy", "own", None, True),
    ],
)
async def test_a_change_drops_what_it_concerns_also_while_a_scan_runs(
    database: Database, tenant: str, kind: str, whose: str, name: str | None, stays: bool
) -> None:
    seen = SeenTexts(database)
    async with open_vault(database) as vault:
        await vault.store(caller_of(tenant), "talk", "Jane Smith")
        await seen.keep(await seen.open(tenant, "talk"), {"first": ITEM})
        opened = await seen.open(tenant, "talk")
        seen.hear(Changed(kind, tenant if whose == "own" else whose, name))
        assert ("first" in (await seen.open(tenant, "talk")).items) is stays
        await seen.keep(opened, {"second": ITEM})
        # After any change of the vault, what a scan brings that began before is not kept.
        kept = "second" in (await seen.open(tenant, "talk")).items
        assert kept is (kind != VAULT_CHANGED)


async def test_nothing_with_handles_is_kept_without_a_scope_and_clean_texts_are(
    database: Database, tenant: str
) -> None:
    seen = SeenTexts(database)
    async with open_vault(database) as vault:
        await seen.keep(await seen.open(tenant, "talk"), {"clean": None, "hidden": ITEM})
        opened = await seen.open(tenant, "talk")
        assert opened.items == {"clean": None}
        await vault.store(caller_of(tenant), "talk", "Jane Smith")
        await seen.keep(opened, {"hidden": ITEM})
        assert (await seen.open(tenant, "talk")).items == {"clean": None, "hidden": ITEM}
        await vault.service.erase_scope(caller_of(tenant), "talk")
        assert (await seen.open(tenant, "talk")).items == {}
