"""A receiver of OpenTelemetry's logs on loopback, which decodes what it gets with OpenTelemetry's own messages."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

PROTOBUF = "application/x-protobuf"


class Receiver:
    """Keeps requests that it takes; ``answers`` go out first, one for each request, and such a request is not kept."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[ExportLogsServiceRequest] = []
        self.answers: list[web.Response] = []
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.most_bytes = 1 << 30
        self.rejects = 0

    def records(self) -> list[LogRecord]:
        """Return the log records in the order in which they came."""
        return [
            record
            for request in self.requests
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def bodies(self) -> Sequence[str]:
        return [record.body.string_value for record in self.records()]

    async def take(self, request: web.Request) -> web.Response:
        self.seen.append((request.path, {name.lower(): value for name, value in request.headers.items()}))
        if self.answers:
            return self.answers.pop(0)
        # The server has taken gzip off by itself.
        content = await request.read()
        if len(content) > self.most_bytes:
            return web.Response(status=413)
        assert request.headers["Content-Type"] == PROTOBUF
        logs = ExportLogsServiceRequest()
        logs.ParseFromString(content)
        self.requests.append(logs)
        return answer_of(self.rejects)


def answer_of(rejects: int) -> web.Response:
    """Return what a receiver answers to a request of which it rejects so many records."""
    response = ExportLogsServiceResponse()
    if rejects:
        response.partial_success.rejected_log_records = rejects
        response.partial_success.error_message = "They are too old."
    return web.Response(body=response.SerializeToString(), content_type=PROTOBUF)


@asynccontextmanager
async def receiving(context: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Receiver]:
    """Run a receiver on a port, or on a free one."""
    receiver = Receiver()
    application = web.Application(client_max_size=1 << 30)
    application.router.add_post("/{path:.*}", receiver.take)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=context)
        await site.start()
        chosen = runner.addresses[0][1]
        receiver.url = f"otlp+{'https' if context else 'http'}://127.0.0.1:{chosen}"
        yield receiver
    finally:
        await runner.cleanup()
