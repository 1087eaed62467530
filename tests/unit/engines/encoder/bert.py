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


def mixed(query, key, value):
    """Return the attention of one text."""
    query, key, value = heads(query), heads(key), heads(value)
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return (shares @ value).transpose(1, 0, 2).reshape(query.shape[1], -1)


def attention(rows, ends, weights, name):
    parts = [
        np.split(dense(rows, weights, f"{name}.self.{part}"), ends) for part in ("query", "key", "value")
    ]
    seen = np.concatenate([mixed(*text) for text in zip(*parts, strict=True)])
    return layer_norm(dense(seen, weights, f"{name}.output.dense") + rows, weights, f"{name}.output")


def vectors(texts, weights):
    """Return the vector of each text, given as token ids: six layers, the mean over the tokens, unit length.

    The tokens of all texts pass the matrices together and meet only those of their own text.
    """
    words, places, kinds = (
        weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
    )
    ends = np.cumsum([len(ids) for ids in texts])[:-1]
    rows = np.concatenate([words[ids] + places[: len(ids)] + kinds[0] for ids in texts])
    rows = layer_norm(rows, weights, "embeddings")
    for number in range(6):
        name = f"encoder.layer.{number}"
        rows = attention(rows, ends, weights, f"{name}.attention")
        wide = dense(rows, weights, f"{name}.intermediate.dense")
        wide = wide * 0.5 * (1 + erf(wide / math.sqrt(2)))
        rows = layer_norm(dense(wide, weights, f"{name}.output.dense") + rows, weights, f"{name}.output")
    means = np.array([text.mean(axis=0) for text in np.split(rows, ends)])
    return means / np.linalg.norm(means, axis=1, keepdims=True)
