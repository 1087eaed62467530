"""Logs, metrics and traces: what they say, and that an exception's text and foreign messages stay out."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import structlog
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.responses import Response

from app.api.errors import install_error_handlers
from app.edge.guard import EdgeGuard
from app.edge.logs import configure_logging
from app.edge.observability import FinishedRequest, Metrics, log_request
from app.edge.tracing import Tracer, tracer_to


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Give what is logged as it is written; put the logging of the test run back afterwards."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    stream = io.StringIO()
    # Any uvicorn that this process ran before may have set a level of its own.
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "level", logging.NOTSET)
    configure_logging("info", "json", stream)
    yield stream
    structlog.reset_defaults()
    root.handlers, root.level = before


@pytest.fixture
def lines(written: io.StringIO) -> Any:
    """Give the parsed JSON log lines so far."""
    return lambda: [json.loads(line) for line in written.getvalue().splitlines()]


def make_app() -> FastAPI:
    app = FastAPI()
    install_error_handlers(app)

    @app.get("/things/{name}")
    async def thing(name: str) -> str:
        if name == "bug":
            raise ValueError("Jane-Canary")
        return name

    return app


async def get(guard: EdgeGuard, path: str, **headers: str) -> int:
    async with AsyncClient(transport=ASGITransport(guard), base_url="http://localhost") as http:
        return (
            await http.get(path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        ).status_code


async def test_a_request_is_one_line_with_its_template_and_no_path(lines: Any) -> None:
    await get(EdgeGuard(make_app()), "/things/Jane-Canary?email=Jane-Canary", x_request_id="request-00000001")
    (line,) = lines()
    assert line["event"] == "request"
    assert line["route"] == "/things/{name}"
    assert line["client_request_id"] == "request-00000001"
    assert UUID(line["request_id"]).version == 7
    assert line["status"] == 200
    assert line["duration_ms"] >= 0
    assert "Jane-Canary" not in json.dumps(line)


@pytest.mark.parametrize("text", [None, "", 'a"b\\', "line\nbreak\u2028", "Zoë 😀 \ud800", "\0\x7f", "{}"])
@pytest.mark.parametrize("method", ["POST", "get", 'M"'])
def test_the_line_of_a_request_is_what_the_encoder_makes_of_its_fields(
    written: io.StringIO, text: str | None, method: str
) -> None:
    for seconds in (0.0, 0.000004, 0.0123456, 7, 12345.6789):
        finished = FinishedRequest(
            method=method,
            route=text or "unmatched",
            status=207,
            seconds=seconds,
            bytes_in=10**12,
            bytes_out=0,
            request_id=text or "id",
            client_request_id=text,
            error_code=text,
            tenant=text,
            middleware=text,
        )
        log_request(structlog.get_logger(), finished)
        # What is bound to a logger is said, too: this line comes from the encoder.
        log_request(structlog.get_logger().bind(beside="x"), finished)
        direct, encoded = written.getvalue().split("\n")[-3:-1]
        said, expected = json.loads(direct), json.loads(encoded)
        assert direct == json.dumps(said)
        assert expected.pop("beside") == "x"
        for moment in (said.pop("timestamp"), expected.pop("timestamp")):
            assert datetime.fromisoformat(moment).utcoffset() == timedelta(0)
        assert [*said.items()] == [*expected.items()]


async def test_a_bug_is_logged_by_type_and_place(lines: Any) -> None:
    assert await get(EdgeGuard(make_app()), "/things/bug", x_request_id="request-00000002") == 500
    bug, request = lines()
    assert bug["exception"] == "ValueError"
    assert bug["request_id"] == request["request_id"] != "request-00000002"
    assert any("test_observability.py" in place for place in bug["where"])
    assert request["error_code"] == "internal_error"
    assert "Jane-Canary" not in json.dumps([bug, request])


async def test_probes_are_logged_only_when_they_fail(lines: Any) -> None:
    app = make_app()
    ready = [True]

    @app.get("/readyz")
    async def readyz() -> Response:
        return Response(status_code=200 if ready[0] else 503)

    assert await get(EdgeGuard(app), "/readyz") == 200
    ready[0] = False
    assert await get(EdgeGuard(app), "/readyz") == 503
    assert [line["status"] for line in lines()] == [503]


def test_messages_of_other_libraries_are_reduced_to_their_place(lines: Any) -> None:
    logging.getLogger("mcp.server").warning("Failed to validate: %s", "Jane-Canary")
    logging.getLogger("mcp.server").info("Processing Jane-Canary")
    try:
        int("Jane-Canary")
    except ValueError:
        logging.getLogger("asyncio").exception("Jane-Canary")
        structlog.get_logger().exception("ours")
    first, second, ours = lines()
    assert first["logger"] == "mcp.server" and first["level"] == "warning"
    assert first["where"][0].startswith("test_observability.py:")
    assert second["exception"] == "ValueError"
    assert ours["exception"] == "ValueError" and ours["event"] == "ours"
    assert "Jane-Canary" not in json.dumps([first, second, ours])


def test_messages_of_the_service_and_its_server_are_kept(lines: Any) -> None:
    logging.getLogger("uvicorn.error").info("Uvicorn running on %s", "http://127.0.0.1:8000")
    logging.getLogger("app.protocol.wire.errors").error("request %s failed", "request-0003")
    assert [line["event"] for line in lines()] == [
        "Uvicorn running on http://127.0.0.1:8000",
        "request request-0003 failed",
    ]


def test_messages_of_the_service_say_which_error_and_where(lines: Any) -> None:
    told = {"error": "ModuleNotFoundError", "where": ["analyzer.py:17"], "text": "Jane-Canary"}
    logging.getLogger("app.engines.pii.processes.workers").error(
        "a detection worker did not start", extra=told
    )
    (line,) = lines()
    assert (line["error"], line["where"]) == ("ModuleNotFoundError", ["analyzer.py:17"])
    assert "Jane-Canary" not in json.dumps(line)


def test_console_lines_are_for_people() -> None:
    stream = io.StringIO()
    before = logging.getLogger().handlers
    configure_logging("warning", "console", stream)
    structlog.get_logger().info("unseen")
    structlog.get_logger().warning("seen", number=3)
    structlog.reset_defaults()
    logging.getLogger().handlers = before
    assert "seen" in stream.getvalue() and "number=3" in stream.getvalue()
    assert "unseen" not in stream.getvalue()


def test_invocations_are_counted_by_middleware_and_outcome() -> None:
    metrics = Metrics()
    metrics.invocation("pii_redaction", "ok", 0.002)
    text = metrics.exposition().decode()
    assert 'sluice_invocations_total{middleware="pii_redaction",outcome="ok"} 1.0' in text
    assert 'sluice_invocation_seconds_count{middleware="pii_redaction"} 1.0' in text


async def test_a_span_continues_the_callers_trace_and_holds_no_content(lines: Any) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    guard = EdgeGuard(make_app(), tracer=Tracer(provider))
    trace = "0af7651916cd43dd8448eb211c80319c"
    await get(guard, "/things/Jane-Canary", traceparent=f"00-{trace}-b7ad6b7169203331-01")
    await get(guard, "/things/bug")
    first, second = exporter.get_finished_spans()
    assert first.name == "GET /things/{name}"
    assert first.context is not None and format(first.context.trace_id, "032x") == trace
    assert first.attributes is not None and first.attributes["http.response.status_code"] == 200
    assert second.attributes is not None and second.attributes["error.type"] == "internal_error"
    assert "Jane-Canary" not in first.to_json() + second.to_json()
    provider.shutdown()


def test_without_a_collector_opentelemetry_is_not_even_imported() -> None:
    assert tracer_to(None, "1") is None
    program = (
        "import sys, app.edge.tracing as t; t.tracer_to(None, '1'); "
        "print([name for name in sys.modules if name.startswith('opentelemetry')]); import app.edge.guard; "
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exp'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


def test_a_collector_makes_a_tracer() -> None:
    tracer = tracer_to("http://127.0.0.1:9/v1/traces", "1")
    assert tracer is not None
    tracer.shutdown()


def test_the_memory_of_detection_is_shown_as_it_is_at_each_exposition() -> None:
    counts = {"hits": 3, "misses": 2, "evictions": 1, "bytes": 4096, "deaths": 0}
    metrics = Metrics()
    metrics.watch_detection(lambda: counts)
    shown = metrics.exposition().decode()
    assert 'sluice_detection_cache_lookups_total{outcome="hit"} 3.0' in shown
    assert 'sluice_detection_cache_lookups_total{outcome="miss"} 2.0' in shown
    assert "sluice_detection_cache_evictions_total 1.0" in shown
    assert "sluice_detection_cache_bytes 4096.0" in shown
    counts["deaths"] = 2
    assert "sluice_detection_worker_deaths_total 2.0" in metrics.exposition().decode()
