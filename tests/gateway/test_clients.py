"""A short conversation of the clients of OpenAI and Anthropic; `make outside` has longer ones, and more clients."""

import sys

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
from tests.sampling import SEED

CLIENTS = ROOT / "tests" / "outside" / "clients"
OWN = {
    "openai_chat": {},
    "openai_responses": {"remembers": False},
    "anthropic_messages": {},
}


# Each client streams or does not, in turns that the seed decides; with `make outside` each does both.
WAYS = [(client, (number + SEED) % 2 == 0) for number, client in enumerate(OWN)]


@pytest.mark.parametrize(("client", "stream"), WAYS)
def test_a_client_sees_what_it_sees_without_a_gateway(gateway, client, stream):
    asked = plan(3)
    command = [sys.executable, str(CLIENTS / f"{client}.py")]
    straight = had(gateway, command, asked, direct=True, stream=stream, **OWN[client])
    assert values_in(straight.requests, asked.planted) == asked.planted
    through = had(gateway, command, asked, stream=stream, **OWN[client])
    assert_nothing_arrived(gateway, through.requests, asked.planted)
    assert_same(through, straight, asked)
    assert_prefixes_stay(through.requests, straight.requests)
