"""The service as main wires it asks the engines that its settings name."""

import math

from pydantic import SecretStr

from app.assembly import opened
from app.core.request import RequestInfo
from app.engines.resilience import Rules
from app.services.access.access import HOST
from app.settings import DatabaseSettings, KeysSettings, Settings
from app.settings.engines import EnginesSettings, ModeratorEngine
from tests.factories import caller_of
from tests.integration.engine_server import answering, engine_server, hanging

SIX = ("violence", "harassment", "hate", "sexual", "self_harm", "illicit")
REQUEST = RequestInfo("r", None, None, math.inf)


async def test_a_configured_moderator_serves_and_the_embedded_one_stands_in(tmp_path):
    flagged = answering(lambda _: {"results": [{"category_scores": dict.fromkeys(SIX, 0.9)}]})
    told = []
    async with engine_server(flagged) as server:
        engine = ModeratorEngine(url=server.url, model="big", timeout_s=30)
        settings = Settings(
            database=DatabaseSettings(url=SecretStr(f"sqlite:///{tmp_path}/s.db")),
            keys=KeysSettings(file=tmp_path / "keyring.json"),
            engines=EnginesSettings(moderator=engine),
        )
        async with opened(settings, observe_engine=lambda *outcome: told.append(outcome)) as services:
            await services.tenants.create(HOST, "t")
            invoke = services.invoke.invoke
            answer = await invoke(caller_of("t"), "content_moderation", {}, ["What a fine day."], REQUEST)
            assert answer.metadata["engine"]["name"] == "remote-moderations"
            assert answer.metadata["flags"]

            server.serve = hanging
            services.registry.get("content_moderation").engines.moderator.guard.rules = Rules(timeout_s=0.3)
            answer = await invoke(caller_of("t"), "content_moderation", {}, ["What a fine day."], REQUEST)
            assert answer.metadata["degraded"] is True
            assert answer.metadata["engine"]["name"].startswith("embedded-")
            assert answer.metadata["flags"] == []
    assert told == [("moderator", "served"), ("moderator", "fallback")]
