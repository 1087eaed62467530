"""What the settings say of places outside: databases, marks, anchors, folders, and servers behind this one."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from ipaddress import ip_network
from typing import Final

from app.core.archive import EventArchive
from app.core.catalog.tool_filter import ExposedTools, parse_filters
from app.core.contracts.anchors import Anchor
from app.core.contracts.sinks import Sink
from app.core.errors import StoreUnavailableError
from app.engines.anchors.choosing import anchor_of
from app.engines.sinks.choosing import sink_of
from app.services.access.directory import Directory
from app.services.access.shared_rates import TIMEOUT_S, SharedRates, recorded
from app.services.audit.audit import AuditService
from app.services.catalog.description_files import DescriptionFiles
from app.services.invoke.remote_middlewares import RemoteMiddlewares
from app.services.servers.tenant_upstreams import UpstreamRules
from app.services.vault.mark import MarkKeeper
from app.services.vault.replay import ReplayService
from app.services.vault.vault import VaultService
from app.settings import ConfigurationError, Settings
from app.store.access.directory import find_key_place
from app.store.database import Database
from app.store.dialects import Patience, UnsafeDatabaseError, address_of
from app.store.failures import StatementRefusedError
from app.store.vault.erasure_files import ErasureFile, ErasurePlace, SharedErasures
from app.store.vault.mark_files import MarkFolder, MarkStore
from app.upstream.connection import AggregatorOptions, Connection

_SINK_EXTRAS: Final = {
    "obstore": ("a place in S3", "s3"),
    "google": ("a receiver of OTLP", "otel"),
    "confluent_kafka": ("a topic of Kafka", "kafka"),
    "opentelemetry": ("a receiver of OTLP", "otel"),
}
"""What a sink is and which extra it needs, by the package that is missing without it."""

log = logging.getLogger("sluice.start")


@asynccontextmanager
async def checked_database(settings: Settings) -> AsyncIterator[Database]:
    """Open the database for a while, and see first that it may serve."""
    async with _database(settings) as database:
        await database.check(production=settings.environment == "production")
        yield database


@asynccontextmanager
async def shard_directory(settings: Settings) -> AsyncIterator[Directory | None]:
    """Open the directory of the shards for a while; None where this database is the only one.

    A directory that does not answer stops no shard: only who makes tenants and keys needs it.
    """
    section = settings.directory
    if section.url is None or section.shard is None:
        yield None
        return
    url = section.url.get_secret_value()
    if address_of(url) == address_of(settings.database.owner_url):
        raise ConfigurationError(
            ["SLUICE_DIRECTORY__URL names the database of this shard: give the directory one of its own."]
        )
    async with Database(url, pool_size=2, patience=_patience(settings)) as database:
        try:
            await database.check(production=settings.environment == "production")
            async with database.system_transaction(write=False) as tx:
                await find_key_place(tx, "")
        except UnsafeDatabaseError as error:
            raise ConfigurationError([f"SLUICE_DIRECTORY__URL: {error}"]) from None
        except StatementRefusedError:
            # Shards are upgraded one after the other, so its schema may be another release's.
            raise ConfigurationError(
                ["SLUICE_DIRECTORY__URL has no tables of a directory: run `sluice db upgrade` there first."]
            ) from None
        except StoreUnavailableError:
            log.warning("the directory of the shards does not answer: no tenant and no key can be made")
        yield Directory(database, section.shard)


def _patience(settings: Settings) -> Patience:
    section = settings.database
    return Patience(section.connect_timeout_s, section.statement_timeout_s, section.pool_timeout_s)


def _database(settings: Settings) -> Database:
    section = settings.database
    direct = section.direct_url.get_secret_value() if section.direct_url is not None else None
    return Database(
        section.url.get_secret_value(),
        pool_size=section.pool_size,
        patience=_patience(settings),
        direct_url=direct,
    )


def remote_middlewares(settings: Settings) -> RemoteMiddlewares:
    """Return the middlewares of other servers that the settings name."""
    section = settings.upstreams
    terms = AggregatorOptions(
        connect_timeout_s=section.connect_timeout_s, max_result_bytes=section.max_result_bytes
    )
    connections = {
        name: Connection(name, server, terms) for name, server in settings.middleware_servers.items()
    }
    return RemoteMiddlewares(connections, time.monotonic)


def mark_store(settings: Settings) -> MarkStore:
    """Return where the marks are kept; a folder lies where the keys lie, not in the database's backups."""
    location = _mark_bucket(settings)
    if location is None:
        return MarkFolder(settings.erasure_file.parent, shared=settings.vault.mark is not None)
    from app.store.vault.mark_objects import MarkBucket  # noqa: PLC0415 - needs an extra

    return MarkBucket(location)


def erasure_place(settings: Settings) -> ErasurePlace:
    """Return where this host notes erasures: where the marks are kept."""
    return shared_erasures(settings) or ErasureFile(settings.erasure_file)


def shared_erasures(settings: Settings) -> SharedErasures | None:
    """Return the place in S3 where all hosts note erasures; None: each has a file of its own."""
    location = _mark_bucket(settings)
    if location is None:
        return None
    from app.store.vault.erasure_objects import ErasureBucket  # noqa: PLC0415 - needs an extra

    return ErasureBucket(location)


def replay_service(settings: Settings, vault: VaultService, marks: MarkKeeper) -> ReplayService:
    """Return what repeats erasures on a restored database, from wherever the settings let them be noted."""
    return ReplayService(
        *(vault.database, vault.audit, vault.key_keeper, marks, settings.erasure_files),
        shared=shared_erasures(settings),
    )


def _mark_bucket(settings: Settings) -> str | None:
    """Return the place in S3 that the settings name for marks and erasures, or raise ConfigurationError."""
    if settings.vault.mark is None or settings.vault.mark_folder is not None:
        return None
    if find_spec("obstore") is None:
        # The extra is not installed: the sentence names the setting that asks for it.
        sentence = (
            "SLUICE_VAULT__MARK names a place in S3, but the extra s3 is not installed: "
            "pip install 'sluice-mcp[s3]', or name a folder."
        )
        raise ConfigurationError([sentence])
    return settings.vault.mark


def anchors(settings: Settings) -> list[Anchor]:
    """Return where checkpoints of the audit log are kept, or raise ConfigurationError."""
    try:
        return [anchor_of(address) for address in settings.audit.anchors]
    except ValueError as error:
        raise ConfigurationError([f"SLUICE_AUDIT__ANCHORS: {error}."]) from None
    except ModuleNotFoundError:
        # The extra is not installed: the sentence names the setting that asks for it.
        sentence = (
            "SLUICE_AUDIT__ANCHORS names a place in S3, but the extra s3 is not installed: "
            "pip install 'sluice-mcp[s3]', or name another place."
        )
        raise ConfigurationError([sentence]) from None


def sinks(settings: Settings) -> list[Sink]:
    """Return where events of the record are delivered, or raise ConfigurationError."""
    try:
        chosen = [sink_of(address) for address in settings.audit.sinks]
    except ValueError as error:
        raise ConfigurationError([f"SLUICE_AUDIT__SINKS: {error}."]) from None
    except ModuleNotFoundError as error:
        place, extra = _SINK_EXTRAS[(error.name or "").partition(".")[0]]
        sentence = (
            f"SLUICE_AUDIT__SINKS names {place}, but the extra {extra} is not installed: "
            f"pip install 'sluice-mcp[{extra}]', or name another place."
        )
        raise ConfigurationError([sentence]) from None
    names = [sink.name for sink in chosen]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        sentence = f"SLUICE_AUDIT__SINKS names {doubled} twice: each needs a name of its own, as files by their names."
        raise ConfigurationError([sentence])
    return chosen


def archive(settings: Settings) -> EventArchive | None:
    """Return where months of the record that are over are kept, or raise ConfigurationError; None: nowhere."""
    address = settings.audit.archive
    if address is None:
        return None
    try:
        from app.engines.archive.choosing import archive_at  # noqa: PLC0415 - needs an extra

        return archive_at(address)
    except ValueError as error:
        raise ConfigurationError([f"SLUICE_AUDIT__ARCHIVE: {error}."]) from None
    except ModuleNotFoundError:
        sentence = (
            "SLUICE_AUDIT__ARCHIVE is set, but the extra archive is not installed: "
            "pip install 'sluice-mcp[archive]', or unset the variable."
        )
        raise ConfigurationError([sentence]) from None


@asynccontextmanager
async def shared_rates(settings: Settings, audit: AuditService) -> AsyncIterator[SharedRates | None]:
    """Count rates over all processes while the body runs; None where each counts by itself."""
    url = settings.traffic.shared_url
    if url is None:
        yield None
        return
    try:
        from app.store.access.redis_buckets import RedisBuckets  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError:
        # The extra is not installed: the sentence names the setting that asks for it.
        sentence = (
            "SLUICE_TRAFFIC__SHARED_URL is set, but the extra redis is not installed: "
            "pip install 'sluice-mcp[redis]', or unset the variable."
        )
        raise ConfigurationError([sentence]) from None
    buckets = RedisBuckets.at(url.get_secret_value(), timeout_s=TIMEOUT_S)
    rates = SharedRates(buckets, recorded(audit))
    async with rates.running():
        yield rates


def upstream_rules(settings: Settings) -> UpstreamRules:
    """Return what the settings say of the servers behind this one."""
    section = settings.upstreams
    try:
        filters = parse_filters(section.filter or "")
        for network in section.allowed_networks:
            ip_network(network)
    except ValueError as error:
        raise ConfigurationError(
            [f"SLUICE_UPSTREAMS__FILTER or __ALLOWED_NETWORKS is wrong: {error}."]
        ) from None
    return UpstreamRules(
        connect_timeout_s=section.connect_timeout_s,
        max_result_bytes=section.max_result_bytes,
        servers=frozenset(section.servers),
        filters={server: ExposedTools.parse(names) for server, names in filters.items()},
        stdio_over_rest=section.stdio_over_rest,
        allowed_networks=section.allowed_networks,
        max_dedicated=section.max_dedicated,
    )


def description_files(settings: Settings) -> DescriptionFiles | None:
    """Return the folder of descriptions that the settings name, or raise ConfigurationError."""
    folder = settings.upstreams.descriptions
    if folder is not None and not folder.is_dir():
        raise ConfigurationError(
            [
                f"SLUICE_UPSTREAMS__DESCRIPTIONS names {folder}, which is no folder; make it, or unset the variable."
            ]
        )
    return DescriptionFiles(folder) if folder is not None else None
