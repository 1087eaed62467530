"""Errors about a provider, in our own words: nothing that it said or was sent stands in them."""

from typing import Final

from app.core.errors import (
    DeadlineExceededError,
    ForbiddenError,
    TooLargeError,
    UpstreamUnavailableError,
)
from app.upstream.transport.dialing import AddressRefusedError, Refusal
from app.upstream.transport.faults import reason_of


class ProviderDownError(UpstreamUnavailableError):
    """The provider cannot be reached; nothing of an answer came."""


class ProviderSlowError(DeadlineExceededError):
    """The provider kept a time limit of its entry waiting."""


class ProviderCutOffError(UpstreamUnavailableError):
    """The answer began, and ended before its end or cannot be read."""


class ProviderTooLargeError(TooLargeError):
    """The answer is larger than the provider's entry allows."""


class ProviderAddressError(ForbiddenError):
    """The provider's address is not one that this installation connects to."""


_REFUSALS: Final[dict[Refusal, str]] = {
    "form": "has an address in baseUrl that cannot be used; write the host as a name or an IP address",
    "metadata": "has the address of a service with a cloud machine's secrets, which is never connected to",
    "not_public": "is not at a public address; name its network in allowedNetworks",
    "plain": "is at a public address, which needs a baseUrl that begins with https://",
}


class ProviderFaults:
    """Makes the errors about one provider."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._details = {"provider": name}

    def down(self, error: BaseException) -> ProviderDownError:
        """Return the error for a connection that failed; it depends on the kind of failure alone."""
        return ProviderDownError(self._sentence(reason_of(error)), details=self._details)

    def redirects(self, status: int) -> ProviderDownError:
        """Return the error for a redirect, which is not followed: the key would go there."""
        what = f"redirects elsewhere (HTTP {status}); give its final address as baseUrl"
        return ProviderDownError(self._sentence(what), details={**self._details, "status": status})

    def slow(self, limit: str, seconds: float) -> ProviderSlowError:
        """Return the error for a time limit that has passed; ``limit`` is its name in the entry."""
        what = f"did not answer within {seconds:g} seconds, the limit {limit}"
        return ProviderSlowError(self._sentence(what), details={**self._details, "limit": limit})

    def cut_off(self, what: str = "broke off its answer") -> ProviderCutOffError:
        """Return the error for an answer that began and cannot be read to its end."""
        return ProviderCutOffError(self._sentence(what), details=self._details)

    def too_large(self, maximum: int) -> ProviderTooLargeError:
        """Return the error for an answer above the limit, whose rest is not read."""
        return ProviderTooLargeError(
            self._sentence(f"gave an answer larger than {maximum} bytes, the limit maxAnswerBytes"),
            details={**self._details, "limit": "maxAnswerBytes", "maximum": maximum},
        )

    def refused(self, error: AddressRefusedError) -> ProviderAddressError:
        """Return the error for an address that is not dialed."""
        return ProviderAddressError(self._sentence(_REFUSALS[error.refusal]), details=self._details)

    def _sentence(self, what: str) -> str:
        return f"Provider {self._name!r} {what}."
