"""A labelled text, the operations that keep its labels in place, and its file format (one JSON object a line)."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

Span = tuple[int, int, str]

_PLAIN = re.compile(r"(?<=[^\W\d_] )[^\W\d_]+")
_SEEN_TWICE = 2

UNKNOWN = "UNKNOWN"
"""The label of words of which a set does not say what they are: nothing is learned from them."""


@dataclass(frozen=True, slots=True)
class Example:
    """Hold a text and its spans: start, end, label; sorted, without overlap."""

    text: str
    spans: tuple[Span, ...] = ()
    source: str = ""

    def recased(self, change: Callable[[str], str]) -> "Example":
        """Return the example in another case; a character whose other case is longer stays, so offsets hold."""
        text = "".join(changed if len(changed := change(c)) == 1 else c for c in self.text)
        return Example(text, self.spans, self.source)


def joined(parts: Sequence[Example], separator: str) -> Example:
    """Return the parts as one example, separated."""
    text = ""
    spans: list[Span] = []
    for index, part in enumerate(parts):
        if index:
            text += separator
        spans += [(start + len(text), end + len(text), label) for start, end, label in part.spans]
        text += part.text
    return Example(text, tuple(spans), parts[0].source if parts else "")


def read_examples(path: Path) -> list[Example]:
    """Return the examples of a file."""
    examples = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            stored = json.loads(line)
            spans = tuple((start, end, label) for start, end, label in stored["spans"])
            examples.append(Example(stored["text"], spans, stored.get("src", "")))
    return examples


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write the examples to a file."""
    with path.open("w", encoding="utf-8") as out:
        for example in examples:
            stored = {
                "text": example.text,
                "spans": [list(span) for span in example.spans],
                "src": example.source,
            }
            out.write(json.dumps(stored, ensure_ascii=False) + "\n")


def plain_words(examples: Iterable[Example]) -> set[str]:
    """Return the words that stand behind another one at least twice outside names, as they are spelled there."""
    counts = Counter(word for example in examples for word in _PLAIN.findall(_unnamed(example)))
    return {word for word, count in counts.items() if count >= _SEEN_TWICE}


def _unnamed(example: Example) -> str:
    """Return the text with line breaks in the place of its names."""
    text = example.text
    for start, end, _ in example.spans:
        text = text[:start] + "\n" * (end - start) + text[end:]
    return text
