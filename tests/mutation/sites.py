"""Find the places in the logic of a room where an operator can make a mutant, and make it."""

import ast
import difflib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from tests.mutation.operators import OWN_OPERATORS

LOGGERS = {"log", "logger", "_log", "_logger"}
TOLD_APART = {"create_task": "name", "zip": "strict"}  # names for those who debug, and assertions
ORDERINGS = ("_Eq_LtE", "_NotEq_Lt")
DATA_LENGTH = 3  # a literal of so many constants is a table of data
Range = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Site:
    """One place that one operator can mutate; ``function`` is the qualified name without ``<locals>``.

    ``occurrence`` counts the places of this operator in the file, as cosmic-ray does. ``text`` is the line, stripped;
    ``repeat`` counts the lines of the same text in the function before this one.
    """

    room: str
    path: Path
    module: str
    function: str
    line: int
    text: str
    repeat: int
    operator: str
    occurrence: int


@dataclass(frozen=True, slots=True)
class Mutant:
    """A site, the source that it leads to, and the changed lines before and after, stripped."""

    site: Site
    source: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """Return a short name that neither a moved line nor a moved module changes."""
        text = "\n".join((self.site.function, str(self.site.repeat), self.before, self.after))
        return hashlib.sha256(text.encode()).hexdigest()[:10]


def operator_named(name: str) -> Any:
    """Return an operator: ``core/...`` is one of cosmic-ray, anything else one of ours."""
    return cosmic_ray.plugins.get_operator(name)() if "/" in name else OWN_OPERATORS[name]()


def sites_of_room(root: Path, room: str, operators: Sequence[str]) -> list[Site]:
    """Return the sites of all modules below a folder, in the order of paths and lines."""
    instances = {name: operator_named(name) for name in operators}
    found = []
    for path in sorted((root / room).rglob("*.py")):
        found += sites_of_module(root, room, path.relative_to(root), instances)
    return found


def sites_of_module(root: Path, room: str, path: Path, operators: dict[str, Any]) -> list[Site]:
    """Return the sites in the function bodies of one module."""
    source = (root / path).read_text(encoding="utf-8")
    lines = source.splitlines()
    tree = ast.parse(source)
    functions = dict(functions_by_line(tree))
    excluded = sorted(excluded_ranges(tree, lines))
    named = sorted(comparisons_with_names(tree, lines))
    repeats = repeated_lines(lines, functions)
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    counts = dict.fromkeys(operators, -1)
    found = []
    for node in ast_nodes(get_ast(source)):
        for name, operator in operators.items():
            for start, end in operator.mutation_positions(node):
                counts[name] += 1
                line = start[0]
                ordered_name = name.endswith(ORDERINGS) and is_excluded((start, end), named)
                if line in functions and not ordered_name and not is_excluded((start, end), excluded):
                    text = lines[line - 1].strip()
                    found.append(
                        Site(
                            room, path, module, functions[line], line, text, repeats[line], name, counts[name]
                        )
                    )
    return sorted(found, key=lambda site: site.line)


def functions_by_line(tree: ast.AST, inside: str = "") -> Iterator[tuple[int, str]]:
    """Yield each line of a function body with the name of the innermost function; inner functions come last."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{inside}{node.name}"
            first = node.body[0].lineno
            yield from ((line, name) for line in range(first, (node.end_lineno or first) + 1))
            yield from functions_by_line(node, f"{name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions_by_line(node, f"{inside}{node.name}.")
        else:
            yield from functions_by_line(node, inside)


def repeated_lines(lines: Sequence[str], functions: dict[int, str]) -> dict[int, int]:
    """Return for each line of a function how many lines of the same text came before in this function."""
    seen: dict[tuple[str, str], int] = {}
    repeats = {}
    for line, function in sorted(functions.items()):
        key = function, lines[line - 1].strip()
        repeats[line] = seen.get(key, 0)
        seen[key] = repeats[line] + 1
    return repeats


def excluded_ranges(tree: ast.AST, lines: Sequence[str]) -> Iterator[Range]:
    """Yield the ranges that are no logic: annotations, decorators, defaults, imports, logging, messages, data."""
    for node in ast.walk(tree):
        yield from (range_of(part, lines) for part in excluded_parts(node))


def comparisons_with_names(tree: ast.AST, lines: Sequence[str]) -> Iterator[Range]:
    """Yield the comparisons with a string that stands in the code: nobody puts names in order by mistake."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(
            isinstance(part, ast.Constant) and isinstance(part.value, str)
            for part in (node.left, *node.comparators)
        ):
            yield range_of(node, lines)


def excluded_parts(node: ast.AST) -> list[Any]:
    """Return the parts of one node that are no logic."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        others = [
            node.args.vararg,
            node.args.kwarg,
            *node.args.defaults,
            *node.args.kw_defaults,
            node.returns,
        ]
        return [*node.decorator_list, *arguments, *(part for part in others if part)]
    if isinstance(node, ast.ClassDef):
        fields = [part for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign)]
        return [*node.decorator_list, *node.bases, *node.keywords, *fields]
    if isinstance(node, ast.AnnAssign):
        return [node.annotation]
    if isinstance(node, ast.Raise):
        return [part for part in ast.walk(node) if isinstance(part, ast.JoinedStr)]
    if isinstance(node, ast.Call) and not is_logging(node):
        name = called_name(node)
        keywords = [keyword for keyword in node.keywords if keyword.arg == TOLD_APART.get(name, "")]
        return [*node.args[:1], *keywords] if name == "cast" else keywords
    return (
        [node] if isinstance(node, ast.Import | ast.ImportFrom) or is_logging(node) or is_data(node) else []
    )


def called_name(call: ast.Call) -> str:
    """Return the last part of the name that a call calls."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def is_logging(node: ast.AST) -> bool:
    """Tell whether a node is a call of a logger."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in LOGGERS
    )


def is_data(node: ast.AST) -> bool:
    """Tell whether a node is a literal of several constants."""
    parts: list[ast.expr | None] = []
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        parts = [*node.elts]
    elif isinstance(node, ast.Dict):
        parts = [*node.keys, *node.values]
    return len(parts) >= DATA_LENGTH and all(isinstance(part, ast.Constant) for part in parts)


def range_of(node: Any, lines: Sequence[str]) -> Range:
    """Return where a node begins and ends, in lines and characters."""
    start = node.lineno, characters(lines, node.lineno, node.col_offset)
    return start, (node.end_lineno, characters(lines, node.end_lineno, node.end_col_offset))


def characters(lines: Sequence[str], line: int, octets: int) -> int:
    """Return a column in characters; ``ast`` counts in bytes of UTF-8, parso in characters."""
    return len(lines[line - 1].encode()[:octets].decode(errors="ignore"))


def is_excluded(place: Range, excluded: Sequence[Range]) -> bool:
    """Tell whether a place lies within an excluded range."""
    return any(start <= place[0] and place[1] <= end for start, end in excluded)


def mutant_of(root: Path, site: Site) -> Mutant | None:
    """Return the mutant of a site; ``None`` where it does not compile or is the same program."""
    source = (root / site.path).read_text(encoding="utf-8")
    mutated = mutate_code(source, operator_named(site.operator), site.occurrence)
    if mutated is None:
        return None
    try:
        if ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(source)):
            return None
        compile(mutated, str(site.path), "exec")
    except SyntaxError:
        return None
    before, after = changed_lines(source, mutated)
    return Mutant(site, mutated, before, after)


def changed_lines(source: str, mutated: str) -> tuple[str, str]:
    """Return the lines that differ, before and after, each stripped and joined by newlines."""
    old, new = source.splitlines(), mutated.splitlines()
    before, after = [], []
    for kind, old_start, old_end, new_start, new_end in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if kind != "equal":
            before += old[old_start:old_end]
            after += new[new_start:new_end]
    return tuple("\n".join(line.strip() for line in lines) for lines in (before, after))  # type: ignore[return-value]


def functions_in(root: Path, rooms: Iterable[str]) -> dict[str, set[str]]:
    """Return the stripped lines of each function of the rooms, by its qualified name."""
    found: dict[str, set[str]] = {}
    for room in rooms:
        for path in sorted((root / room).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            lines = source.splitlines()
            for line, function in functions_by_line(ast.parse(source)):
                found.setdefault(function, set()).add(lines[line - 1].strip())
    return found
