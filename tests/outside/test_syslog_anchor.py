"""Checkpoints reach a real syslog server over TLS, and verify from the file that it wrote."""

import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.core.transparency.notes import Note
from app.services.audit.verification import LogVerifier
from app.store.database import Database
from app.store.migrate import upgrade
from tests.integration.access_setup import Replica, replica_on
from tests.integration.certificates import self_signed
from tests.integration.test_audit_anchors import anchoring, sealed
from tests.outside.debian import program
from tests.upstreams.providing import free_port

pytestmark = [pytest.mark.outside, pytest.mark.needs("rsyslogd")]

CONFIG = """
global(
  workDirectory="{folder}"
  defaultNetstreamDriver="ossl"
  defaultNetstreamDriverCAFile="{certificate}"
  defaultNetstreamDriverCertFile="{certificate}"
  defaultNetstreamDriverKeyFile="{certificate}"
)
module(load="imtcp" streamDriver.name="ossl" streamDriver.mode="1" streamDriver.authMode="anon")
template(name="line" type="string" string="%pri% %app-name% %msgid% %msg%\\n")
input(type="imtcp" port="{port}" address="127.0.0.1")
action(type="omfile" file="{folder}/received.log" template="line")
"""


@contextmanager
def rsyslog(folder: Path, certificate: Path, port: int) -> Iterator[Path]:
    """Run a server and return the file that it writes."""
    (folder / "rsyslog.conf").write_text(CONFIG.format(folder=folder, certificate=certificate, port=port))
    command = [program("rsyslogd") or "", "-n", "-f", str(folder / "rsyslog.conf"), "-i", str(folder / "pid")]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield folder / "received.log"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[Replica]:
    url = f"sqlite:///{tmp_path}/sluice.db"
    upgrade(url)
    async with Database(url) as database, replica_on(database) as running:
        yield running


async def test_a_server_that_was_away_gets_the_newest_checkpoint_and_it_verifies(
    replica: Replica, tmp_path: Path
) -> None:
    certificate, port = self_signed(tmp_path), free_port()
    running = anchoring(replica, f"syslog+tls://127.0.0.1:{port}?ca={certificate}")
    await sealed(replica, "acme")
    await running.run()  # nobody listens yet
    newest = await sealed(replica, "acme")
    with rsyslog(tmp_path, certificate, port) as received:
        until = time.monotonic() + 30
        while not (received.exists() and received.read_text().endswith("\n")):
            await running.run()
            assert time.monotonic() < until
            time.sleep(0.2)
    (line,) = received.read_text().splitlines()
    head, _, body = line.partition(" {")
    assert head == "109 sluice checkpoint"
    note = json.loads("{" + body)["checkpoint"]
    assert Note.parse(note).text == newest.text()
    result = await LogVerifier(replica.audit).verify(anchors=[note])
    assert (result.holds, result.anchors) == (True, 1)
