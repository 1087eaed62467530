"""How much there is to do for the indexes of vectors, which the log says where a login may not do it."""

import pytest

from app.services.documents.vector_indexes import IndexPlan
from app.store.documents.vector_indexes import VectorSpace


@pytest.mark.parametrize(("builds", "drops"), [(0, 0), (2, 0), (0, 3), (1, 2)])
def test_indexes_to_build_and_indexes_to_drop_are_both_due(builds: int, drops: int) -> None:
    build = [(VectorSpace("acme", f"model {number}", 9), 4) for number in range(builds)]
    assert IndexPlan(build, [f"index {number}" for number in range(drops)]).due == builds + drops
