"""How large the inputs of each matrix become on real text: what 8 bits have to cover."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from app.engines.encoder.export.source import Array
from app.engines.pii.transformer.training.network import Network

_OFTEN = 0.9999


class Watched(Network):
    """A network that remembers, for each of its matrices, the range of what comes in."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.seen: dict[str, list[Array]] = {}

    def _linear(self, x: Any, name: str) -> Any:
        flat = x.detach().reshape(-1, x.shape[-1])
        ends = torch.quantile(flat, torch.tensor([1 - _OFTEN, _OFTEN]), dim=0)
        self.seen.setdefault(name, []).append(ends.numpy())
        return super()._linear(x, name)


def ranges(network: Watched, batches: Iterable[Any]) -> dict[str, tuple[Array, Array]]:
    """Return the least and greatest input of each matrix, a number for each column."""
    with torch.no_grad():
        for given in batches:
            network.scores(given)
    return {
        name: (np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0))
        for name, ends in network.seen.items()
    }
