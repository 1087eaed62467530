"""Build engines from the settings: those that a bigger one may replace, the detector, the indexes of documents."""

from contextlib import AsyncExitStack

import app.middlewares
from app.core.content.secret_labels import SECRET_LABELS
from app.core.contracts.engines import Embedder, Engines, ToolRanker
from app.core.contracts.moderation import EXPRESSING, SEEKING
from app.core.contracts.registry import Registry, RegistryError
from app.engines.choosing import Chooser
from app.engines.deferred import DeferredToolRanker
from app.engines.documents.chunk_index import IndexOptions
from app.engines.encoder import Encoder
from app.engines.injection.wording import KINDS as INJECTION_KINDS
from app.engines.pii.processes.pool import PoolDetector
from app.engines.pii.processes.startup import Startup
from app.engines.pii.recognizers.user import (
    Definitions,
    FaultyRecognizersError,
    check_pace,
    read_definitions,
)
from app.engines.remote import RemoteOptions
from app.engines.resilience import Observer, Rules
from app.services.documents.indexes import DocumentIndexes
from app.settings import ConfigurationError, DetectionSettings, RemoteEngine, Settings
from app.store.database import Database


def pool_detector(section: DetectionSettings) -> PoolDetector:
    """Return the detector with the recognizers that an administrator adds; nothing is started yet."""
    user_definitions(section)
    return PoolDetector(
        section.workers,
        deadline_s=section.deadline_s,
        cache_bytes=section.cache_bytes,
        startup=Startup(matcher=section.matcher, recognizers=_recognizers(section)),
    )


def user_definitions(section: DetectionSettings) -> Definitions:
    """Return the recognizers that an administrator adds; raise ConfigurationError where the file is faulty."""
    try:
        definitions = read_definitions(_recognizers(section))
        check_pace(definitions)
    except FaultyRecognizersError as error:
        raise ConfigurationError([f"SLUICE_DETECTION__RECOGNIZERS: {error}"]) from error
    return definitions


def finding_types(detector: PoolDetector) -> frozenset[str]:
    """Return what findings are counted by: the types of the detector, of secrets, of moderation and of injection."""
    flags = {category.flag for table in (SEEKING, EXPRESSING) for category in table.values()}
    return detector.labels().union(SECRET_LABELS, flags, INJECTION_KINDS)


def _recognizers(section: DetectionSettings) -> str:
    """Return the text of the file of recognizers, empty where there is none."""
    if section.recognizers is None:
        return ""
    try:
        return section.recognizers.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            [f"SLUICE_DETECTION__RECOGNIZERS names {section.recognizers}, which cannot be read as text."]
        ) from error


def chosen_engines(
    settings: Settings, observe: Observer, stack: AsyncExitStack
) -> tuple[Chooser, Encoder, Embedder, ToolRanker]:
    """Return what chooses engines, and those that others are built on; ``stack`` closes them.

    Models that were trained on the encoder's vectors take the encoder, whatever makes those of documents.
    """
    chosen, encoder = Chooser(observe), Encoder()
    stack.push_async_callback(chosen.close)
    embedder = chosen.embedder(remote_options(settings.engines.embedder), encoder)
    tools = chosen.tools(remote_options(settings.engines.tools), DeferredToolRanker(encoder))
    return chosen, encoder, embedder, tools


def remote_options(section: RemoteEngine) -> RemoteOptions | None:
    """Return how to ask the engine that a section configures, or None where the embedded one serves alone."""
    if section.url is None:
        return None
    rules = Rules(
        timeout_s=section.timeout_s,
        failures=section.failures,
        cool_down_s=section.cool_down_s,
        fallback=section.fallback == "embedded",
        shadow=section.shadow,
    )
    key = section.api_key.get_secret_value() if section.api_key else None
    return RemoteOptions(section.url, section.kind, section.model, key, rules)


def document_indexes(
    settings: Settings, database: Database, embedder: Embedder, observe: Observer, stack: AsyncExitStack
) -> DocumentIndexes:
    """Return what searches documents beside the database itself; ``stack`` closes it."""
    section = settings.documents
    if section.url is None:
        return DocumentIndexes.beside(
            database, settings.database.sqlite_file, settings.database.vector_index_chunks
        )
    options = IndexOptions(
        url=section.url,
        kind=section.kind,
        user=section.user,
        password=section.password.get_secret_value() if section.password else None,
        api_key=section.api_key.get_secret_value() if section.api_key else None,
        ca_file=str(section.ca_file) if section.ca_file else None,
        rules=Rules(section.timeout_s, section.failures, section.cool_down_s),
        **section.model_dump(include={"prefix", "verify"}),
    )
    indexes = DocumentIndexes.elsewhere(database, embedder, options, observe)
    stack.push_async_callback(indexes.close)
    return indexes


def discovered_registry(engines: Engines, settings: Settings) -> Registry:
    """Return the middlewares of this service and of the plug-ins that the settings name."""
    try:
        return Registry.discover(app.middlewares, engines, settings.plugins)
    except RegistryError as error:
        raise ConfigurationError([str(error)]) from error
