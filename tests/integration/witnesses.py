"""A witness on loopback (C2SP tlog-witness), written for the tests: it keeps one size and root for each log."""

import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from app.core.transparency.hashing import continues
from app.core.transparency.notes import COSIGNATURE, Checkpoint, Note, VerifierKey, cosigned
from app.engines.signing import SigningKey, checker


class Witness:
    """Cosigns what continues what it saw; ``trusted`` are the keys of the logs that it knows."""

    def __init__(self) -> None:
        self.private = SigningKey.create("witness.example/w1")
        self.key = VerifierKey(self.private.name, COSIGNATURE, self.private.public.public)
        self.trusted: list[VerifierKey] = []
        self.seen: dict[str, Checkpoint] = {}
        self.requests: list[str] = []
        self.url = ""

    async def add_checkpoint(self, request: web.Request) -> web.Response:
        """Answer as the specification says, in its order."""
        body = await request.text()
        self.requests.append(body)
        head, _, rest = body.partition("\n\n")
        old, *lines = head.split("\n")
        note = Note.parse(rest)
        checkpoint = Checkpoint.parse(note.text)
        known = [key for key in self.trusted if key.name == checkpoint.origin]
        if not known:
            return web.Response(status=404)
        if not any(note.is_signed(key, checker(key)) for key in known):
            return web.Response(status=403)
        since = int(old.removeprefix("old "))
        if since > checkpoint.size:
            return web.Response(status=400)
        before = self.seen.get(checkpoint.origin)
        if since != (before.size if before else 0):
            return web.Response(
                status=409,
                text=f"{before.size if before else 0}\n",
                headers={"content-type": "text/x.tlog.size"},
            )
        proof = [base64.b64decode(line) for line in lines]
        holds = not proof if before is None else False
        if before is not None:
            holds = continues(before.root, before.size, checkpoint.root, checkpoint.size, proof)
        if not holds:
            return web.Response(status=422)
        self.seen[checkpoint.origin] = checkpoint
        made = cosigned(note, self.key, self.private.sign, int(time.time()))
        return web.Response(text=made.line())


@asynccontextmanager
async def witness() -> AsyncIterator[Witness]:
    """Serve a witness for the time of a block."""
    serving = Witness()
    app = web.Application()
    app.router.add_post("/w/add-checkpoint", serving.add_checkpoint)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        serving.url = f"http://127.0.0.1:{runner.addresses[0][1]}/w"
        yield serving
    finally:
        await runner.cleanup()
