"""A replica under load that is going to be killed: it stores values and says so only once they are acknowledged."""

import asyncio
import random
import sys
from contextlib import suppress
from uuid import uuid4

from app.core.errors import StoreUnavailableError
from app.store.database import Database
from tests.factories import caller_of, open_vault

WRITERS = 8
SCOPES = 20


async def serve(url: str, tenant: str) -> None:
    """Write until killed; each line on standard output is one acknowledged call."""
    caller = caller_of(tenant)
    async with Database(url) as database, open_vault(database) as vault:

        async def write() -> None:
            chance = random.Random()
            while True:
                scope, request = f"talk {chance.randrange(SCOPES)}", uuid4().hex
                values = [f"value {chance.randrange(10**9)}", f"common {chance.randrange(200)}"]
                with suppress(StoreUnavailableError):
                    receipt = await vault.store(caller, scope, *values, request_id=request)
                    fields = [scope, request]
                    for value, handle in zip(values, receipt.handles, strict=True):
                        fields += [value, handle.name]
                    sys.stdout.write("\t".join(fields) + "\n")
                    sys.stdout.flush()

        await asyncio.gather(*(write() for _ in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
