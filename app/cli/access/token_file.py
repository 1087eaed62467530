"""Tokens of services that somebody signed in to from this machine: one file of theirs, which nobody else reads."""

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

from app.cli.terminal import fail

_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token for one service, and what renews it; ``ends`` is in seconds since 1970."""

    issuer: str
    token_endpoint: str
    client_id: str
    resource: str
    access: str = field(repr=False)
    refresh: str | None = field(repr=False)
    ends: float


def token_path() -> Path:
    """Return the file: ``sluice/tokens.json`` in the folder for settings of programs."""
    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(folder) / "sluice" / "tokens.json"


def stored_tokens() -> dict[str, StoredToken]:
    """Return the tokens by the address of their service."""
    path = token_path()
    try:
        if path.stat().st_mode & _OTHERS:
            fail(f"{path} is open to others: chmod 600 {path}, or delete it.")
        read = json.loads(path.read_bytes())
        return {url: StoredToken(**values) for url, values in read.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError):
        fail(f"{path} cannot be read: delete it, and sign in again.")


def store_token(url: str, token: StoredToken | None) -> None:
    """Keep the token of a service, None: forget it."""
    tokens, path = stored_tokens(), token_path()
    tokens.pop(url, None)
    if token is not None:
        tokens[url] = token
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({name: asdict(each) for name, each in tokens.items()}, file)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
