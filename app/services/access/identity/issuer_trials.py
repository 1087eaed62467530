"""Ask an issuer once for what this service needs of it: its metadata and its keys, by the ways that are checked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.identities import TrustedIssuer
from app.core.tokens import TokenReader
from app.upstream.issuers import IssuerClient, IssuerDownError


@dataclass(frozen=True, slots=True)
class IssuerTrial:
    """The result: how many ``keys`` can verify tokens here, for which ``algorithms``; ``error`` is why not."""

    ready: bool
    keys: int = 0
    algorithms: Sequence[str] = ()
    error: str | None = None


async def tried(client: IssuerClient, reader: TokenReader, issuer: TrustedIssuer) -> IssuerTrial:
    """Fetch metadata, where something depends on it, and keys; a failure is part of the result, in our own words."""
    metadata: Mapping[str, Any] = {}
    needed = _needed(issuer)
    try:
        if needed or issuer.jwks_uri is None:
            metadata = await client.metadata(issuer.issuer)
    except IssuerDownError as error:
        return _failed(f"Its metadata could not be fetched: {error}.", error)
    missing = sorted(name for name in needed if not isinstance(metadata.get(name), str))
    try:
        document = await client.key_set(issuer.issuer, issuer.jwks_uri)
    except IssuerDownError as error:
        return _failed(f"Its keys could not be fetched: {error}.", error)
    usable = [key.algorithms & issuer.algorithms for key in reader.keys(document)]
    usable = [algorithms for algorithms in usable if algorithms]
    listed = sorted(frozenset().union(*usable))
    if not usable:
        taken = ", ".join(sorted(issuer.algorithms))
        return IssuerTrial(False, error=f"It lists no key for an algorithm that is taken ({taken}).")
    if missing:
        return IssuerTrial(False, len(usable), listed, f"Its metadata has no {' and no '.join(missing)}.")
    return IssuerTrial(True, len(usable), listed)


def _needed(issuer: TrustedIssuer) -> Collection[str]:
    """Return which addresses its metadata has to say."""
    asked = issuer.introspection is not None and issuer.introspection.uri is None
    signs_in = ("authorization_endpoint", "token_endpoint") if issuer.console is not None else ()
    return {*signs_in, *(("introspection_endpoint",) if asked else ())}


def _failed(words: str, error: IssuerDownError) -> IssuerTrial:
    refused = "its address is refused" in str(error)
    hint = " A network of your own is allowed by SLUICE_UPSTREAMS__ALLOWED_NETWORKS." if refused else ""
    return IssuerTrial(False, error=words + hint)
