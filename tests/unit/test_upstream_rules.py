"""What the settings say of servers, as the services take it."""

import pytest

from app.core.catalog.servers import MCPServerSettings, ServerEntry
from app.core.catalog.tool_filter import ExposedTools
from app.places_wiring import upstream_rules
from app.settings import ConfigurationError, Settings, UpstreamsSettings


def test_the_section_becomes_rules():
    section = UpstreamsSettings(
        servers=("a", "b"), filter="a:x;b:-y", allowed_networks=("10.0.0.0/8",), max_dedicated=3
    )
    rules = upstream_rules(Settings(upstreams=section))
    assert rules.servers == {"a", "b"}
    assert rules.filters == {"a": ExposedTools.parse(["x"]), "b": ExposedTools.parse(["-y"])}
    assert (rules.networks_for("api"), rules.networks_for("file")) == (("10.0.0.0/8",), None)
    assert (rules.connect_timeout_s, rules.max_dedicated, rules.stdio_over_rest) == (10, 3, False)


@pytest.mark.parametrize("wrong", [{"filter": "a"}, {"filter": "a:x,-y"}, {"allowed_networks": ("inside",)}])
def test_a_section_that_is_wrong_stops_the_start_with_a_sentence(wrong: dict[str, object]):
    with pytest.raises(ConfigurationError) as refused:
        upstream_rules(Settings(upstreams=UpstreamsSettings.model_validate(wrong)))
    assert len(refused.value.faults) == 1 and "SLUICE_UPSTREAMS__" in refused.value.faults[0]


def test_commands_run_only_where_they_were_declared_or_the_host_allows_them_over_rest():
    entry = ServerEntry(name="a", settings=MCPServerSettings(command="npx"))
    strict = upstream_rules(Settings())
    open_door = upstream_rules(Settings(upstreams=UpstreamsSettings(stdio_over_rest=True)))
    assert strict.refusal(entry, "file") is None and open_door.refusal(entry, "api") is None
    assert strict.refusal(entry, "api") is not None
