"""A database that poses as a streaming replica of another one of the same server.

Functions of its own, which its search path puts in front of PostgreSQL's, say that it recovers, and how far it is.
What it holds is up to the test.
"""

from sqlalchemy import make_url

from tests.conftest import connect

POSE = """
CREATE SCHEMA posing;
CREATE TABLE posing.state (recovers boolean, system bigint, behind bigint);
CREATE SEQUENCE posing.asked;
INSERT INTO posing.state SELECT true, system_identifier, 0 FROM pg_control_system();
CREATE FUNCTION posing.pg_is_in_recovery() RETURNS boolean LANGUAGE sql SECURITY DEFINER
    AS 'SELECT recovers FROM posing.state';
CREATE FUNCTION posing.pg_control_system(OUT system_identifier bigint) LANGUAGE sql SECURITY DEFINER
    AS 'SELECT system FROM posing.state';
CREATE FUNCTION posing.pg_last_wal_replay_lsn() RETURNS pg_lsn LANGUAGE sql SECURITY DEFINER AS $$
    SELECT CASE WHEN nextval('posing.asked') <= behind THEN '0/0'::pg_lsn ELSE pg_current_wal_flush_lsn() END
    FROM posing.state
$$;
GRANT USAGE ON SCHEMA posing TO PUBLIC;
"""
"""It has what the primary wrote once it was asked ``behind`` times."""


class Posing:
    """A database that poses as a replica."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = make_url(url).database

    @classmethod
    async def on(cls, url: str) -> "Posing":
        """Let a migrated database pose."""
        replica = cls(url)
        await replica.run(POSE)
        await replica.run(f'ALTER DATABASE "{replica.name}" SET search_path = posing, pg_catalog, public')
        return replica

    async def run(self, statements: str) -> None:
        connection = await connect(self.url)
        try:
            await connection.execute(statements)
        finally:
            await connection.close()

    async def be(self, state: str) -> None:
        """Change what it says of itself, and forget how often it was asked."""
        await self.run(f"UPDATE posing.state SET {state}; SELECT setval('posing.asked', 1, false)")  # noqa: S608
