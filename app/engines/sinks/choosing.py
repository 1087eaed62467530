"""The sinks that settings name by addresses."""

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from app.core.contracts.sinks import Sink
from app.engines.sinks.file import FileSink
from app.engines.sinks.syslog import SyslogSink

_SYSLOG = {"syslog+tls": (True, 6514), "syslog+tcp": (False, 601)}


def sink_of(address: str) -> Sink:
    """Return the sink at an address; raise ValueError, which says what an address looks like.

    ``file:///folder/events.jsonl``, ``s3://bucket/folder`` (needs the extra ``s3``, else ModuleNotFoundError),
    ``syslog+tls://host:6514?ca=/folder/ca.pem`` or ``syslog+tcp://host:601``.
    """
    shown = address.partition("://")[0][:16] + "://…"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(f"{shown} is no address") from None
    if parts.scheme == "file" and not host and len(parts.path) > 1:
        return FileSink(Path(unquote(parts.path)))
    if parts.scheme == "s3" and host:
        from app.engines.sinks.bucket import BucketSink  # noqa: PLC0415 - needs an extra

        return BucketSink(address)
    if parts.scheme in _SYSLOG and host and parts.path in {"", "/"}:
        tls, usual = _SYSLOG[parts.scheme]
        authority = parse_qs(parts.query).get("ca", [""])[0]
        return SyslogSink(host, port or usual, tls, Path(authority) if authority else None)
    raise ValueError(
        f"{shown} is no sink: file:///folder/events.jsonl, s3://bucket/folder, "
        "syslog+tls://host:6514?ca=/folder/ca.pem or syslog+tcp://host:601"
    )
