"""The whole service as main wires it, on a SQLite file and a loopback port."""

import io
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from httpx2 import Client, Response
from pydantic import SecretStr

from app.core.access import ApiKey
from app.main import create_app
from app.settings import (
    AuditSettings,
    AuthSettings,
    DatabaseSettings,
    DetectionSettings,
    KeysSettings,
    Settings,
    TelemetrySettings,
    TrafficSettings,
    VaultSettings,
)
from app.settings.auth import IssuerSettings
from tests.detectors import shared_detectors
from tests.factories import with_schema
from tests.integration.loopback import serving


@dataclass(frozen=True)
class Service:
    """A running service, its first key (all roles), and everything that it writes."""

    port: int
    key: str
    directory: Path
    log: io.StringIO
    http: Client

    def put_policy(self, policy: Any) -> Response:
        """Replace the tenant's policy, whichever version holds."""
        version = self.http.get("/api/v1/policies").json()["version"]
        return self.http.put(f"/api/v1/policies?expected_version={version}", json=policy)


@contextmanager
def running_service(
    directory: Path,
    *,
    database_url: str | None = None,
    warm: bool = False,
    anchors: Sequence[str] = (),
    sinks: Sequence[str] = (),
    shared_url: str | None = None,
    issuers: Sequence[IssuerSettings] = (),
    mark: str | None = None,
    archive: str | None = None,
    **server: Any,
) -> Iterator[Service]:
    """Run the service with its files in ``directory``; ``warm`` waits for the detector.

    Without ``database_url`` the database is a SQLite file there. ``anchors`` get the checkpoints of its log,
    ``sinks`` its events, ``shared_url`` is where rates are counted together, ``issuers`` those whose tokens it takes,
    ``mark`` where restores are noticed, ``archive`` where months of the record go.
    """
    key = str(ApiKey.generate())
    settings = Settings(
        database=DatabaseSettings(
            url=SecretStr(with_schema(database_url or f"sqlite:///{directory}/sluice.db")),
            **{f"{name}_timeout_s": 30 for name in ("connect", "statement", "pool")},
        ),
        keys=KeysSettings(file=directory / "keyring.json"),
        auth=AuthSettings(bootstrap_key=SecretStr(key), issuers=tuple(issuers)),
        detection=DetectionSettings(warm=warm),
        audit=AuditSettings(anchors=tuple(anchors), sinks=tuple(sinks), archive=archive),
        traffic=TrafficSettings(shared_url=SecretStr(shared_url) if shared_url else None),
        vault=VaultSettings(mark=mark),
        telemetry=TelemetrySettings(log_level="debug", log_format="json"),
    )
    root = logging.getLogger()
    before = (list(root.handlers), root.level, sys.stderr)
    # The service writes its log to standard error; a test wants to read all of it.
    sys.stderr = log = io.StringIO()
    try:
        app = create_app(settings)
        with shared_detectors(), serving(app, **server) as port:
            while warm and not app.state.services.detector.ready:
                time.sleep(0.02)
            headers = {"authorization": f"Bearer {key}"}
            with Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as http:
                yield Service(port, key, directory, log, http)
    finally:
        root.handlers, root.level, sys.stderr = before
        structlog.reset_defaults()
