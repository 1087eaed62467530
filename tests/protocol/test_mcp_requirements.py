"""Every requirement has a test that says so."""

import ast
from pathlib import Path

from tests.protocol.requirements import REQUIREMENTS


def covered_in(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "covers":
                    names |= {argument.value for argument in decorator.args}
    return names


def test_every_requirement_is_covered_by_a_test():
    covered = set().union(*(covered_in(path) for path in Path(__file__).parent.glob("test_*.py")))

    assert not set(REQUIREMENTS) - covered
