"""Text without names in many languages: what Django and JupyterLab say to people, from their installed translations.

Both are under the BSD-3-Clause licence; the environment of the recipe has them, the service does not.
"""

import json
import random
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from app.engines.pii.training.examples import Example

LANGUAGES: Final = ("cs", "da", "fi", "hu", "id", "nb", "no", "pl", "pt", "ro", "sv", "tr", "vi")
_COUNTRIES: Final = {
    "cs": "CZ",
    "da": "DK",
    "fi": "FI",
    "hu": "HU",
    "id": "ID",
    "no": "NO",
    "pl": "PL",
    "pt": "BR",
    "ro": "RO",
    "tr": "TR",
    "vi": "VN",
}
_MESSAGE: Final = re.compile(r'^msgstr(?:\[\d\])? ((?:"(?:[^"\\]|\\.)*"\s*)+)', re.MULTILINE)
_PIECE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ODD: Final = re.compile(r"[%{}<>\\]|https?:")
_SHORTEST: Final = 18


def interface_texts(most: int, seed: int) -> list[Example]:
    """Return at most ``most`` messages of each language, in the order of the languages."""
    chance = random.Random(seed)
    examples = []
    for language in LANGUAGES:
        texts = sorted({text for text in (*_django(language), *_jupyter(language)) if _is_prose(text)})
        examples += [
            Example(text, (), f"interface {language}") for text in chance.sample(texts, min(most, len(texts)))
        ]
    return examples


def _is_prose(text: str) -> bool:
    return len(text) >= _SHORTEST and text.count(" ") > 1 and not _ODD.search(text)


def _django(language: str) -> Iterator[str]:
    for path in sorted(_package("django").glob(f"**/locale/{language}/LC_MESSAGES/*.po")):
        header, *messages = _MESSAGE.findall(path.read_text(encoding="utf-8"))
        del header
        yield from ("".join(_PIECE.findall(message)) for message in messages)


def _jupyter(language: str) -> Iterator[str]:
    if language not in _COUNTRIES:
        return
    package = _package(f"jupyterlab_language_pack_{language}_{_COUNTRIES[language]}")
    for path in sorted(package.glob("locale/**/*.json")):
        for key, messages in json.loads(path.read_text(encoding="utf-8")).items():
            if key:
                yield from (message for message in messages if isinstance(message, str))


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed here; README.md says what the recipe needs.")
    return Path(spec.origin).parent
