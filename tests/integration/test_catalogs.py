"""Catalogs and the changes that overtake them."""

import asyncio

from app.core.access import DEFAULT_TENANT
from app.services.catalogs import CatalogService
from tests.protocol.mcp_service import service


async def test_a_change_between_the_question_and_the_first_step_of_its_answer_is_not_lost(
    database_url: str,
) -> None:
    async with service(database_url) as (_, app):
        catalogs: CatalogService = app.state.house.catalogs
        before = await catalogs.get(DEFAULT_TENANT)
        catalogs.overtaken(DEFAULT_TENANT)
        asked = asyncio.create_task(catalogs.get(DEFAULT_TENANT))
        await asyncio.sleep(0)  # the question is put, and the task that answers it has not begun
        catalogs.overtaken(DEFAULT_TENANT)
        await asked
        assert await catalogs.get(DEFAULT_TENANT) is not before
