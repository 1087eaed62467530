"""Spans for OpenTelemetry: built, and its libraries imported, only where a collector is configured."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.edge.observability import FinishedRequest


class Tracer:
    """Makes one server span per request, as a child of the caller's ``traceparent``."""

    def __init__(self, provider: Any) -> None:
        # Imported here: without a collector no process pays for loading OpenTelemetry.
        from opentelemetry.trace import SpanKind  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
            TraceContextTextMapPropagator,
        )

        self._provider = provider
        self._tracer = provider.get_tracer("sluice")
        self._server = SpanKind.SERVER
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def span(self, method: str, traceparent: str | None) -> Iterator[Any]:
        """Run the body inside a span; exceptions are not recorded, because their text may be content."""
        parent = self._propagator.extract({"traceparent": traceparent}) if traceparent else None
        with self._tracer.start_as_current_span(
            method,
            context=parent,
            kind=self._server,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span

    @staticmethod
    def finish(span: Any, exchange: FinishedRequest) -> None:
        """Say on the span what the access log says."""
        span.update_name(f"{exchange.method} {exchange.route}")
        span.set_attribute("http.request.method", exchange.method)
        span.set_attribute("http.route", exchange.route)
        span.set_attribute("http.response.status_code", exchange.status)
        span.set_attribute("sluice.request_id", exchange.request_id)
        if exchange.middleware is not None:
            span.set_attribute("sluice.middleware", exchange.middleware)
        if exchange.error_code is not None:
            span.set_attribute("error.type", exchange.error_code)

    def shutdown(self) -> None:
        """Send what is still to be sent; call at the end of the process."""
        self._provider.shutdown()


def tracer_to(endpoint: str | None, version: str) -> Tracer | None:
    """Return a tracer that exports to the OTLP/HTTP collector at ``endpoint``, or None where there is none."""
    if endpoint is None:
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider(resource=Resource({"service.name": "sluice", "service.version": version}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return Tracer(provider)
