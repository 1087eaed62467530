"""``sluice vault``: the key ring of this host, which wraps the keys of the data."""

from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from app.cli.terminal import fail, note

_NEW_RING: Final = "Example:\n\n\b\n  SLUICE_KEYS__FILE=/etc/sluice/keyring.json sluice vault new-ring"
_ROTATE_KEYS: Final = """Example, with one host:

\b
  sluice vault rotate-keys      wait ten seconds, then:
  sluice vault rewrap

With several hosts: `rotate-keys --prepare`, copy the file to all, wait ten seconds, then
`rotate-keys --activate 2`, copy and wait again, then `rewrap`; see docs/operations.md."""
_SEAL_RING: Final = """Example:

\b
  export SLUICE_KEYS__CUSTODIAN=aws-kms:arn:aws:kms:eu-central-1:111122223333:key/0f1e2d3c
  sluice vault seal-ring"""
_REWRAP: Final = "Example:\n\n\b\n  sluice vault rewrap"


def new_ring() -> None:
    """Create the key ring file with one random key if it does not exist. In production the service never creates it."""
    from app.cli.host import ring_file
    from app.custody_wiring import make_ring
    from app.settings import load

    path = ring_file()
    if path.exists():
        fail(f"{path} already exists; `sluice vault rotate-keys` adds a key to it.")
    make_ring(load())
    print(f"{path} has version 1.")
    note("Back it up separately from the database: without it nothing can be restored.")


def rotate_keys(
    activate: Annotated[
        int | None, typer.Option(help="Make this version of the ring the active one.")
    ] = None,
    *,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Add a new version without activating it.")
    ] = False,
) -> None:
    """Add a key to the ring file and activate it. Older versions still unwrap what they wrapped."""
    from app.cli.host import ring_file
    from app.custody_wiring import load_ring, save_ring
    from app.settings import load

    path, settings = ring_file(), load()
    ring = load_ring(settings)
    if activate is not None:
        if activate not in ring.versions:
            fail(f"The ring has no version {activate}; it has {', '.join(map(str, sorted(ring.versions)))}.")
        ring = ring.activated(activate)
    else:
        ring = ring.with_new_version()
        if not prepare:
            ring = ring.activated(max(ring.versions))
    save_ring(settings, ring)
    print(f"{path} has versions {', '.join(map(str, sorted(ring.versions)))}; version {ring.active} wraps.")
    note(
        "The service reads it within ten seconds; then run `sluice vault rewrap`. "
        "Back the file up: without it nothing can be restored."
    )


def seal_ring() -> None:
    """Let the custodian of the settings seal the ring file, which lies open or is sealed by another one."""
    from app.cli.host import ring_file
    from app.custody_wiring import custodian, save_ring
    from app.engines.cipher import KeyRing
    from app.engines.custody.sealed_ring import open_ring, sealed_by
    from app.settings import load

    path, settings = ring_file(), load()
    if settings.keys.custodian is None:
        fail("SLUICE_KEYS__CUSTODIAN must name who seals the ring.")
    former = sealed_by(path)
    opener = custodian(settings, former) if former is not None else None
    save_ring(settings, KeyRing.load(path) if opener is None else open_ring(path, opener))
    print(f"{path} is sealed by {settings.keys.custodian}.")
    note("Copies of the file from before still open: destroy them, except a backup in a safe.")


def rewrap() -> None:
    """Re-wrap every data key under the active version of the ring, in batches, while the service runs."""
    from app.cli.host import caller_for, on_host
    from app.core.access import SYSTEM_TENANT

    receipt = on_host(lambda host: host.vault.rewrap(caller_for(SYSTEM_TENANT)))
    print(
        f"Re-wrapped {receipt.rewrapped} keys under version {receipt.active}; "
        f"{receipt.left} remain under other versions."
    )
    if receipt.left == 0:
        note("Older versions are needed only for database backups made before now.")


COMMANDS: Final[tuple[tuple[str, Callable[..., Any], str], ...]] = (
    ("new-ring", new_ring, _NEW_RING),
    ("rotate-keys", rotate_keys, _ROTATE_KEYS),
    ("seal-ring", seal_ring, _SEAL_RING),
    ("rewrap", rewrap, _REWRAP),
)
"""Name, command and examples of each."""
