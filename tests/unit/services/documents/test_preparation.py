"""Documents are indexed again a few at a time, so that no transaction takes long."""

from app.services.documents.preparation import _steps
from app.store.documents.search_words import UnpreparedDocument


def test_a_step_has_few_chunks_of_one_tenant_and_a_large_document_is_one_by_itself() -> None:
    waiting = [("a", "1", 150), ("a", "2", 50), ("a", "3", 20), ("a", "4", 900), ("a", "5", 1), ("b", "6", 1)]
    steps = list(_steps([UnpreparedDocument(*one) for one in waiting]))
    assert steps == [("a", ["1", "2"]), ("a", ["3"]), ("a", ["4"]), ("a", ["5"]), ("b", ["6"])]
