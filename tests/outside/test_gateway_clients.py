"""Clients of model providers that talk through the gateway with one changed line, and see what they see without it."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.artefacts import ROOT
from tests.gateway.conversations import (
    assert_nothing_arrived,
    assert_prefixes_stay,
    assert_same,
    had,
    plan,
    values_in,
)
from tests.protocol.mcp_node import BIN

pytestmark = pytest.mark.outside

CLIENTS = ROOT / "tests" / "outside" / "clients"


def _environment(name: str) -> Path:
    """Return the environment of a framework; LiteLLM's is the one in which its proxy runs, too."""
    return ROOT / (".venv-rivals" if name == "litellm" else ".venv-clients") / name


FAMILIES = {
    "langchain": ("langchain_chat", ("chat", "responses", "anthropic")),
    "llamaindex": ("llamaindex_chat", ("chat", "responses", "anthropic")),
    "litellm": ("litellm_chat", ("chat", "anthropic")),
    "pydantic": ("pydantic_agent", ("chat", "responses", "anthropic")),
    "agents": ("openai_agent", ("chat", "responses")),
}

NODE = {
    "openai": ("chat", "responses"),
    "anthropic": ("messages",),
    "ai": ("chat", "responses", "anthropic"),
}
COMMANDS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "openai-chat": ([sys.executable, "openai_chat.py"], {}),
    "openai-responses": ([sys.executable, "openai_responses.py"], {"remembers": False}),
    "openai-responses-kept": ([sys.executable, "openai_responses.py"], {"remembers": True}),
    "anthropic": ([sys.executable, "anthropic_messages.py"], {}),
    **{
        f"{name}-{family}": ([f"{_environment(name)}/bin/python", f"{program}.py"], {"family": family})
        for name, (program, families) in FAMILIES.items()
        for family in families
    },
    **{
        f"litellm-responses{ending}": (
            [f"{_environment('litellm')}/bin/python", "litellm_responses.py"],
            {"remembers": bool(ending)},
        )
        for ending in ("", "-kept")
    },
    **{
        f"node-{name}-{family}": ([str(BIN / "node"), f"node/{name}.mjs"], {"family": family})
        for name, families in NODE.items()
        for family in families
    },
}


@pytest.mark.parametrize("pieces", [pytest.param(None, id="whole"), 5])
@pytest.mark.parametrize("client", COMMANDS)
def test_a_client_sees_what_it_sees_without_a_gateway(gateway, client, pieces):
    (program, script), options = COMMANDS[client]
    options = {**options, "stream": pieces is not None}
    gateway.provider.pieces = pieces or 3
    asked, command = plan(), [program, str(CLIENTS / script)]
    straight = had(gateway, command, asked, direct=True, **options)
    assert values_in(straight.requests, asked.planted) == asked.planted
    through = had(gateway, command, asked, **options)
    assert_nothing_arrived(gateway, through.requests, asked.planted)
    assert_same(through, straight, asked)
    assert_prefixes_stay(through.requests, straight.requests)
    assert len(through.requests) >= 2 * len(asked.turns)
