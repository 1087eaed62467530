"""Write the lessons of the accurate tagger for texts, as `taught.py` reads them.

python -m app.engines.pii.training.teach TEXTS.jsonl LESSONS.jsonl [--model FOLDER]
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from app.engines.pii.names.decoding import LABELS, TAGS, Floats
from app.engines.pii.transformer.model import WEIGHTS, TransformerTagger

_HARDLY = 0.98


def _kinds(probabilities: Floats) -> Floats:
    """Return the shares of nothing and of each label."""
    member = np.array([[tag[2:] == label for label in ("", *LABELS)] for tag in TAGS], np.float32)
    return probabilities @ member


def lesson(tagger: TransformerTagger, text: str) -> dict[str, Any]:
    """Return the tagger's spans of a text, and its probabilities where there may be a name."""
    pieces = []
    for window, probabilities in tagger.probabilities(text):
        kinds = _kinds(probabilities)
        for place in np.flatnonzero(kinds[:, 0] < _HARDLY).tolist():
            token = window.tokens[window.first + place]
            pieces.append([token.start, token.end, *(round(float(share), 3) for share in kinds[place])])
    spans = [[span.start, span.end, span.label, round(span.score, 3)] for span in tagger(text)]
    return {"spans": spans, "chars": pieces}


def main() -> None:
    """Write one file of lessons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, help="one JSON object a line, with its text and src")
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, default=WEIGHTS)
    options = parser.parse_args()
    tagger = TransformerTagger.embedded(options.model)
    with options.texts.open(encoding="utf-8") as lines, options.out.open("w", encoding="utf-8") as out:
        for stored in map(json.loads, lines):
            row = {"text": stored["text"], "src": stored.get("src", ""), **lesson(tagger, stored["text"])}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
