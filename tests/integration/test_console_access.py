"""Keys in the console: made with a secret that is shown once, approved by other hands, revoked."""

import html
import re
from collections.abc import AsyncIterator

import pytest

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.services.access.access import HOST
from app.services.audit.counts import AuditCounts
from app.store.vault.serving_processes import remove_process
from tests.integration.console_app import Console, open_console, text_of
from tests.integration.sealing import seal_all

pytestmark = pytest.mark.in_turn("database_url")

PAGE = "/console/access"
SECRET = re.compile(r"slc_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url) as opened:
        yield opened


async def test_a_key_is_shown_once_and_works(console: Console) -> None:
    name = "<b>chat</b>"
    async with console.browsing(Role.KEY_CUSTODIAN) as browser:
        await browser.open(PAGE)
        form = {"name": name, "days": "90", "cidrs": "127.0.0.0/8, 10.0.0.0/8", "role-invoker": "on"}
        made = await browser.send(PAGE, form)
        (key,) = set(SECRET.findall(made.text))
        assert name not in made.text
        assert html.escape(name) in made.text
        assert made.headers["cache-control"] == "no-store"
        again = await browser.open(PAGE)
        assert not SECRET.findall(again.text)
        assert "from 10.0.0.0/8" in text_of(again)
    async with console.browsing() as browser:
        assert (await browser.sign_in(key)).status_code == 303


async def test_a_key_that_restores_waits_for_another_custodian(console: Console) -> None:
    access, tenant = console.rest.services.access, console.rest.tenant
    maker = await access.create_key(HOST, [Role.KEY_CUSTODIAN], tenant=tenant, name="maker")
    other = await access.create_key(HOST, [Role.KEY_CUSTODIAN], tenant=tenant, name="other")
    async with console.browsing() as first, console.browsing() as second:
        await first.sign_in(str(maker.key))
        await first.open(PAGE)
        made = await first.send(PAGE, {"name": "back", "days": "", "role-restorer": "on"})
        assert "has no effect until another key custodian approves it" in text_of(made)
        key_id = SECRET.findall(made.text)[0].split("_")[1]
        await first.open(PAGE)
        own = await first.send(f"{PAGE}/{key_id}/approve")
        assert own.status_code == 403
        await second.sign_in(str(other.key))
        home = await second.open("/console/")
        assert "It waits for the role restorer" in text_of(home)
        await second.open(PAGE)
        assert (await second.send(f"{PAGE}/{key_id}/approve")).status_code == 303
        assert "restorer waits" not in text_of(await second.open(PAGE))
        assert (await second.send(f"{PAGE}/{key_id}/revoke")).status_code == 303
        assert "revoked" in text_of(await second.open(PAGE))


@pytest.mark.parametrize(
    "form",
    [
        {"name": "none", "days": ""},
        {"name": "both", "days": "", "role-operator": "on", "role-restorer": "on"},
        {"name": "nose", "days": "", "role-nose": "on"},
        {"name": "days", "days": "7000000000", "role-invoker": "on"},
        {"name": "net", "days": "", "cidrs": "10.0.0.1/8", "role-invoker": "on"},
    ],
)
async def test_a_key_that_may_not_be_is_refused_with_the_reason(
    console: Console, form: dict[str, str]
) -> None:
    async with console.browsing(Role.KEY_CUSTODIAN) as browser:
        await browser.open(PAGE)
        answer = await browser.send(PAGE, form)
        assert (answer.status_code, answer.headers["x-request-id"] in answer.text) == (422, True)
        assert not SECRET.findall(answer.text)


async def test_only_custodians_see_keys(console: Console) -> None:
    key = await console.rest.key(Role.INVOKER)
    async with console.browsing(Role.AUDITOR) as browser:
        assert PAGE not in (await browser.open("/console/")).text
        assert (await browser.open(PAGE)).status_code == 403
        await browser.open("/console/")
        for path in (PAGE, f"{PAGE}/{key.split('_')[1]}/revoke", f"{PAGE}/{key.split('_')[1]}/approve"):
            assert (
                await browser.send(path, {"name": "x", "days": "", "role-invoker": "on"})
            ).status_code == 403
    async with console.browsing() as browser:
        assert (await browser.sign_in(key)).status_code == 303


async def test_a_key_says_on_which_day_it_was_used_last(console: Console) -> None:
    access, audit = console.rest.services.access, console.rest.vault.audit
    tenant, today = console.rest.tenant, access.now().date()
    used = (await access.create_key(HOST, [Role.INVOKER], tenant=tenant, name="used")).key.id
    idle = (await access.create_key(HOST, [Role.INVOKER], tenant=tenant, name="idle")).key.id
    caller = Caller(tenant, used, frozenset({Role.INVOKER}))
    await audit.record(audit.new_event(caller, "middleware.invoke", "ok", None))
    await seal_all(audit)
    await AuditCounts(audit).count()
    shown = await console.rest.call("GET", "/api/v1/keys/usage", roles=[Role.KEY_CUSTODIAN])
    days = {row["key_id"]: row["last_used"] for row in shown.json()["items"]}
    assert (days[used], days[idle]) == (today.isoformat(), None)
    async with console.browsing(Role.KEY_CUSTODIAN) as browser:
        text = text_of(await browser.open(PAGE))
    assert today.isoformat() in text
    assert "not in 90 days" in text
    assert "Key ring" not in text


async def test_the_key_ring_is_shown_to_custodians_of_the_installation(console: Console) -> None:
    keyring = console.rest.services.vault.keyring
    await keyring.announce()
    try:
        foreign = await console.rest.call("GET", "/api/v1/vault/key-ring", roles=[Role.KEY_CUSTODIAN])
        assert foreign.status_code == 403
        ring = await console.rest.call(
            "GET", "/api/v1/vault/key-ring", roles=[Role.KEY_CUSTODIAN], tenant=SYSTEM_TENANT
        )
        assert ring.status_code == 200, ring.text
        held = {process["id"]: process["versions"] for process in ring.json()["processes"]}
        assert held[keyring.process] == sorted(keyring.provider.versions)
        assert ring.json()["active"] == keyring.provider.active
        key = await console.rest.key(Role.KEY_CUSTODIAN, tenant=SYSTEM_TENANT)
        async with console.browsing() as browser:
            await browser.sign_in(key)
            text = text_of(await browser.open(PAGE))
        assert f"version {keyring.provider.active}, active" in text
        assert keyring.process in text
    finally:
        async with keyring.database.system_transaction() as tx:
            await remove_process(tx, [keyring.process])
