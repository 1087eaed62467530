"""Invented tokens take few of an issuer's turns: those of others are asked about meanwhile."""

import asyncio
from typing import Any, cast

import pytest

from app.core.errors import OverloadedError
from app.core.identities import Introspection, TrustedIssuer
from app.core.tokens import TokenReader, TokenRefusedError, VerifiedToken
from app.services.access import token_states
from app.services.access.token_states import TokenState
from app.upstream.issuers import IssuerClient

ISSUER = TrustedIssuer("https://login.example.com", frozenset({"sluice"}), ())
GUESSER, OTHER = "192.0.2.7", "198.51.100.7"


class Asked:
    """An issuer that knows the tokens that begin with *known*, and answers while ``open`` is set."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.under_way = 0

    async def introspected(self, _place: str, _introspection: Introspection, token: str) -> dict[str, object]:
        self.under_way += 1
        try:
            if not token.startswith("known"):
                await self.open.wait()
        finally:
            self.under_way -= 1
        return {"active": token.startswith("known")}


class Reader:
    """Takes what the issuer says as it is."""

    def introspected(self, answer: dict[str, Any], _issuer: TrustedIssuer, now: float) -> VerifiedToken:
        if not answer["active"]:
            raise TokenRefusedError("inactive")
        return VerifiedToken({"sub": "ada"}, now + 300)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(token_states, "_TURN_S", 0.1)
    return Clock()


def state_of(issuer: Asked, clock: Clock) -> TokenState:
    introspection = Introspection("sluice", "secret", uri="https://login.example.com/introspect")
    return TokenState(ISSUER, introspection, cast(IssuerClient, issuer), cast(TokenReader, Reader()), clock)


async def guess(state: TokenState, first: int, number: int) -> None:
    guesses = [state.verified(f"guess-{first + each:010}", 0.0, GUESSER) for each in range(number)]
    answers = await asyncio.gather(*guesses, return_exceptions=True)
    assert all(isinstance(answer, TokenRefusedError | OverloadedError) for answer in answers)


async def test_who_invents_many_tokens_leaves_the_turns_to_others(clock: Clock) -> None:
    issuer = Asked()
    state = state_of(issuer, clock)
    await guess(state, 0, 20)
    issuer.open.clear()
    guessing = asyncio.create_task(guess(state, 20, 50))
    await asyncio.sleep(0.02)
    assert issuer.under_way == 2
    assert (await state.verified("known-token-of-ada", 0.0, OTHER)).claims == {"sub": "ada"}
    with pytest.raises(OverloadedError):
        await state.verified("known-token-of-bob", 0.0, GUESSER)
    issuer.open.set()
    await guessing
    # Behind one address may be an office: its people get in once the guesses are over.
    assert (await state.verified("known-token-of-bob", 0.0, GUESSER)).claims == {"sub": "ada"}


async def test_guesses_are_forgotten_after_a_minute(clock: Clock) -> None:
    issuer = Asked()
    state = state_of(issuer, clock)
    await guess(state, 0, 20)
    clock.now += 61
    issuer.open.clear()
    guessing = asyncio.create_task(guess(state, 20, 50))
    await asyncio.sleep(0.02)
    assert issuer.under_way == 8
    issuer.open.set()
    await guessing


async def test_a_few_unknown_tokens_cost_nobody_a_turn(clock: Clock) -> None:
    issuer = Asked()
    state = state_of(issuer, clock)
    await guess(state, 0, 19)
    issuer.open.clear()
    guessing = asyncio.create_task(guess(state, 20, 50))
    await asyncio.sleep(0.02)
    assert issuer.under_way == 8
    issuer.open.set()
    await guessing


async def test_no_more_networks_are_counted_than_fit(clock: Clock) -> None:
    state = state_of(Asked(), clock)
    for number in range(1100):
        with pytest.raises(TokenRefusedError):
            await state.verified(f"guess-{number:010}", 0.0, f"10.{number // 256}.{number % 256}.1")
    assert len(state._guesses._counted) == 1000
