"""Which provider a model's name chooses, and which entries are refused with a sentence that mends them."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.core.errors import NotFoundError
from app.core.gateway.providers import (
    ProviderEntry,
    choose_provider,
    in_order,
    model_names,
    provider_named,
    reached,
)

URL = "https://api.example.com/v1"


def provider(name: str, *models: str, **more: Any) -> ProviderEntry:
    document = {"name": name, "kind": "openai", "baseUrl": URL, "models": list(models) or ["*"], **more}
    return ProviderEntry.model_validate(document)


MAIN = provider("main", "gpt-*", aliases={"fast": "gpt-5-mini"}, order=1)
LOCAL = provider("local", "llama-*", "gpt-oss", aliases={"gpt-4o": "gpt-oss"}, order=2)
CLAUDE = provider("claude", "claude-*", kind="anthropic", baseUrl="https://api.example.com", order=3)
ALL = [MAIN, LOCAL, CLAUDE]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-5-mini", ("main", "gpt-5-mini")),
        ("fast", ("main", "gpt-5-mini")),
        ("gpt-oss", ("main", "gpt-oss")),
        ("llama-4", ("local", "llama-4")),
        ("gpt-4o", ("main", "gpt-4o")),
    ],
)
def test_the_first_provider_that_has_a_model_is_chosen_and_an_alias_becomes_its_model(model, expected):
    choice = choose_provider(ALL, "openai", model)
    assert (choice.provider.name, choice.model) == expected


def test_another_order_chooses_another_provider():
    first = in_order([MAIN, LOCAL.model_copy(update={"order": 0}), CLAUDE])
    assert [entry.name for entry in first] == ["local", "main", "claude"]
    assert choose_provider(first, "openai", "gpt-4o").model == "gpt-oss"


def test_order_decides_before_names_and_no_order_comes_last():
    entries = [provider("c"), provider("b", order=7), provider("a", order=7), provider("z", order=0)]
    assert [entry.name for entry in in_order(entries)] == ["z", "a", "b", "c"]


@pytest.mark.parametrize("model", ["GPT-5", "agpt-5", "claude-opus", "", "llama", "gpt"])
def test_an_unknown_model_is_refused_with_what_there_is(model):
    with pytest.raises(NotFoundError) as refused:
        choose_provider(ALL, "openai", model)
    assert "fast, gpt-*, gpt-4o, llama-*, gpt-oss" in refused.value.message
    assert "claude" not in refused.value.message
    known = ["fast", "gpt-*", "gpt-4o", "llama-*", "gpt-oss"]
    assert refused.value.details == {"kind": "openai", "models": known}
    assert (
        model == "" or model not in refused.value.message.replace("gpt-*", "").replace("llama-*", "").split()
    )


def test_a_kind_without_a_provider_says_how_to_add_one():
    with pytest.raises(NotFoundError, match=r"no provider of kind anthropic; .*PUT /api/v1/providers"):
        choose_provider([MAIN], "anthropic", "claude-opus")


def test_many_models_are_counted_and_not_all_named():
    crowd = [provider("crowd", *[f"m{number}" for number in range(30)])]
    with pytest.raises(NotFoundError, match=r"m19 and 10 more\.$"):
        choose_provider(crowd, "openai", "other")
    assert len(model_names(crowd, "openai")) == 30


def test_a_rule_leads_to_its_provider_alone():
    assert provider_named(ALL, "openai", "local", "gpt-4o").model == "gpt-oss"
    for name, kind, model in (
        ("local", "openai", "gpt-5"),
        ("gone", "openai", "gpt-5"),
        ("claude", "openai", "claude-opus"),
    ):
        with pytest.raises(NotFoundError, match="rule of the policy"):
            provider_named(ALL, kind, name, model)


@pytest.mark.parametrize(
    ("change", "member", "mending"),
    [
        ({"baseUrl": "ftp://api.example.com"}, "baseUrl", "https://"),
        ({"baseUrl": "https://key@api.example.com/v1"}, "baseUrl", "apiKey"),
        ({"baseUrl": "https://api.example.com/v1?api-version=1"}, "baseUrl", "remove"),
        ({"baseUrl": "https://api.example.com/v1#x"}, "baseUrl", "remove"),
        ({"baseUrl": "https://api.example.com:0/v1"}, "baseUrl", "port"),
        ({"baseUrl": "https://api.exämple.com/v1"}, "baseUrl", "ASCII"),
        ({"baseUrl": "https://api.example.com\\@evil.example/v1"}, "baseUrl", "ASCII"),
        ({"kind": "anthropic"}, "baseUrl", "remove /v1"),
        ({"kind": "gemini"}, "kind", "'openai' or 'anthropic'"),
        ({"apiKey": "two words"}, "apiKey", "one word"),
        ({"apiKey": "slc_0123abcd_" + "a" * 43}, "apiKey", "that the provider gave you"),
        ({"extraHeaders": {"X-A": "slc_0123abcd_" + "a" * 43}}, "extraHeaders", "slc_"),
        ({"extraHeaders": {"Host": "other"}}, "extraHeaders", "connection"),
        ({"extraHeaders": {"Cookie": "a=b"}}, "extraHeaders", "cookies"),
        ({"extraHeaders": {"X-Sluice-User": "a"}}, "extraHeaders", "X-Sluice"),
        ({"extraHeaders": {"X-A": "a\r\nX-B: b"}}, "extraHeaders", "one line"),
        ({"extraHeaders": {"X-A": "1", "x-a": "2"}}, "extraHeaders", "once"),
        ({"allowedNetworks": ["everything"]}, "allowedNetworks", "10.0.0.0/8"),
        ({"models": []}, "models", "at least 1"),
        ({"models": ["a b"]}, "models", "match"),
        ({"models": ["gpt-*"], "aliases": {"fast": "claude"}}, "aliases", "add that model to models"),
        ({"aliases": {"a": "b", "b": "c"}}, "aliases", "name the model itself"),
        ({"limits": {"idleS": 0}}, "limits", "greater than 0"),
        ({"limits": {"idleS": float("inf")}}, "limits", "finite"),
        ({"unknown": 1}, "unknown", "not permitted"),
        ({"base_url": URL}, "base_url", "not permitted"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_member_and_the_mending(change, member, mending):
    with pytest.raises(ValidationError) as refused:
        ProviderEntry.model_validate({"name": "main", "kind": "openai", "baseUrl": URL, **change})
    (fault,) = refused.value.errors(include_input=False)
    assert member in [*fault["loc"], *fault["msg"].split()]
    assert mending in fault["msg"]


def test_a_secret_stands_in_no_text_about_the_entry():
    entry = provider("main", apiKey="s3cret-key", extraHeaders={"X-Org": "s3cret-org"})
    assert "s3cret" not in f"{entry!r} {entry}"
    with pytest.raises(ValidationError) as refused:
        provider("main", apiKey="s3cret key", extraHeaders={"X-Org": "s3cret\norg"})
    assert "s3cret" not in str(refused.value)


def test_address_and_networks_decide_what_is_reached_and_nothing_else_does():
    other = provider("main", "x", apiKey="k", order=5, limits={"idleS": 3}, callerKey=True)
    assert reached(other) == reached(provider("main", baseUrl=URL + "/"))
    assert reached(other) != reached(provider("main", baseUrl="https://api.example.com/v2"))
    assert reached(other) != reached(provider("main", allowedNetworks=["10.0.0.0/8"]))
