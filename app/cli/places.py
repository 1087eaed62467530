"""Where each command can work: on this host alone, at a service that --url names, or at a service alone."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

ONLY_HERE: Final = {
    "serve": "it is the service itself.",
    "apply": "its file approves the servers that it names and may start programs, which only who has the host decides.",
    "console": "the link that it makes counts in the database of this host; --url only says where it leads.",
    "config": "it shows the settings of this host.",
    "db": "only the owner of the tables changes their schema.",
    "directory": "it works with the databases of all shards.",
    "pii": "it looks through texts with the recognizers installed here, and sends them nowhere.",
    "documents reindex": "the server of the index is one of the settings of this host.",
    "audit purge": "a service does it by itself; who wants it at once needs the host.",
    "audit archive": "it writes to places that this host can reach, with its credentials.",
    "audit sinks": "sinks stand in the settings of the host.",
    "vault new-ring": "a key ring never leaves its host.",
    "vault rotate-keys": "a key ring never leaves its host.",
    "vault seal-ring": "a key ring never leaves its host.",
    "vault rewrap": "keys are wrapped where the key ring is.",
    "vault index": "a service does it by itself in the background.",
    "vault restore-epoch": "it is done after a restore, before a service starts.",
    "vault replay-erasures": "it is done after a restore, before a service starts.",
}
"""Why a command, or all of a group, works on this host alone, as the end of a sentence."""

CLIENTS: Final = frozenset({"invoke", "middleware", "status", "auth login", "auth logout", "auth status"})
"""Commands that are clients of a service: for them, and for them alone, SLUICE_URL stands for --url."""

OTHERWISE_THERE: Final = {
    "access explain": "the rules of the key's tenant; those of all for keys that reach all tenants.",
    "tenants erase": "the service erases in the background; the command ends at once.",
    "servers test": "the service connects, not this host.",
    "servers remove": "servers of the declarative file stay.",
    "providers put": "${NAME} in the file is a variable of the environment here.",
    "providers test": "the service asks, not this host.",
    "providers delete": "providers of the declarative file stay.",
    "groups import": "the service also notes members that match nothing at present.",
    "documents search": "as one reader, `--as`; no passage is shown.",
    "audit query": "without `--archive`.",
    "audit export": "without `--archive`.",
    "audit verify": "the log of the key's tenant, without `--since`, `--anchor`, `--key` and `--processes`; "
    "the API key is that of SLUICE_API_KEY.",
    "audit key": "without `--renew`.",
    "policies put": "without `--expected-version` the version read just before must still hold.",
    "subjects erase": "the service erases; the command waits ten minutes at most.",
}
"""What a command does otherwise at a service."""


class PlacedCommand(NamedTuple):
    """A command and where it can work; ``why``: for this host alone, or what is otherwise at a service."""

    path: str
    here: bool
    there: bool
    why: str


def why_only_here(path: str) -> str | None:
    """Return why the command ``path`` (such as ``vault rewrap``) works on this host alone, None: it does not."""
    return ONLY_HERE.get(path) or ONLY_HERE.get(path.partition(" ")[0])


def placed_commands(root: Any) -> Iterator[PlacedCommand]:
    """Yield every command below ``root``, a group of the command line, in its order."""
    for path, command in _leaves(root, ()):
        why = why_only_here(path)
        urls = [option for option in command.params if option.name == "url"]
        client = path in CLIENTS
        there = client or (bool(urls) and why is None)
        here = path == "status" or not client
        yield PlacedCommand(path, here, there, why or OTHERWISE_THERE.get(path, ""))


def _leaves(group: Any, above: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _leaves(command, (*above, name))
        else:
            yield " ".join((*above, name)), command
