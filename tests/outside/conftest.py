"""The running service of the gateway's tests, for clients that are not ours."""

from tests.gateway.conftest import gateway, shared

__all__ = ["gateway", "shared"]
