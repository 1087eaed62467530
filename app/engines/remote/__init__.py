"""Engines elsewhere: what one is called like, and adapters for the usual wire formats."""

from dataclasses import dataclass, field
from typing import Literal

from app.engines.resilience import Rules

Kind = Literal["embeddings", "moderations", "chat", "llama-guard", "rerank", "tei-rerank"]


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Where an engine is and how it is asked; ``url`` is the base that a kind's own path is added to."""

    url: str
    kind: Kind
    model: str
    api_key: str | None = field(default=None, repr=False)
    rules: Rules = field(default_factory=Rules)
