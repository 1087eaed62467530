"""Operators that cosmic-ray lacks: faults that people make with collections, defaults and statements."""

from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.operators.operator import Example, Operator

Position = tuple[tuple[int, int], tuple[int, int]]
_SWAPPED_CALLS = {"any": "all", "all": "any", "min": "max", "max": "min"}


class SwapCall(Operator):
    """Call ``any`` for ``all``, ``min`` for ``max``, and the other way round."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "name" and node.value in _SWAPPED_CALLS:
            before, after = node.get_previous_leaf(), node.get_next_leaf()
            if (
                after is not None
                and after.value == "("
                and (before is None or before.value not in {".", "def"})
            ):
                yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = _SWAPPED_CALLS[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("any(x)", "all(x)"), Example("max(x)", "min(x)"))


class SwapMembership(Operator):
    """Replace ``in`` by ``not in``, and the other way round."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "comparison":
            for place in self._places(node):
                yield node.children[place].start_pos, node.children[place].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        place = self._places(node)[index]
        other = " not in" if node.children[place].get_code().split() == ["in"] else " in"
        node.children[place] = parso.parse(other)
        return node

    @staticmethod
    def _places(node: Any) -> list[int]:
        return [
            place
            for place in range(1, len(node.children), 2)
            if node.children[place].get_code().split() in (["in"], ["not", "in"])
        ]

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("a in b", "a not in b"), Example("a not in b", "a in b"))


class AssignInsteadOfAdding(Operator):
    """Replace ``x += y`` and its kin by ``x = y``."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        assigning = node.type == "operator" and node.parent is not None and node.parent.type == "expr_stmt"
        if assigning and node.value.endswith("=") and node.value != "=":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = "="
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("x += 1", "x = 1"), Example("x |= y", "x = y"))


class KeepFirstOperand(Operator):
    """Replace ``a or b`` and ``a and b`` by ``a``."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type in {"or_test", "and_test"}:
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        return node.children[0]

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("a or b", "a"), Example("a and b and c", "a"))


class DropFirstOperand(Operator):
    """Replace ``a or b`` and ``a and b`` by ``b``."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type in {"or_test", "and_test"}:
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        prefix = node.get_first_leaf().prefix
        rest = node.children[2:]
        rest[0].get_first_leaf().prefix = prefix
        if len(rest) == 1:
            return rest[0]
        node.children = rest
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("a or b", "b"), Example("a and b and c", "b and c"))


class DropFilter(Operator):
    """Drop the condition of a comprehension."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "comp_if" and len(node.children) == 2:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> None:
        return None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("[a for a in b if a]", "[a for a in b]"),)


class DropKeywordArgument(Operator):
    """Drop one keyword argument of a call that has several arguments."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "arglist":
            # A list, as the walk goes on through this generator after the mutation.
            yield from [
                (node.children[place].start_pos, node.children[place].end_pos) for place in self._places(node)
            ]

    def mutate(self, node: Any, index: int) -> Any:
        place = self._places(node)[index]
        last = place == len(node.children) - 1
        del node.children[place - 1 if last else place : place + 1 if last else place + 2]
        return node

    @staticmethod
    def _places(node: Any) -> list[int]:
        return [
            place
            for place, child in enumerate(node.children)
            if child.type == "argument" and child.children[0].type == "name" and child.children[1] == "="
        ]

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("f(a, b=c)", "f(a)"), Example("f(a=b, c=d)", "f( c=d)"))


class DropStatement(Operator):
    """Replace a call for its effect, a write to an attribute or item, ``raise``, ``del`` or ``return`` by ``pass``."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "simple_stmt" and self._has_effect(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        prefix = node.children[0].get_first_leaf().prefix
        node.children[0] = parso.python.tree.Name("pass", node.start_pos, prefix)
        return node

    @staticmethod
    def _has_effect(statement: Any) -> bool:
        if statement.type in {"raise_stmt", "del_stmt"} or (
            statement.type == "keyword" and statement.value in {"raise", "return"}
        ):
            return True
        if statement.type == "expr_stmt":
            return bool(statement.children[0].type == "atom_expr")
        return bool(
            statement.type == "atom_expr" and statement.children[-1].get_code().lstrip().startswith("(")
        )

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example("f(x)\n", "pass\n"),
            Example("self.x = y\n", "pass\n"),
            Example("if a:\n    raise B\n", "if a:\n    pass\n"),
        )


OWN_OPERATORS = {
    operator.__name__: operator
    for operator in (
        SwapCall,
        SwapMembership,
        AssignInsteadOfAdding,
        KeepFirstOperand,
        DropFirstOperand,
        DropFilter,
        DropKeywordArgument,
        DropStatement,
    )
}
