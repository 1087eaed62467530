"""Find the key ring and who opens it, from the settings."""

import secrets
from importlib import import_module
from pathlib import Path

from app.engines.cipher import KEY_BYTES, KeyProvider, KeyRing
from app.engines.custody.sealed_ring import (
    RingCustodian,
    SealedRingFile,
    is_sealed,
    open_ring,
    seal_ring,
)
from app.engines.ring_file import RingFile
from app.settings import ConfigurationError, Settings


def key_ring(settings: Settings) -> KeyProvider:
    """Return the ring that wraps the data keys; development makes its own, production is given one."""
    if settings.keys.ring is not None:
        return KeyRing.parse(settings.keys.ring.get_secret_value())
    path = settings.key_file
    opener = custodian(settings)
    if not path.exists() and (settings.environment == "production" or opener is not None):
        raise ConfigurationError(
            [
                f"There is no key ring: set SLUICE_KEYS__RING, or put one at {path} (docs/operations.md says how)."
            ]
        )
    if opener is not None:
        return SealedRingFile(path, opener, settings.keys.outage_s)
    refuse_sealed(path)
    return RingFile(path, KeyRing.create(path))


def load_ring(settings: Settings) -> KeyRing:
    """Return the ring as it is now, for commands; raises KeyRingError."""
    if settings.keys.ring is not None:
        return KeyRing.parse(settings.keys.ring.get_secret_value())
    opener = custodian(settings)
    if opener is not None:
        return open_ring(settings.key_file, opener)
    refuse_sealed(settings.key_file)
    return KeyRing.load(settings.key_file)


def make_ring(settings: Settings) -> None:
    """Make a ring with one random key where the settings say, sealed where they name a custodian."""
    opener = custodian(settings)
    if opener is None:
        KeyRing.create(settings.key_file)
    else:
        ring = KeyRing({1: secrets.token_bytes(KEY_BYTES)}, 1)
        seal_ring(settings.key_file, ring, opener, replace=False)


def save_ring(settings: Settings, ring: KeyRing) -> None:
    """Replace the ring where the settings say, sealed where they name a custodian."""
    opener = custodian(settings)
    if opener is not None:
        seal_ring(settings.key_file, ring, opener)
    else:
        ring.save(settings.key_file)


def custodian(settings: Settings, name: str | None = None) -> RingCustodian | None:
    """Return who opens the ring, None where it lies open in its file; ``name`` in the place of the settings' own."""
    name = name or settings.keys.custodian
    if name is None:
        return None
    room, extra = ("aws_kms", "kms") if name.startswith("aws-kms:") else ("pkcs11", "pkcs11")
    try:
        # Loaded only where it is asked for: its library is an extra.
        module = import_module(f"app.engines.custody.{room}")
    except ModuleNotFoundError:
        raise ConfigurationError(
            [f"SLUICE_KEYS__CUSTODIAN needs the extra {extra}: pip install 'sluice-mcp[{extra}]'."]
        ) from None
    if room == "aws_kms":
        kms: RingCustodian = module.KmsCustodian(name)
        return kms
    pin = settings.keys.pin.get_secret_value() if settings.keys.pin is not None else ""
    token: RingCustodian = module.Pkcs11Custodian(name, pin)
    return token


def refuse_sealed(path: Path) -> None:
    """Raise ConfigurationError for a ring that no custodian is named for."""
    if is_sealed(path):
        raise ConfigurationError(
            [f"The key ring {path} is sealed: SLUICE_KEYS__CUSTODIAN must name who opens it."]
        )
