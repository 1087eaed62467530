"""Grammars of programming languages for tree-sitter, each loaded for the first block that needs it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

_PLAIN: Final = (("", ""),)


@dataclass(frozen=True, slots=True)
class Grammar:
    """The module of a grammar, and the texts to wrap around a snippet that is only part of a file."""

    module: str
    entry: str = "language"
    wraps: Sequence[tuple[str, str]] = _PLAIN


GRAMMARS: Final = {
    "javascript": Grammar("tree_sitter_javascript", wraps=(("", ""), ("(", "\n)"), ("({", "\n})"))),
    "typescript": Grammar(
        "tree_sitter_typescript",
        "language_typescript",
        (("", ""), ("(", "\n)"), ("({", "\n})"), ("class A {", "\n}"), ("type A =", "\n")),
    ),
    "tsx": Grammar("tree_sitter_typescript", "language_tsx", (("", ""), ("(", "\n)"), ("class A {", "\n}"))),
    "java": Grammar(
        "tree_sitter_java", wraps=(("", ""), ("class A {", "\n}"), ("class A { void f() {", "\n} }"))
    ),
    "go": Grammar("tree_sitter_go", wraps=(("", ""), ("package a\nfunc f() {", "\n}"))),
    "rust": Grammar("tree_sitter_rust", wraps=(("", ""), ("fn f() {", "\n}"), ("impl A {", "\n}"))),
    "c": Grammar("tree_sitter_c", wraps=(("", ""), ("void f() {", "\n}"))),
    "bash": Grammar("tree_sitter_bash"),
}


@lru_cache(maxsize=len(GRAMMARS))
def _language(name: str) -> Any:
    from tree_sitter import Language  # noqa: PLC0415 - loaded for the first block of such a language

    grammar = GRAMMARS[name]
    return Language(getattr(import_module(grammar.module), grammar.entry)())


def parses(source: str, language: str) -> bool:
    """Return whether ``source`` parses without errors in the grammar of ``language``."""
    from tree_sitter import Parser  # noqa: PLC0415 - loaded with the grammar

    tree = Parser(_language(language)).parse(source.encode("utf-8", "replace"))
    return not tree.root_node.has_error
