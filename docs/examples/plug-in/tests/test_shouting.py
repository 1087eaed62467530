# ruff: noqa: INP001, S101 - a test of a distribution of its own
"""Run with pytest where Sluice and this distribution are installed."""

import asyncio

from shouting import Shouting, ShoutingArguments, ShoutingSettings

from app.core.content.context import Context


def test_the_user_shouts() -> None:
    """The marks of the settings stand behind the text."""
    middleware = Shouting(engines=None)  # this one asks no engine
    middleware.settings = ShoutingSettings(marks=2)
    context = Context.parse([{"role": "user", "content": "hello"}])
    outcome = asyncio.run(middleware.apply(context, ShoutingArguments()))
    assert outcome.context.to_json() == [{"role": "user", "content": "hello!!"}]
