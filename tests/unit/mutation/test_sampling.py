"""The sample of mutants: shares by room, and the same choice for the same seed."""

import pytest

from tests.mutation.sampling import draw, shares
from tests.mutation.sites import mutant_of, sites_of_room

OPERATORS = [
    "core/NumberReplacer",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceComparisonOperator_Eq_LtE",
    "core/ReplaceComparisonOperator_Lt_LtE",
    "DropStatement",
    "DropKeywordArgument",
]
MODULE = '''"""A module of a room."""

LIMIT = 3


def below(count: int, limit: int = 4) -> bool:
    """Tell whether 1 is below 2."""
    return count < limit + 1


class Box:
    size: int = 5

    def put(self, thing):
        self.size = self.size + 1
        log.info("put %s", 6)
        if self.size < 7:
            raise ValueError(f"not {8}")
        return thing in ("a", "b", "c"), [9, 9, 9], zip(thing, [1], strict=True)


def kind_of(word, other):
    return word == "kind" or word == other
'''


@pytest.fixture
def root(tmp_path):
    (tmp_path / "room" / "inner").mkdir(parents=True)
    (tmp_path / "room" / "boxes.py").write_text(MODULE)
    return tmp_path


def drawn(root, count, seed):
    sites = sites_of_room(root, "room", OPERATORS)
    return draw(sites, count, seed, lambda site: mutant_of(root, site))


def changes(mutants):
    return {(mutant.site.function, mutant.before, mutant.after) for mutant in mutants}


def test_shares_follow_the_lines_of_logic_and_leave_a_floor_for_the_smallest_room():
    divided = shares({"large": 3000, "middle": 1000, "small": 40}, 100, 0.1)
    assert sum(divided.values()) == 100
    assert divided["small"] == 10
    assert divided["large"] == pytest.approx(3 * divided["middle"], abs=3)


def test_a_room_gets_no_more_mutants_than_it_has_lines():
    assert shares({"large": 1000, "tiny": 2}, 100, 0.1) == {"tiny": 2, "large": 98}


def test_the_same_seed_draws_the_same_sample(root):
    assert changes(drawn(root, 2, 5)) == changes(drawn(root, 2, 5))


def test_another_seed_draws_another_sample(root):
    assert len({frozenset(changes(drawn(root, 2, seed))) for seed in range(10)}) > 1


def test_a_moved_module_with_shifted_lines_gives_the_same_mutants_of_the_same_names(root):
    before = drawn(root, 3, 5)
    (root / "room" / "boxes.py").unlink()
    (root / "room" / "inner" / "crates.py").write_text("import os\n\n\n" + MODULE)
    after = drawn(root, 3, 5)
    assert changes(before) == changes(after)
    assert [mutant.name for mutant in before] == [mutant.name for mutant in after]


def test_a_line_gives_one_mutant_at_most(root):
    mutants = drawn(root, 100, 5)
    lines = [mutant.site.line for mutant in mutants]
    assert len(lines) == len(set(lines))


def test_only_the_logic_of_functions_is_mutated(root):
    lines = {site.text for site in sites_of_room(root, "room", OPERATORS)}
    assert lines == {
        "return count < limit + 1",
        "self.size = self.size + 1",
        "if self.size < 7:",
        'raise ValueError(f"not {8}")',  # the statement is, its message is not
        'return thing in ("a", "b", "c"), [9, 9, 9], zip(thing, [1], strict=True)',
        'return word == "kind" or word == other',
    }
    sites = sites_of_room(root, "room", OPERATORS)
    assert [site.operator for site in sites if "zip" in site.text] == 2 * ["core/NumberReplacer"]
    assert len([site for site in sites if "word ==" in site.text]) == 1  # names have no order
    raised = [site.operator for site in sites if site.text.startswith("raise")]
    assert raised == ["DropStatement"]


def test_a_method_is_named_with_its_class(root):
    assert {site.function for site in sites_of_room(root, "room", OPERATORS)} == {
        "below",
        "Box.put",
        "kind_of",
    }
