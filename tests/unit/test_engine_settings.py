"""Engines elsewhere are configured by capability, and a wrong setting is named without its value."""

import os

import pytest
from pydantic import SecretStr

from app.edge.observability import Metrics
from app.engine_wiring import remote_options
from app.settings import ConfigurationError, RemoteEngine, load, purpose_of, walk
from app.settings.engines import EnginesSettings, ModeratorEngine

SECRET = "sk-do-not-tell"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in list(os.environ):
        if name.startswith("SLUICE_"):
            monkeypatch.delenv(name)


def faults(monkeypatch, **variables):
    for name, value in variables.items():
        monkeypatch.setenv(f"SLUICE_ENGINES__{name}", value)
    with pytest.raises(ConfigurationError) as caught:
        load()
    return " ".join(caught.value.faults)


def test_without_a_url_every_embedded_engine_serves_alone():
    engines = load().engines
    for name in EnginesSettings.model_fields:
        assert remote_options(getattr(engines, name)) is None


def test_the_environment_configures_one_capability(monkeypatch):
    for name, value in {
        "URL": "http://guard:8000/v1",
        "KIND": "llama-guard",
        "MODEL": "guard-8b",
        "API_KEY": SECRET,
        "TIMEOUT_S": "2.5",
        "FALLBACK": "refuse",
        "FAILURES": "3",
    }.items():
        monkeypatch.setenv(f"SLUICE_ENGINES__MODERATOR__{name}", value)
    engines = load().engines
    options = remote_options(engines.moderator)
    assert (options.url, options.kind, options.model) == ("http://guard:8000/v1", "llama-guard", "guard-8b")
    assert (options.rules.timeout_s, options.rules.failures, options.rules.fallback) == (2.5, 3, False)
    assert options.api_key == SECRET
    assert SECRET not in repr(options) + repr(engines)
    assert remote_options(engines.injection) is None


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "host:8000",
        "http://",
        f"http://user:{SECRET}@host/v1",
        f"http://host/v1?key={SECRET}",
        "file:///etc/passwd",
    ],
)
def test_what_is_no_base_url_is_refused_and_not_repeated(monkeypatch, url):
    told = faults(monkeypatch, TOOLS__URL=url, TOOLS__MODEL="m")
    assert "SLUICE_ENGINES__TOOLS__URL is wrong: a base URL" in told
    assert SECRET not in told


def test_a_url_needs_a_model_except_where_the_server_has_but_one(monkeypatch):
    assert "SLUICE_ENGINES__RETRIEVER is wrong" in faults(monkeypatch, RETRIEVER__URL="http://h")
    monkeypatch.setenv("SLUICE_ENGINES__RETRIEVER__KIND", "tei-rerank")
    assert remote_options(load().engines.retriever).kind == "tei-rerank"


def test_a_kind_that_the_capability_does_not_have_is_refused(monkeypatch):
    told = faults(monkeypatch, INJECTION__KIND="moderations")
    assert "SLUICE_ENGINES__INJECTION__KIND is wrong" in told


def test_a_misspelt_name_stops_the_start(monkeypatch):
    assert "SLUICE_ENGINES__MODERATOR__ULR" in faults(monkeypatch, MODERATOR__ULR="http://h")


def test_every_capability_has_the_same_knobs_and_a_purpose():
    sections = {section for section, _, _ in walk() if section.startswith("engines__")}
    assert len(sections) == 7
    for section in sections:
        assert {name for at, name, _ in walk() if at == section} == set(RemoteEngine.model_fields)
        assert purpose_of(section) != RemoteEngine.__doc__


def test_a_section_never_shows_its_key():
    assert SECRET not in str(ModeratorEngine(url="http://h", model="m", api_key=SecretStr(SECRET)))


def test_calls_to_engines_are_counted_by_capability_and_outcome():
    metrics = Metrics()
    metrics.engine("moderator", "fallback")
    assert b'sluice_engine_calls_total{capability="moderator",outcome="fallback"} 1.0' in metrics.exposition()
