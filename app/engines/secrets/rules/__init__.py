"""The formats of providers' credentials, as data: what each looks like, never one of them."""

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
"""Every format that is told by its shape."""
