"""BERT in numpy, written from its definition and apart from the recipe: what the encoder is compared with."""

import math

import numpy as np

HEADS = 12


def erf(x):
    """Return the error function to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    terms = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - terms * np.exp(-x * x))


def layer_norm(rows, weights, name):
    mean = rows.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(((rows - mean) ** 2).mean(axis=-1, keepdims=True) + 1e-12)
    return (rows - mean) / deviation * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]


def dense(rows, weights, name):
    return rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def heads(rows):
    return rows.reshape(len(rows), HEADS, -1).transpose(1, 0, 2)


def attention(rows, weights, name):
    query, key, value = (
        heads(dense(rows, weights, f"{name}.self.{part}")) for part in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    mixed = (shares @ value).transpose(1, 0, 2).reshape(rows.shape)
    return layer_norm(dense(mixed, weights, f"{name}.output.dense") + rows, weights, f"{name}.output")


def vector(ids, weights):
    """Return the sentence vector of token ``ids``: six layers, the mean over the tokens, unit length."""
    embeddings = [
        weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
    ]
    rows = embeddings[0][ids] + embeddings[1][: len(ids)] + embeddings[2][0]
    rows = layer_norm(rows, weights, "embeddings")
    for number in range(6):
        name = f"encoder.layer.{number}"
        rows = attention(rows, weights, f"{name}.attention")
        wide = dense(rows, weights, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + erf(wide / math.sqrt(2)))
        rows = layer_norm(dense(wide, weights, f"{name}.output.dense") + rows, weights, f"{name}.output")
    mean = rows.mean(axis=0)
    return mean / np.linalg.norm(mean)
