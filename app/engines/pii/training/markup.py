r"""Read the texts in `written/`: names marked up in place, and slots for names that are drawn anew each time.

A file holds one text a line; `\n` and `\t` written out are a line break and a tab, `\\` is a backslash. A line
`%% en mail` says the language and the kind of the texts below it. In a text,

* `[P:Maria Keller]` marks a person, `[L:…]` a place, `[O:…]` an organization, `[A:…]` an address;
* `[P=full]`, `[P=first]`, `[P=last]`, `[P=short]` (J. Berg), `[P=reversed]` (Berg, J.), `[L=city]`, `[L=street]`,
  `[O=company]`, `[O=shop]`, `[A=address]` are slots; `[P=first.f]` asks for a woman's name, `.m` for a man's; slots
  with one number (`[P=full#1]`, `[P=last#1]`) are one person;
* `[N=last]`, `[N=first]`, `[N=eponym]`, `[N=product]` are slots for words that name nobody where they stand.

Texts of the kinds `lower` and `upper` are put into small letters and capitals.

Any other bracket is text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from app.engines.pii.training.examples import Example, Span

WRITTEN = Path(__file__).parent / "written"
LABELS = {"P": "PERSON", "L": "LOCATION", "O": "ORGANIZATION", "A": "ADDRESS"}
_CASES: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}
_MARK = re.compile(r"\[([PLOAN])(?::([^\]\[]+)|=(\w+)(?:\.([fm]))?(?:#(\d))?)\]")
_ESCAPE = re.compile(r"\\([nt\\])")
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}
_HEADER = "%%"
HELD_OUT = "held_out_"
FRAMES = "frames_"
"""How the names of the files begin that only judge, and of those that `frames.py` fills."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Ask for a name: `kind` is what stands behind the label's letter; `same` numbers the persons of a text."""

    kind: str
    language: str
    gender: str = ""
    same: str = ""


Fill = Callable[[Slot], str]


@dataclass(frozen=True, slots=True)
class Written:
    """Hold a text with its mark-up, its language and its kind."""

    markup: str
    language: str
    kind: str

    @property
    def varies(self) -> bool:
        """Whether the text has slots, so that it gives another example each time."""
        return any(match[3] for match in _MARK.finditer(self.markup))

    def example(self, fill: Fill) -> Example:
        """Return the text without its mark-up, its names labelled, its slots filled."""
        text = ""
        spans: list[Span] = []
        position = 0
        for match in _MARK.finditer(self.markup):
            text += _plain(self.markup[position : match.start()])
            label, written, kind, gender, same = match.groups()
            name = _plain(written) if written else fill(Slot(kind, self.language, gender or "", same or ""))
            if label in LABELS:
                spans.append((len(text), len(text) + len(name), LABELS[label]))
            text += name
            position = match.end()
        text += _plain(self.markup[position:])
        example = Example(text, tuple(spans), f"written {self.language} {self.kind}")
        return example.recased(_CASES[self.kind]) if self.kind in _CASES else example


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], text)


def read_written(beginning: str = "") -> tuple[Written, ...]:
    """Return the texts of the files whose names begin with `HELD_OUT` or `FRAMES`, or with neither."""
    files = sorted(WRITTEN.glob("*.txt"))
    kinds = {
        file: next((kind for kind in (HELD_OUT, FRAMES) if file.name.startswith(kind)), "") for file in files
    }
    return tuple(text for file in files if kinds[file] == beginning for text in _texts(file))


@cache
def _texts(file: Path) -> tuple[Written, ...]:
    return tuple(_sections(file))


def _sections(file: Path) -> Iterator[Written]:
    language = kind = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith(_HEADER):
            language, kind = line.removeprefix(_HEADER).split()
        elif line.strip():
            yield Written(line, language, kind)
