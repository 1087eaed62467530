"""The formats of providers' credentials as data: the shape of each, never an example."""

from app.engines.secrets.formats import SecretFormat
from app.engines.secrets.rules import ai, clouds, code, commerce, messaging, operations, products

FORMATS: tuple[SecretFormat, ...] = (
    *ai.FORMATS,
    *clouds.FORMATS,
    *code.FORMATS,
    *commerce.FORMATS,
    *messaging.FORMATS,
    *operations.FORMATS,
    *products.FORMATS,
)
"""Every format that has a shape of its own or a name."""
