"""Engines elsewhere: what one is called like, and adapters for the usual wire formats."""

from dataclasses import dataclass, field

from app.engines.resilience import Rules


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Where an engine is and how it is asked; ``url`` is the base that the path of ``kind`` is added to."""

    url: str
    kind: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    rules: Rules = field(default_factory=Rules)
