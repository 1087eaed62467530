"""Engines on other servers: the options to call one, and adapters for the usual wire formats."""

from dataclasses import dataclass, field

from app.engines.resilience import Rules


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Address and protocol of an engine; ``url`` is the base to which the path of ``kind`` is added."""

    url: str
    kind: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    rules: Rules = field(default_factory=Rules)
