"""A syslog server: each checkpoint is a message (RFC 5424) over TCP or TLS, framed by its length (RFC 6587, 5425).

The protocol acknowledges nothing: what the server's machine did not take is noticed only when it answers that the
connection is gone. A checkpoint is sent again with the next one, since each continues the one before.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from app.core.contracts.anchors import AnchorError, Submission
from app.core.transparency.notes import Checkpoint, Note, Signature

_TIME_LIMIT_S: Final = 10
_NOTICE_OF_AUDIT: Final = 13 * 8 + 5
"""Facility 13 (log audit), severity 5 (notice)."""
_LONGEST_NAME: Final = 255


@dataclass(frozen=True, slots=True)
class SyslogAnchor:
    """Sends to a server; ``authority`` is a file of certificates to trust instead of the system's, for TLS."""

    host: str
    port: int
    tls: bool
    authority: Path | None = None

    @property
    def name(self) -> str:
        """Return the address of the server."""
        return f"syslog {self.host}:{self.port}"

    async def newest(self) -> Checkpoint | None:
        """Return None: it cannot be asked."""
        return None

    async def keep(self, submission: Submission) -> Sequence[Signature]:
        """Send a message on a connection of its own, and return once the server has closed it, too."""
        framed = _framed(submission.note)
        try:
            async with asyncio.timeout(_TIME_LIMIT_S):
                context = ssl.create_default_context(cafile=self.authority) if self.tls else None
                _, writer = await asyncio.open_connection(self.host, self.port, ssl=context)
                try:
                    writer.write(framed)
                    await writer.drain()
                finally:
                    writer.close()
                    await writer.wait_closed()
        except (TimeoutError, OSError, ssl.SSLError) as error:
            raise AnchorError(f"The syslog server does not take it: {type(error).__name__}.") from None
        return ()


def _framed(note: Note) -> bytes:
    host = socket.gethostname()[:_LONGEST_NAME] or "-"
    moment = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    body = json.dumps({"checkpoint": str(note)})
    message = f"<{_NOTICE_OF_AUDIT}>1 {moment} {host} sluice - checkpoint - {body}".encode()
    return f"{len(message)} ".encode() + message
