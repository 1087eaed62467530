"""What whoever owns the database may do to a sealed record: each returns the kind of finding that must name it."""

# ruff: noqa: S608 - the statements are the test's own

from app.core.transparency.notes import Checkpoint, Note
from app.engines.signing import SigningKey
from tests.integration.tampering import LOG, TENANTS, Tampered


async def changed(log: Tampered) -> str:
    column, value = log.random.choice(
        [("actor", "'00000002'"), ("outcome", "'refused'"), ("action", "'nothing'"), ("duration_us", "7")]
    )
    await log.do(f"UPDATE audit_event SET {column} = {value} WHERE id = {await log.event_of('acme')}")
    return "changed"


async def deleted(log: Tampered) -> str:
    await log.do(f"DELETE FROM audit_event WHERE id = {await log.event_of('acme')}")
    return "missing"


async def deleted_before_sealing(log: Tampered) -> str:
    event = await recorded_and_deleted(log)
    await log.seal()
    assert not await log.do(f"SELECT 1 FROM log_leaf WHERE event = '{event}'")
    (gaps,) = await log.do("SELECT count(*) FROM audit_event WHERE action = 'audit.gap'")
    assert gaps[0] == 1
    return "gap"


async def gap(log: Tampered) -> str:
    """Delete before sealing, and make the sealer believe that it has seen the number."""
    await log.record("acme", 1)
    await log.seal()
    await recorded_and_deleted(log, of=2)
    await log.do("UPDATE log_writer SET number = number + 1 WHERE number = 1 AND tenant = 'acme'")
    await log.seal()
    assert not await log.do("SELECT 1 FROM audit_event WHERE action = 'audit.gap'")
    return "gap"


async def recorded_and_deleted(log: Tampered, of: int = 0) -> str:
    """Record some events and delete one before it is sealed, of ``of`` the first, but never the last."""
    before = {row[0] for row in await log.do("SELECT id FROM audit_event")}
    count = of or log.random.randrange(2, 6)
    await log.record("acme", count)
    made = [row[0] for row in await log.do("SELECT id FROM audit_event ORDER BY id") if row[0] not in before]
    event = made[0 if of else log.random.randrange(count - 1)]
    await log.do(f"DELETE FROM audit_event WHERE id = '{event}'")
    return str(event)


async def deleted_with_its_leaf(log: Tampered) -> str:
    event = await log.event_of("acme")
    await log.do(f"DELETE FROM audit_event WHERE id = {event}")
    await log.do(f"DELETE FROM log_leaf WHERE event = {event}")
    return "missing"


async def inserted(log: Tampered) -> str:
    columns = await log.columns()
    made = {"id": "gen_random_uuid()" if log.postgres else "lower(hex(randomblob(16)))"}
    made["at"] = "at - interval '1 hour'" if log.postgres else "datetime(at, '-1 hour') || '.000000'"
    values = ", ".join(made.get(name, name) for name in columns)
    event = await log.event_of("acme")
    await log.do(
        f"INSERT INTO audit_event ({', '.join(columns)}) SELECT {values} FROM audit_event WHERE id = {event}"
    )
    return "inserted"


async def put_behind_the_end(log: Tampered) -> str:
    event = await log.event_of("acme")
    await log.do(
        f"UPDATE log_leaf SET position = {log.size} WHERE tenant = 'acme' AND event = {event}"
        if log.random.random() < 0.5
        else f"INSERT INTO log_leaf SELECT 'acme', {log.size}, event, at FROM log_leaf "
        "WHERE tenant = 'borealis' AND position = 0"
    )
    return "inserted"


async def cut_by_one_head(log: Tampered) -> str:
    size = (await log.do("SELECT size FROM log_head WHERE tenant = '*'"))[0][0]
    await log.do(f"DELETE FROM log_checkpoint WHERE size = {size}")
    await log.do(f"DELETE FROM log_entry WHERE position = {size - 1}")
    await log.do(f"UPDATE log_head SET size = {size - 1} WHERE tenant = '*'")
    return "rolled_back"


async def reordered(log: Tampered) -> str:
    first, second = log.random.sample(range(log.size - 8), 2)
    for source, target in ((first, 10**6), (second, first), (10**6, second)):
        await log.do(f"UPDATE log_leaf SET position = {target} WHERE tenant = 'acme' AND position = {source}")
    return "reordered"


async def truncated(log: Tampered) -> str:
    size = log.size - 5
    await log.do(
        "DELETE FROM audit_event WHERE tenant = 'acme' AND id IN "
        f"(SELECT event FROM log_leaf WHERE tenant = 'acme' AND position >= {size})"
    )
    await log.do(f"DELETE FROM log_leaf WHERE tenant = 'acme' AND position >= {size}")
    await log.do(f"UPDATE log_head SET size = {size} WHERE tenant = 'acme'")
    return "rolled_back"


async def rolled_back(log: Tampered) -> str:
    await log.do("DELETE FROM log_checkpoint WHERE size > 2")
    await log.do("DELETE FROM log_entry WHERE position >= 2")
    await log.do("DELETE FROM log_leaf WHERE position >= 3")
    await log.do("DELETE FROM audit_event WHERE id NOT IN (SELECT event FROM log_leaf)")
    await log.do("UPDATE log_head SET size = 2 WHERE tenant = '*'")
    return "rolled_back"


async def sealed_anew(log: Tampered) -> None:
    """Forget the log and seal what is in the record now, until it has as many heads as the anchor's."""
    for table in LOG:
        await log.do(f"DELETE FROM {table}")
    log.restart()
    await log.do("DELETE FROM installation WHERE name = 'audit_log_sealed'")
    await log.seal()
    anchored = Checkpoint.parse(Note.parse(log.anchor).text).size
    while (await log.do("SELECT count(*) FROM log_entry"))[0][0] < anchored:
        for tenant in TENANTS:  # each sealing gives every tenant with something new a head
            await log.record(tenant, 1)
        await log.seal()


async def forked(log: Tampered) -> str:
    """Write another history, and seal it with the log's own key; a writer's newest event is missed by no number."""
    await log.do(
        "DELETE FROM audit_event WHERE tenant = 'acme' AND writer_seq = "
        "(SELECT max(writer_seq) FROM audit_event WHERE tenant = 'acme')"
    )
    await sealed_anew(log)
    return "fork"


async def forged_signature(log: Tampered) -> str:
    note = Note.parse(await log.checkpoint())
    (made,) = note.signatures
    at = log.random.randrange(64)
    forged = bytearray(made.signature)
    forged[at] ^= 1 << log.random.randrange(8)
    text_ = str(Note(note.text, (made._replace(signature=bytes(forged)),)))
    await log.do(f"UPDATE log_checkpoint SET note = '{text_}' WHERE note = '{note}'")
    return "bad_signature"


async def foreign_key(log: Tampered) -> str:
    note = await log.checkpoint()
    parsed = Note.parse(note)
    forged = SigningKey.create(parsed.signatures[0].name).signed(parsed.text)
    await log.do(f"UPDATE log_checkpoint SET note = '{forged}' WHERE note = '{note}'")
    return "bad_signature"


async def replayed_checkpoint(log: Tampered) -> str:
    rows = await log.do("SELECT size, note FROM log_checkpoint ORDER BY size")
    await log.do(f"UPDATE log_checkpoint SET note = '{rows[0][1]}' WHERE size = {rows[-1][0]}")
    return "bad_checkpoint"


async def unreadable_checkpoint(log: Tampered) -> str:
    note = await log.checkpoint()
    broken = log.random.choice(["", "x", note.replace("\n\n", "\n"), note.partition("\n")[2]])
    await log.do(f"UPDATE log_checkpoint SET note = '{broken}' WHERE note = '{note}'")
    return "bad_checkpoint"


async def tampered_tile(log: Tampered) -> str:
    rows = await log.do("SELECT log, level, number, hashes FROM log_tile")
    name, level, number, hashes = log.random.choice(rows)
    forged = bytearray(hashes)
    forged[log.random.randrange(len(forged))] ^= 1
    literal = f"'\\x{forged.hex()}'" if log.postgres else f"x'{forged.hex()}'"
    await log.do(
        f"UPDATE log_tile SET hashes = {literal} WHERE log = '{name}' AND level = {level} AND number = {number}"
    )
    return "bad_tile"


KINDS = (
    *(changed, deleted, deleted_with_its_leaf, inserted, put_behind_the_end, reordered),
    *(deleted_before_sealing, gap, cut_by_one_head, truncated, rolled_back, forked),
    *(forged_signature, foreign_key, replayed_checkpoint, unreadable_checkpoint, tampered_tile),
)
