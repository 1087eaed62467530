"""A receiver of OpenTelemetry's logs (OTLP/HTTP, protobuf): each event is a log record, whose body is its line of OCSF.

Retries, partial success and Retry-After are as https://opentelemetry.io/docs/specs/otlp/ has them, but for one thing:
what is refused because of how the receiver or this service is set up (401, 404, 500) stays here and is sent later.
"""

import asyncio
import gzip
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2
from google.protobuf.json_format import Parse, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from app import __version__
from app.core.contracts.sinks import SinkBatch, SinkError, SinkEvent, SinkTooLargeError

_TIME_LIMIT_S: Final = 30
_MOST_BYTES: Final = 64 * 1024
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PROTOBUF: Final = "application/x-protobuf"
_BUSY: Final = frozenset({429, 502, 503, 504})
_TOO_LARGE: Final = frozenset({400, 413})
"""Collectors answer 400, too, where a body is longer than they read."""
_REFUSALS: Final = {
    401: "Check the credentials in the file that headers= names.",
    403: "Check the credentials in the file that headers= names.",
    404: "Check the path, which is /v1/logs where the address has none.",
    415: "It takes no protobuf.",
}


@dataclass(frozen=True, slots=True)
class OtlpSink:
    """Sends to ``url``.

    ``authority`` is a file of certificates to trust instead of the system's; ``headers`` is a file of lines such as
    ``Authorization: Bearer …``, read for each batch.
    """

    url: str
    authority: Path | None = None
    headers: Path | None = None

    @property
    def name(self) -> str:
        """Return the address of the receiver, without its path, which may be a secret."""
        return f"otlp {urlsplit(self.url).netloc}"

    async def deliver(self, batch: SinkBatch) -> int:
        """Send log records in one request; return how many of them the receiver rejects."""
        try:
            headers = await asyncio.to_thread(self._headers)
            context = await asyncio.to_thread(self._context)
        except OSError as error:
            raise SinkError(
                f"The file of headers or of authorities cannot be read: {error.strerror}."
            ) from None
        body = await asyncio.to_thread(_encoded, batch)
        try:
            async with (
                asyncio.timeout(_TIME_LIMIT_S),
                httpx2.AsyncClient(timeout=_TIME_LIMIT_S, verify=context) as http,
                http.stream("POST", self.url, content=body, headers=headers) as answer,
            ):
                content = await _content_of(answer)
        except (httpx2.HTTPError, TimeoutError) as error:
            raise SinkError(f"The receiver does not answer: {type(error).__name__}.") from None
        _check(answer)
        rejected = _rejected(answer, content)
        if rejected >= len(batch.events):
            raise SinkTooLargeError("The receiver rejects every log record.")
        return rejected

    def _headers(self) -> Mapping[str, str]:
        """Return the headers of a request; those of the file name no content."""
        lines = self.headers.read_text("utf-8", "replace").splitlines() if self.headers is not None else []
        pairs = [line.partition(":") for line in lines if line.strip()]
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if not all(name.isascii() and value.isascii() and name and value for name, value in headers.items()):
            raise SinkError("The file of headers has lines such as Authorization: Bearer …, in ASCII.")
        return headers | {
            "content-type": _PROTOBUF,
            "content-encoding": "gzip",
            "user-agent": f"sluice/{__version__}",
        }

    def _context(self) -> ssl.SSLContext | bool:
        """Return what a server's certificate is checked by."""
        return ssl.create_default_context(cafile=self.authority) if self.url.startswith("https:") else True


def _encoded(batch: SinkBatch) -> bytes:
    """Return a request of protobuf, compressed."""
    scope = ScopeLogs(
        scope=InstrumentationScope(name="sluice.audit", version=__version__),
        log_records=[_record(event) for event in batch.events],
    )
    resource = Resource(attributes=[_text("service.name", "sluice"), _text("service.version", __version__)])
    request = ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=resource, scope_logs=[scope])])
    return gzip.compress(request.SerializeToString(), 5)


def _record(event: SinkEvent) -> LogRecord:
    moment = (event.at - _EPOCH) // timedelta(microseconds=1) * 1000
    severity = ("INFO", SeverityNumber.SEVERITY_NUMBER_INFO)
    if not event.success:
        severity = ("WARN", SeverityNumber.SEVERITY_NUMBER_WARN)
    return LogRecord(
        time_unix_nano=moment,
        observed_time_unix_nano=moment,
        severity_text=severity[0],
        severity_number=severity[1],
        event_name="ocsf.api_activity",
        body=AnyValue(string_value=event.line.decode()),
        attributes=[_text("log.record.uid", event.uid), _text("sluice.tenant", event.tenant)],
    )


def _text(name: str, value: str) -> KeyValue:
    return KeyValue(key=name, value=AnyValue(string_value=value))


async def _content_of(answer: httpx2.Response) -> bytes:
    content = b""
    async for chunk in answer.aiter_bytes():
        content += chunk
        if len(content) > _MOST_BYTES:
            raise SinkError("The answer is longer than one of a receiver of logs.")
    return content


def _check(answer: httpx2.Response) -> None:
    """Raise SinkError where the receiver has not taken the request."""
    status = answer.status_code
    if answer.is_success:
        return
    if status in _BUSY:
        raise SinkError(
            f"The receiver answers {status}.", _retry_after_s(answer.headers.get("retry-after", ""))
        )
    if status in _TOO_LARGE:
        raise SinkTooLargeError(f"The receiver answers {status}.")
    raise SinkError(f"The receiver answers {status}. {_REFUSALS.get(status, '')}".rstrip())


def _retry_after_s(value: str) -> float:
    """Return for how many seconds a receiver asks to be left alone (RFC 9110: seconds or a moment), else 0."""
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return 0
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _rejected(answer: httpx2.Response, content: bytes) -> int:
    """Return how many log records the receiver rejects of those in a request that it took."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    response = ExportLogsServiceResponse()
    try:
        if kind == _PROTOBUF:
            response.ParseFromString(content)
        elif kind == "application/json":
            Parse(content or b"{}", response, ignore_unknown_fields=True)
        elif content:
            raise SinkError("It answers what is no answer of a receiver of logs: check the address.")
    except (DecodeError, ParseError):
        raise SinkError("It answers what is no answer of a receiver of logs: check the address.") from None
    return int(response.partial_success.rejected_log_records)
