"""``sluice directory``: which shard has which tenant and key, where tenants live in several databases."""

from typing import TYPE_CHECKING

import typer

from app.cli.terminal import fail, note

if TYPE_CHECKING:
    from app.assembly import Services
    from app.services.access.directory import Adopted

commands = typer.Typer(
    help="Keep the directory of the shards (SLUICE_DIRECTORY__URL).",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@commands.command(epilog="Example:\n\n\b\n  sluice directory adopt")
def adopt() -> None:
    """Tell the directory which tenants and keys this shard has from before; it may be repeated."""
    from app.cli.host import on_host

    async def work(host: "Services") -> "Adopted":
        directory = host.access.directory
        if directory is None:
            fail("There is no directory: set SLUICE_DIRECTORY__URL and SLUICE_DIRECTORY__SHARD.")
        return await directory.adopt(host.database)

    adopted = on_host(work)
    print(f"{adopted.tenants} tenants and {adopted.keys} keys are in the directory.")
    for line in adopted.taken:
        note(f"Another shard has {line}")
    if adopted.taken:
        fail(
            "Requests reach the shard that the directory names: make these tenants and keys anew, under other names."
        )


@commands.command(
    "map", epilog="Example:\n\n\b\n  sluice directory map > keys.map && systemctl reload haproxy"
)
def map_() -> None:
    """Print a line for each key of all shards: its id and its shard, as deploy/haproxy-shards.cfg reads them."""
    import asyncio

    from app.services.access.directory import every_place
    from app.settings import load
    from app.store.database import Database

    url = load().directory.url
    if url is None:
        fail("There is no directory: set SLUICE_DIRECTORY__URL and SLUICE_DIRECTORY__SHARD.")

    async def show() -> None:
        async with Database(url.get_secret_value(), pool_size=1) as database:
            async for place in every_place(database):
                print(f"{place.id} {place.shard}")

    asyncio.run(show())
