"""Credentials that are told by how they are written down rather than by a provider's shape."""

from app.engines.secrets.spotting import Rule

STRUCTURES: tuple[Rule, ...] = ()
