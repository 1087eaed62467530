"""Find fenced code of an answer that does not parse; parts left out on purpose are not a fault."""

import ast
import json
import re
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from app.core.contracts.grounding import AnswerFinding
from app.engines.grounding.fences import Block
from app.engines.grounding.grammars import GRAMMARS, parses

_NAMES: Final = {
    **dict.fromkeys(("python", "py", "python3", "py3", "pycon", "ipython"), "python"),
    **dict.fromkeys(("json", "ndjson", "jsonl"), "json"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("javascript", "js", "jsx", "mjs", "cjs", "node"), "javascript"),
    **dict.fromkeys(("typescript", "ts", "mts", "cts"), "typescript"),
    **dict.fromkeys(("bash", "sh", "shell", "zsh"), "bash"),
    **dict.fromkeys(("console", "shell-session", "terminal"), "session"),
    **dict.fromkeys(("golang", "go"), "go"),
    **dict.fromkeys(("rust", "rs"), "rust"),
    **{name: name for name in ("toml", "tsx", "java", "c")},
}
_LONGEST: Final = 20_000
_TOTAL: Final = 60_000
"""Most characters of code that are parsed in one answer; the rest passes unchecked."""

_DEEPEST: Final = 60
"""Deeper nesting of brackets is not code for people to read, and parsers take long over it."""

_FILE: Final = "answer-code"
_PROMPT: Final = re.compile(r"^[ \t]*(?:>>>|\.\.\.)(?: |$)", re.MULTILINE)
_REPL: Final = re.compile(r"^[ \t]*(?:>>>|\.\.\.)(?: (.*)|)$")
_SHELL: Final = re.compile(r"^[ \t]*(?:[\w.@~/:-]*\$|%|PS>) (.*)$")
_MAGIC: Final = re.compile(r"^(\s*)[%!][^\n]*$", re.MULTILINE)
_DOTS: Final = re.compile(r"^[ \t]*(?:#|//|/\*|--)?[ \t]*(?:\.\.\.|\u2026)[^\n]{0,200}$", re.MULTILINE)
_DOTS_WITHIN: Final = re.compile(r",?\s{0,8}(?:\.\.\.|\u2026)\s{0,8},?")
_ANGLE: Final = re.compile(r"<[A-Za-z][\w .:/-]{0,60}>")
_LINE_COMMENT: Final = re.compile(r"^[ \t]*//[^\n]*$|(?<=[,\[{\d\"le])[ \t]+//[^\n]*$", re.MULTILINE)
_DIFF: Final = re.compile(r"^(?:diff --git |--- |\+\+\+ |@@ )", re.MULTILINE)
_ADDED: Final = re.compile(r"^\+(?!\+)", re.MULTILINE)
_TEMPLATE: Final = re.compile(r"\{\{|\{%|<%|\$\{\{")


def check_code(text: str, blocks: Sequence[Block]) -> Iterator[AnswerFinding]:
    """Yield a finding for each block that does not parse in the language that it names."""
    left = _TOTAL
    for block in blocks:
        language = _NAMES.get(block.language)
        source = text[block.start : block.end]
        if language is None or len(source) > min(_LONGEST, left) or not source.strip():
            continue
        left -= len(source)
        if not _is_sound(source, language):
            message = f"This block does not parse as {language}."
            yield AnswerFinding("code", block.start, block.end, "medium", 0.6, message)


def _is_sound(source: str, language: str) -> bool:
    if language == "session":
        language = "bash"
        if not any(_SHELL.match(line) for line in source.splitlines()):
            return True
    if _is_diff(source) or _depth(source) > _DEEPEST:
        return True
    check = _CHECKS.get(language)
    return check(source) if check is not None else _grammatical(source, language)


def _is_diff(source: str) -> bool:
    return bool(_DIFF.search(source) or _ADDED.search(source))


def _depth(source: str) -> int:
    depth = deepest = 0
    for char in source:
        depth += (char in "([{") - (char in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _python(source: str) -> bool:
    if _PROMPT.search(source) and ">>>" in source:
        source = "\n".join(prompt[1] or "" for line in source.splitlines() if (prompt := _REPL.match(line)))
    source = textwrap.dedent(_MAGIC.sub(r"\1pass", source)).strip("\n")
    tries = (
        source,
        _completed(source),
        f"if True:\n{textwrap.indent(source, ' ')}",
        _unindented(source),
        _DOTS_WITHIN.sub("", _DOTS.sub("", source)),
    )
    return any(_compiles(attempt) for attempt in dict.fromkeys(tries))


def _completed(source: str) -> str:
    """Return the source; where it ends with the head of a block, add a body."""
    last = source.rstrip().rpartition("\n")[2]
    return f"{source}\n{last[: len(last) - len(last.lstrip())]}    pass\n" if last.endswith(":") else source


def _unindented(source: str) -> str:
    """Return the source with its later lines dedented, for a first line that was pasted without their indent."""
    first, _, rest = source.partition("\n")
    return f"{first}\n{textwrap.dedent(rest)}"


def _compiles(source: str) -> bool:
    # Literals of an answer may contain odd escapes; keep the interpreter's warnings about them out of our log.
    warnings.filterwarnings("ignore", module=_FILE)
    try:
        compile(source, _FILE, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    except (MemoryError, RecursionError):
        return True
    return True


def _json(source: str) -> bool:
    if _loads(source) or _TEMPLATE.search(source):
        return True
    lines = [line for line in source.splitlines() if line.strip()]
    if len(lines) > 1 and all(_loads(line) for line in lines):
        return True
    shortened = _DOTS_WITHIN.sub(",", _LINE_COMMENT.sub("", source)) if "..." in source else source
    bare = re.sub(r",\s*(?=[\]}])|(?<=[\[{]),", "", shortened) if shortened is not source else source
    return any(
        _loads(attempt) for attempt in (_LINE_COMMENT.sub("", source), shortened, bare, f"{{{source}}}")
    )


def _loads(source: str) -> bool:
    try:
        json.loads(source)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def _yaml(source: str) -> bool:
    import yaml  # noqa: PLC0415 - loaded for the first block of YAML

    if _TEMPLATE.search(source):
        return True
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for _ in yaml.parse(textwrap.dedent(_DOTS.sub("", source)), Loader=loader):
            pass
    except (yaml.YAMLError, RecursionError):
        return False
    return True


def _toml(source: str) -> bool:
    try:
        tomllib.loads(_DOTS.sub("", source))
    except (ValueError, RecursionError):
        return False
    return True


def _bash(source: str) -> bool:
    lines = source.splitlines()
    if any(_SHELL.match(line) for line in lines):
        source = "\n".join(_commands(lines))
    return _grammatical(_ANGLE.sub("NAME", source), "bash")


def _commands(lines: Sequence[str]) -> Iterator[str]:
    """Yield the typed commands; the output between them is not code."""
    goes_on = False
    for line in lines:
        prompted = _SHELL.match(line)
        if prompted or goes_on:
            typed = prompted[1] if prompted else line.removeprefix("> ")
            yield typed
            goes_on = typed.endswith("\\")


def _grammatical(source: str, language: str) -> bool:
    wraps = GRAMMARS[language].wraps
    shortened = _DOTS.sub("", source)
    texts = dict.fromkeys((source, shortened, _DOTS_WITHIN.sub("", shortened)))
    return any(parses(before + text + after, language) for text in texts for before, after in wraps)


_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "python": _python,
    "json": _json,
    "yaml": _yaml,
    "toml": _toml,
    "bash": _bash,
}
