"""What a client can be asked for: the capabilities by which servers decide what they list to it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

ClientFeatures = frozenset[str]
"""Names such as ``sampling`` and ``elicitation.url``; empty for a client that cannot be asked anything."""

NO_FEATURES: Final[ClientFeatures] = frozenset()
ROOTS: Final = "roots"
ALL_FEATURES: Final[ClientFeatures] = frozenset(
    {"sampling", "sampling.context", "sampling.tools", "elicitation.form", "elicitation.url", ROOTS}
)


def client_features(capabilities: Mapping[str, Any]) -> ClientFeatures:
    """Return what a client declared, without members that servers do not list by.

    A client chooses its capabilities freely; there are few sets of features, so what is kept for each is bounded.
    """
    features = {name for name in ("sampling", ROOTS) if isinstance(capabilities.get(name), Mapping)}
    if "sampling" in features:
        features |= {f"sampling.{mode}" for mode in ("context", "tools") if mode in capabilities["sampling"]}
    elicitation = capabilities.get("elicitation")
    if isinstance(elicitation, Mapping):
        modes = [mode for mode in ("form", "url") if mode in elicitation]
        # Clients of earlier revisions declare no modes and mean forms.
        features |= {f"elicitation.{mode}" for mode in modes or ["form"]}
    return frozenset(features)


def declared_capabilities(features: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the capabilities that a client with these features declares."""
    capabilities: dict[str, dict[str, Any]] = {}
    for feature in sorted(features):
        name, _, mode = feature.partition(".")
        members = capabilities.setdefault(name, {})
        if mode:
            members[mode] = {}
    return capabilities
