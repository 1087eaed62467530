"""The trainable twin of the graph: the encoder's layers over its frozen words, and a row of tag scores a token."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from app.engines.encoder.export.graph import EPSILON, HEADS, HIDDEN, LAYERS
from app.engines.encoder.export.quantization import quantized_rows
from app.engines.encoder.export.source import Array
from app.engines.pii.names.decoding import TAGS
from app.engines.pii.transformer.pieces import LISTS, OUTLINES

PLACES = 256


class Network:
    """Compute tag scores for a batch; ``parameters`` are plain tensors under the encoder's own names."""

    def __init__(
        self, weights: dict[str, Array], seed: int, layers: int = LAYERS, *, half: bool = False
    ) -> None:
        torch.manual_seed(seed)
        self.layers = layers
        self.half = half
        values, scales = quantized_rows(weights["embeddings.word_embeddings.weight"])
        self.words = torch.as_tensor(values.astype(np.float32) * scales[:, None])
        positions = weights["embeddings.position_embeddings.weight"][:PLACES]
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        self.parameters: dict[str, Any] = {
            "places": torch.as_tensor(positions + kind),
            "outlines": torch.randn(2 * len(OUTLINES), HIDDEN) * 0.01,
            "lists": torch.randn(2 * LISTS, HIDDEN) * 0.01,
            "out": torch.randn(HIDDEN, len(TAGS)) * 0.02,
            "out_bias": torch.zeros(len(TAGS)),
        }
        names = [name for name in weights if name.startswith("embeddings.LayerNorm")]
        for layer in range(layers):
            names += [name for name in weights if name.startswith(f"encoder.layer.{layer}.")]
        self.parameters |= {name: torch.as_tensor(weights[name].copy()) for name in names}
        for parameter in self.parameters.values():
            parameter.requires_grad_()

    def scores(self, given: Any, dropout: float = 0.0) -> Any:
        """Return one row of tag scores for each token that ``given.first`` points at."""
        p = self.parameters
        x = self.words[given.ids] + p["places"][: given.ids.shape[1]]
        x = (
            x
            + functional.embedding(given.outlines, p["outlines"])
            + functional.embedding(given.lists, p["lists"])
        )
        x = functional.dropout(self._norm(x, "embeddings.LayerNorm"), dropout)
        mask = (~given.mask)[:, None, None, :] * -10_000.0
        for layer in range(self.layers):
            x = self._layer(x, mask, f"encoder.layer.{layer}", dropout)
        return x.reshape(-1, HIDDEN)[given.first] @ p["out"] + p["out_bias"]

    def _norm(self, x: Any, name: str) -> Any:
        p = self.parameters
        return functional.layer_norm(x, (HIDDEN,), p[f"{name}.weight"], p[f"{name}.bias"], EPSILON)

    def _linear(self, x: Any, name: str) -> Any:
        return functional.linear(x, self.parameters[f"{name}.weight"], self.parameters[f"{name}.bias"])

    def _layer(self, x: Any, mask: Any, name: str, dropout: float) -> Any:
        texts, length, _ = x.shape
        attention = f"{name}.attention"
        query, key, value = (
            self._linear(x, f"{attention}.self.{part}").view(texts, length, HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        # Written out: the fused form is twice as slow for heads this narrow and texts this short.
        shares = (query @ key.transpose(2, 3)) * (HIDDEN // HEADS) ** -0.5 + mask
        mixed = (shares.softmax(-1) @ value).transpose(1, 2).reshape(texts, length, HIDDEN)
        seen = functional.dropout(self._linear(mixed, f"{attention}.output.dense"), dropout)
        x = self._norm(x + seen, f"{attention}.output.LayerNorm")
        wide = functional.gelu(self._linear(x, f"{name}.intermediate.dense"))
        narrow = functional.dropout(self._linear(wide, f"{name}.output.dense"), dropout)
        return self._norm(x + narrow, f"{name}.output.LayerNorm")
