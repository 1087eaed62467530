"""Find packages that an answer installs or imports and that the given package index does not have."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.core.contracts.grounding import AnswerFinding
from app.engines.grounding.fences import Layout

Index = Mapping[str, frozenset[str]]

_INSTALL: Final = re.compile(
    r"(?<![\w./-])(?:(?P<pypi>(?:python3?|py) -m pip install|pip3? install|uv pip install|uv add|poetry add|"
    r"pipx install)|(?P<npm>npm (?:install|i|add)|yarn add|pnpm (?:add|install|i)|bun add))(?P<rest>(?: +[^\n`;&|#]+)?)"
)
_PYTHON_IMPORT: Final = re.compile(
    r"^[ \t]*(?:>>> )?(?:from[ \t]+([A-Za-z_]\w*)(?:\.[\w.]*)?[ \t]+import\b|import[ \t]+([A-Za-z_][\w., \t]*))",
    re.MULTILINE,
)
_NODE_IMPORT: Final = re.compile(
    r"(?:\brequire\(\s?|\bimport\(\s?|\bfrom\s|\bimport\s)['\"](@?[\w.-]+(?:/[\w.-]+)*)['\"]"
)
_REQUIREMENT: Final = re.compile(
    r"['\"]?([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[^\]]*\])?(?:[=<>!~@].*)?['\"]?"
)
_NPM_NAME: Final = re.compile(
    r"['\"]?(@[a-z0-9][\w.-]*/[a-z0-9][\w.-]*|[a-z0-9][\w.-]*)(?:@[\w.^~<>=*-]+)?['\"]?", re.IGNORECASE
)
_VALUED: Final = (
    "-r --requirement -c --constraint -e --editable -i --index-url --extra-index-url -f --find-links -t --target "
    "--python --prefix --registry -w --workspace --tag --group -G --proxy --platform --python-version"
)
_TAKES_VALUE: Final = frozenset(_VALUED.split())
_FILES: Final = (".txt", ".whl", ".tar.gz", ".zip", ".toml", ".tgz", ".json")
_PYTHON: Final = frozenset({"python", "py", "python3", "py3", "pycon", "ipython"})
_NODE: Final = frozenset(
    {"javascript", "js", "jsx", "mjs", "cjs", "node", "typescript", "ts", "tsx", "mts", "cts"}
)
_DISTRIBUTIONS: Final = {
    "yaml": "pyyaml",
    "cv2": "opencv-python",
    "sklearn": "scikit-learn",
    "pil": "pillow",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "jwt": "pyjwt",
    "skimage": "scikit-image",
    "serial": "pyserial",
    "usb": "pyusb",
    "crypto": "pycryptodome",
    "git": "gitpython",
    "docx": "python-docx",
    "pptx": "python-pptx",
    "magic": "python-magic",
    "github": "pygithub",
    "openssl": "pyopenssl",
    "zmq": "pyzmq",
    "mysqldb": "mysqlclient",
    "psycopg2": "psycopg2-binary",
    "attr": "attrs",
    "fitz": "pymupdf",
    "wx": "wxpython",
    "kafka": "kafka-python",
    "slugify": "python-slugify",
    "telegram": "python-telegram-bot",
    "nacl": "pynacl",
    "ldap": "python-ldap",
    "markdown": "markdown",
    "jose": "python-jose",
    "multipart": "python-multipart",
    "pkg_resources": "setuptools",
    "faiss": "faiss-cpu",
    "re2": "google-re2",
    "ahocorasick": "pyahocorasick",
}
"""Distributions whose names differ from those of their modules."""

_BUILTIN_NODE: Final = (
    "assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain "
    "events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl "
    "stream string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib test sqlite"
)
_NODE_MODULES: Final = frozenset(_BUILTIN_NODE.split())
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789-"
_SHORTEST: Final = 4
_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Mention:
    """A named package and its place; ``imported``: by the name of a module, which may differ from the package's."""

    index: str
    name: str
    start: int
    end: int
    imported: bool = False


def folded(index: str, name: str) -> str:
    """Return the name in the normal form of its index."""
    return re.sub(r"[-_.]+", "-", name).lower() if index == "pypi" else name.lower()


def check_packages(
    layout: Layout, indexes: Index, words: Callable[[], frozenset[str]]
) -> Iterator[AnswerFinding]:
    """Yield a finding for each package missing from its index; an ecosystem without an index is not checked.

    ``words`` returns the words of the sources: a name that occurs there comes from the user.
    """
    for mention in _mentions(layout)[:_MOST]:
        index = indexes.get(mention.index)
        if not index or _exists(mention, index) or mention.name.lower() in words():
            continue
        near = tuple(sorted(_near(folded(mention.index, mention.name), index))[:3])
        where = ("package", mention.start, mention.end)
        if near:
            message = "The package index has no such package; it has one whose name differs by a letter."
            yield AnswerFinding(*where, "high", 0.85, message, suggestions=near)
        elif mention.imported:
            message = "The package index has no package of this module's name."
            yield AnswerFinding(*where, "medium", 0.55, message)
        else:
            yield AnswerFinding(*where, "high", 0.85, "The package index has no such package.")


def _mentions(layout: Layout) -> list[Mention]:
    mentions = list(_installed(layout.text))
    for block in layout.blocks:
        if block.language in _PYTHON:
            mentions += _python_imports(layout.text, block.start, block.end)
        elif block.language in _NODE:
            mentions += _node_imports(layout.text, block.start, block.end)
    seen: dict[tuple[str, str], Mention] = {}
    for mention in sorted(mentions, key=lambda mention: mention.start):
        seen.setdefault((mention.index, folded(mention.index, mention.name)), mention)
    return list(seen.values())


def _installed(text: str) -> Iterator[Mention]:
    for match in _INSTALL.finditer(text):
        index = "pypi" if match["pypi"] else "npm"
        pattern = _REQUIREMENT if index == "pypi" else _NPM_NAME
        skips = False
        for word in re.finditer(r"\S+", match["rest"]):
            raw = word[0]
            if skips or raw.startswith("-") or _is_path(raw, index):
                skips = raw in _TAKES_VALUE and not skips
                continue
            name = pattern.fullmatch(raw.rstrip(",.:)!?"))
            if name is None:
                break  # prose follows the command
            start = match.start("rest") + word.start() + name.start(1)
            yield Mention(index, name[1], start, start + len(name[1]))
            if raw[-1:] in ",.:)!?" or match["rest"][word.end() : word.end() + 4] in {
                " to ",
                " and",
                " in ",
                " for",
            }:
                break


def _is_path(raw: str, index: str) -> bool:
    bare = raw.strip("'\"")
    return (
        bare.startswith((".", "/", "~", "$", "<", "{", "git+", "http"))
        or bare.endswith(_FILES)
        or ("/" in bare and not (index == "npm" and bare.startswith("@")))
    )


def _python_imports(text: str, start: int, end: int) -> Iterator[Mention]:
    for match in _PYTHON_IMPORT.finditer(text, start, end):
        if match[1]:
            yield Mention("pypi", match[1], *match.span(1), imported=True)
            continue
        offset = match.start(2)
        for part in match[2].split(","):
            name = re.match(r"\s*([A-Za-z_]\w*)", part)
            if name:
                yield Mention("pypi", name[1], offset + name.start(1), offset + name.end(1), imported=True)
            offset += len(part) + 1


def _node_imports(text: str, start: int, end: int) -> Iterator[Mention]:
    for match in _NODE_IMPORT.finditer(text, start, end):
        parts = match[1].split("/")
        name = "/".join(parts[:2]) if match[1].startswith("@") else parts[0]
        if not name.startswith("."):
            yield Mention("npm", name, match.start(1), match.start(1) + len(name))


def _exists(mention: Mention, index: frozenset[str]) -> bool:
    name = mention.name
    if folded(mention.index, name) in index:
        return True
    if mention.index == "npm":
        return name.removeprefix("node:") in _NODE_MODULES
    if not mention.imported:
        return False
    return name in sys.stdlib_module_names or _DISTRIBUTIONS.get(name.lower(), "") in index


def _near(name: str, index: frozenset[str]) -> Iterator[str]:
    """Yield the names of the index that differ from ``name`` by one change."""
    if len(name) < _SHORTEST:
        return
    made: set[str] = set()
    for at in range(len(name) + 1):
        head, tail = name[:at], name[at:]
        made.update(head + letter + tail for letter in _LETTERS)
        if tail:
            made.add(head + tail[1:])
            made.update(head + letter + tail[1:] for letter in _LETTERS)
        if len(tail) > 1:
            made.add(head + tail[1] + tail[0] + tail[2:])
    yield from made & index


def read_index(path: Path | None) -> dict[str, frozenset[str]]:
    """Read the operator's index: JSON with a list of names for ``pypi``, ``npm`` or both; empty without a file."""
    if path is None:
        return {}
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or not all(isinstance(names, list) for names in document.values()):
        raise ValueError(
            'SLUICE_GROUNDING__PACKAGES must name JSON of the form {"pypi": [names], "npm": [names]}'
        )
    return {name: frozenset(map(str, document[name])) for name in ("pypi", "npm") if name in document}


def indexed(names_by_index: Mapping[str, Sequence[str] | frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return the names of each index in normal form."""
    return {
        index: frozenset(folded(index, name) for name in names) for index, names in names_by_index.items()
    }
