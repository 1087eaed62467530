"""Each operator of ours makes the mutants that it names."""

import ast

import pytest
from cosmic_ray.mutating import mutate_code

from tests.mutation.operators import OWN_OPERATORS

EXAMPLES = [(operator, example) for operator in OWN_OPERATORS.values() for example in operator.examples()]


@pytest.mark.parametrize(
    ("operator", "example"), EXAMPLES, ids=[example.pre_mutation_code for _operator, example in EXAMPLES]
)
def test_an_operator_makes_the_mutant_of_its_example(operator, example):
    mutated = mutate_code(example.pre_mutation_code, operator(), example.occurrence)
    assert ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(example.post_mutation_code))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SwapCall", "x.any(y)"),
        ("SwapCall", "def all(x): pass"),
        ("SwapMembership", "for a in b: pass"),
        ("AssignInsteadOfAdding", "x = 1"),
        ("AssignInsteadOfAdding", "f(x <= 1)"),
        ("DropKeywordArgument", "f(a, b)"),
        ("DropStatement", '"""Say it."""\nx = 1\n'),
    ],
)
def test_an_operator_leaves_other_code_alone(name, code):
    assert mutate_code(code, OWN_OPERATORS[name](), 0) is None
