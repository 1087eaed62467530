"""A syslog server: each event is a message (RFC 5424) over TCP or TLS, framed by its length (RFC 6587, 5425).

The protocol acknowledges nothing. A batch therefore has a connection of its own: it counts as delivered when the server
has closed its side, which it does once it has read all of it. What a server read and lost before it stored it is lost.
"""

import asyncio
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Final

from app.core.contracts.sinks import SinkBatch, SinkError, SinkEvent, SinkTooLargeError

_TIME_LIMIT_S: Final = 30
_AUDIT: Final = 13 * 8
"""Facility 13 (log audit); severity 5 (notice), or 4 (warning) for what was refused or failed."""
_NOTICE, _WARNING = 5, 4
_LONGEST_NAME: Final = 255
_LONGEST: Final = 64 * 1024
"""Bytes of a message: servers cut off what is longer than they are set to, and say nothing."""


@dataclass(frozen=True, slots=True)
class SyslogSink:
    """Sends to a server; ``authority`` is a file of certificates to trust instead of the system's, for TLS."""

    host: str
    port: int
    tls: bool
    authority: Path | None = None

    @property
    def name(self) -> str:
        """Return the address of the server."""
        return f"syslog {self.host}:{self.port}"

    async def deliver(self, batch: SinkBatch) -> int:
        """Send messages on a connection of their own, and return once the server has read and closed it."""
        host = socket.gethostname()[:_LONGEST_NAME] or "-"
        frames = b"".join(_framed(event, host) for event in batch.events)
        try:
            async with asyncio.timeout(_TIME_LIMIT_S):
                await self._send(frames)
        except (TimeoutError, OSError) as error:
            raise SinkError(f"The syslog server does not take it: {type(error).__name__}.") from None
        return 0

    async def _send(self, frames: bytes) -> None:
        context = ssl.create_default_context(cafile=self.authority) if self.tls else None
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=context)
        try:
            writer.write(frames)
            await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
                while await reader.read(1024):
                    pass
        finally:
            writer.close()
            await writer.wait_closed()


def _framed(event: SinkEvent, host: str) -> bytes:
    moment = event.at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    priority = _AUDIT + (_NOTICE if event.success else _WARNING)
    message = f"<{priority}>1 {moment} {host} sluice - ocsf - ".encode() + event.line
    if len(message) > _LONGEST:
        raise SinkTooLargeError(f"A message has at most {_LONGEST} bytes.")
    return f"{len(message)} ".encode() + message
