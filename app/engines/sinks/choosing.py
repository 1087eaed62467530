"""The sinks that settings name by addresses."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from app.core.contracts.sinks import Sink
from app.engines.sinks.file import FileSink
from app.engines.sinks.syslog import SyslogSink

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_SHAPES: Final = (
    "file:///folder/events.jsonl, s3://bucket/folder, syslog+tls://host:6514?ca=/folder/ca.pem, "
    "syslog+tcp://host:601, otlp+https://host:4318?ca=/folder/ca.pem&headers=/folder/headers, "
    "otlp+http://host:4318, kafka+tls://host:9093/topic?ca=/folder/ca.pem&config=/folder/properties or "
    "kafka://host:9092/topic"
)
_TOPIC: Final = re.compile(r"/[A-Za-z0-9._-]{1,249}")
_BROKER: Final = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


def sink_of(address: str) -> Sink:
    """Return the sink at an address; raise ValueError, which says what an address looks like.

    ``file:///folder/events.jsonl``, ``s3://bucket/folder`` (needs the extra ``s3``, else ModuleNotFoundError),
    ``syslog+tls://host:6514?ca=/folder/ca.pem``, ``syslog+tcp://host:601``,
    ``otlp+https://host:4318?ca=/folder/ca.pem&headers=/folder/headers`` or ``otlp+http://host:4318`` (need ``otel``),
    ``kafka+tls://host:9093/topic?ca=/folder/ca.pem&config=/folder/properties&broker=host2:9093`` or
    ``kafka://host:9092/topic`` (need ``kafka``).
    """
    shown = address.partition("://")[0][:16] + "://…"
    try:
        parts = urlsplit(address)
        sink = _MAKERS.get(parts.scheme, _none)(parts, parts.hostname or "", parts.port)
    except ValueError:
        raise ValueError(f"{shown} is no address") from None
    if sink is None:
        raise ValueError(f"{shown} is no sink: {_SHAPES}")
    return sink


def _none(_parts: SplitResult, _host: str, _port: int | None) -> Sink | None:
    return None


def _file(parts: SplitResult, host: str, _port: int | None) -> Sink | None:
    return FileSink(Path(unquote(parts.path))) if not host and len(parts.path) > 1 else None


def _bucket(parts: SplitResult, host: str, _port: int | None) -> Sink | None:
    from app.engines.sinks.bucket import BucketSink  # noqa: PLC0415 - needs an extra

    return BucketSink(parts.geturl()) if host else None


def _syslog(parts: SplitResult, host: str, port: int | None) -> Sink | None:
    if not host or parts.path not in {"", "/"}:
        return None
    tls = parts.scheme == "syslog+tls"
    return SyslogSink(host, port or (6514 if tls else 601), tls, _paths(parts)("ca"))


def _otlp(parts: SplitResult, host: str, port: int | None) -> Sink | None:
    """Return a receiver of logs; credentials are no part of an address, and leave this host over TLS only."""
    from app.engines.sinks.otlp import OtlpSink  # noqa: PLC0415 - needs an extra

    path_of = _paths(parts)
    tls = parts.scheme == "otlp+https"
    is_plain = path_of("headers") is not None and not tls and host not in _LOOPBACK
    if not host or "@" in parts.netloc or is_plain:
        return None
    path = "/v1/logs" if parts.path in {"", "/"} else parts.path
    url = f"{'https' if tls else 'http'}://{_place(host, port or 4318)}{path}"
    return OtlpSink(url, path_of("ca"), path_of("headers"))


def _kafka(parts: SplitResult, host: str, port: int | None) -> Sink | None:
    """Return a topic; credentials are no part of an address, and go over TLS only, as brokers name other hosts."""
    from app.engines.sinks.kafka import KafkaSink  # noqa: PLC0415 - needs an extra

    path_of = _paths(parts)
    tls = parts.scheme == "kafka+tls"
    brokers = [_place(host, port or (9093 if tls else 9092)), *parse_qs(parts.query).get("broker", ())]
    is_plain = path_of("config") is not None and not tls
    if is_plain or "@" in parts.netloc or not _TOPIC.fullmatch(parts.path):
        return None
    if not all(_BROKER.fullmatch(broker) for broker in brokers):
        return None
    return KafkaSink(brokers, parts.path[1:], tls, path_of("ca"), path_of("config"))


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _paths(parts: SplitResult) -> Callable[[str], Path | None]:
    """Return how to get the path of a file that an address names behind its question mark."""
    query = parse_qs(parts.query)
    return lambda name: Path(query[name][0]) if name in query else None


_MAKERS: Final[Mapping[str, Callable[[SplitResult, str, int | None], Sink | None]]] = {
    "file": _file,
    "s3": _bucket,
    "syslog+tls": _syslog,
    "syslog+tcp": _syslog,
    "otlp+https": _otlp,
    "otlp+http": _otlp,
    "kafka+tls": _kafka,
    "kafka": _kafka,
}
