"""Whoever owns the database changes the record or its log: the verifier names what was done, and is silent else."""

# ruff: noqa: S608 - the statements are the test's own

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from app.core.errors import NotFoundError
from app.core.transparency.tiles import TILE_WIDTH
from app.services.audit.log_keys import LogKeyService
from app.services.audit.sealer import LogSealer
from app.services.audit.verification import LogVerifier
from tests.factories import with_schema
from tests.integration.tampered_log import main, tried
from tests.integration.tampering import SHORT, Tampered, tampered_on
from tests.integration.tampering_kinds import (
    KINDS,
    changed,
    deleted,
    forked,
    inserted,
    reordered,
    sealed_anew,
    tampered_tile,
)
from tests.sampling import SEED

ROUNDS = 100
TAMPERINGS = 5000
"""Of `make soak`, half of them on each engine."""


@pytest.fixture
async def sealed(module_url: str) -> AsyncIterator[Tampered]:
    async with tampered_on(module_url) as log:
        yield log


@pytest.mark.in_turn("module_url")
async def test_a_log_that_nobody_touched_holds(sealed: Tampered) -> None:
    result = await sealed.verify(anchors=[sealed.anchor])
    assert result.findings == []
    assert (result.tenants, result.events, result.anchors) == (2, 277, 1)
    assert result.checkpoints >= 3  # more where others' transactions held the sealer back


@pytest.mark.in_turn("module_url")
@pytest.mark.parametrize("tamper", KINDS, ids=lambda tamper: tamper.__name__)
async def test_what_was_done_is_named(sealed: Tampered, tamper: Callable[[Tampered], Awaitable[str]]) -> None:
    sealed.random = random.Random(f"{SEED} {tamper.__name__}")
    expected = await tamper(sealed)
    result = await sealed.verify(anchors=[sealed.anchor])
    assert expected in {finding.kind for finding in result.findings}, result.findings[:5]
    assert not result.holds
    assert await sealed.verify(part=TILE_WIDTH, anchors=[sealed.anchor]) == result


@pytest.mark.timeout(240, func_only=True)
@pytest.mark.parametrize("tamper", KINDS, ids=lambda tamper: tamper.__name__)
async def test_each_of_many_is_named(tamper: Callable[[Tampered], Awaitable[str]], tmp_path: Path) -> None:
    """A hundred times on a short record, whose verification takes milliseconds; before and after nothing is found."""
    async with tampered_on(with_schema(f"sqlite:///{tmp_path}/sluice.db"), SHORT) as log:
        assert (await log.verify(anchors=[log.anchor])).findings == []
        for number in range(ROUNDS):
            assert await tried(log, tamper, f"{SEED} {tamper.__name__} {number}") is None
        assert (await log.verify(anchors=[log.anchor])).findings == []


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_thousands_are_named(own_database_url: str, tmp_path: Path) -> None:
    done = await main(tmp_path, TAMPERINGS // 2, SEED, own_database_url)
    assert (done["overlooked"], done["false_alarms"]) == ([], [])
    print(f"{own_database_url.partition(':')[0]}: {done}")


@pytest.mark.in_turn("module_url")
async def test_one_changed_event_is_one_finding_that_names_it(sealed: Tampered) -> None:
    event = await sealed.event_of("acme")
    await sealed.do(f"UPDATE audit_event SET actor = '00000002' WHERE id = {event}")
    result = await sealed.verify()
    ((kind, tenant, place),) = [(made.kind, made.tenant, made.place) for made in result.findings]
    assert (kind, tenant) == ("changed", "acme")
    assert place.replace("-", "") == f"event {event.strip(chr(39))}".replace("-", "")


@pytest.mark.in_turn("module_url")
async def test_who_rewrites_everything_is_found_by_an_anchor_only(sealed: Tampered) -> None:
    await forked(sealed)
    assert (await sealed.verify()).holds
    result = await sealed.verify(anchors=[sealed.anchor])
    assert {finding.kind for finding in result.findings} == {"fork"}


@pytest.mark.in_turn("module_url")
async def test_a_key_that_the_owner_put_into_the_database_is_not_trusted(sealed: Tampered) -> None:
    """A verifier who brings the public key does not ask the database for it."""
    ((key, _),) = await LogKeyService.over(sealed.replica.audit).public()
    await sealed.do("DELETE FROM installation WHERE name = 'audit_log_keys'")
    await sealed_anew(sealed)
    assert (await sealed.verify()).holds
    result = await LogVerifier(sealed.replica.audit, trusted=[key]).verify()
    assert {finding.kind for finding in result.findings} == {"bad_signature"}


@pytest.mark.in_turn("module_url")
async def test_one_tenant_is_verified_alone(sealed: Tampered) -> None:
    await changed(sealed)
    assert (await sealed.verify(tenant="borealis")).holds
    assert not (await sealed.verify(tenant="acme")).holds
    with pytest.raises(NotFoundError):
        await sealed.verify(tenant="nobody")


@pytest.mark.in_turn("module_url")
async def test_several_processes_find_the_same(sealed: Tampered) -> None:
    """The owner changes, deletes and inserts in several parts of the log at once; the record is whole at first."""
    whole = await sealed.verify(processes=2, part=TILE_WIDTH, anchors=[sealed.anchor])
    assert whole == await sealed.verify(anchors=[sealed.anchor])
    assert (whole.findings, whole.events) == ([], 277)
    sealed.random = random.Random(SEED)
    expected = {await tamper(sealed) for tamper in (changed, deleted, reordered, inserted, tampered_tile)}
    for position in (2, 260):
        await sealed.do(
            "UPDATE audit_event SET outcome = 'refused' WHERE id IN "
            f"(SELECT event FROM log_leaf WHERE tenant = 'acme' AND position = {position})"
        )
    result = await sealed.verify(processes=2, part=TILE_WIDTH, anchors=[sealed.anchor])
    assert result == await sealed.verify(anchors=[sealed.anchor])
    assert expected <= {finding.kind for finding in result.findings}


@pytest.mark.in_turn("module_url")
async def test_the_first_event_behind_a_look_through_the_record_waits_for_the_sealer(
    sealed: Tampered,
) -> None:
    await sealed.do("DELETE FROM installation WHERE name = 'audit_log_sealed'")
    await LogSealer.over(sealed.replica.audit).seal()
    await sealed.record("acme", 1)
    result = await sealed.verify()
    assert (result.findings, result.waiting) == ([], 1)


@pytest.mark.in_turn("module_url")
async def test_a_row_that_nobody_could_have_written_is_named(sealed: Tampered) -> None:
    event = await sealed.event_of("acme")
    wrong = {"counts": "'[1]'", "details": "'7'", "roles": "'{}'"}
    if not sealed.postgres:  # whose columns take any type
        wrong |= {"counts": "'no JSON'", "writer_seq": "'x'", "actor": "x'00ff'", "blocks": "1.5"}
    for column, value in wrong.items():
        await sealed.do(f"UPDATE audit_event SET {column} = {value} WHERE id = {event}")
        assert "changed" in {finding.kind for finding in (await sealed.verify()).findings}, column
        await sealed.restore()
