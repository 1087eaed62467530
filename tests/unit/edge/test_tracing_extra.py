"""A collector without the libraries that reach it."""

import sys

import pytest

from app.main import create_app
from app.settings import ConfigurationError, Settings, TelemetrySettings


def test_a_collector_without_the_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(telemetry=TelemetrySettings(otlp_endpoint="http://127.0.0.1:4318/v1/traces"))
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigurationError) as caught:
        create_app(settings)
    (sentence,) = caught.value.faults
    assert "SLUICE_TELEMETRY__OTLP_ENDPOINT" in sentence
    assert "sluice-mcp[otel]" in sentence
