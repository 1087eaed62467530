"""Style sheets and scripts of the pages, from memory: no build, no other host, and a new address for new content."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import NotFoundError

ASSETS_PATH: Final = "/console/assets"
_ROOM: Final = Path(__file__).parent
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOREVER: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent; ``digest`` is part of its address."""

    media_type: str
    digest: str
    plain: bytes
    packed: bytes


@lru_cache(1)
def assets() -> Mapping[str, Asset]:
    """Return every file by its name, read and compressed once."""
    files = [
        path
        for folder in ("assets", "vendored")
        for path in sorted((_ROOM / folder).iterdir())
        if path.suffix in _TYPES
    ]
    return MappingProxyType({path.name: _read(path) for path in files})


def address(name: str) -> str:
    """Return the address of a file."""
    return f"{ASSETS_PATH}/{assets()[name].digest}/{name}"


async def send_asset(request: Request, digest: str, name: str) -> Response:
    """Return a file, or raise NotFoundError; an older address is answered with what the name holds now."""
    asset = assets().get(name)
    if asset is None:
        raise NotFoundError("There is no such file.")
    is_packed = "gzip" in request.headers.get("accept-encoding", "")
    headers = {
        "cache-control": _FOREVER if digest == asset.digest else "no-store",
        "vary": "accept-encoding",
        **({"content-encoding": "gzip"} if is_packed else {}),
    }
    return Response(asset.packed if is_packed else asset.plain, headers=headers, media_type=asset.media_type)


def _read(path: Path) -> Asset:
    plain = path.read_bytes()
    digest = hashlib.sha256(plain).hexdigest()[:16]
    return Asset(_TYPES[path.suffix], digest, plain, gzip.compress(plain, mtime=0))
