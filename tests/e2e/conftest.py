"""One service for all tests that only call it."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.e2e.running import Service, running


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a running service on SQLite, with a key that has all roles."""
    with running(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture
def scope() -> str:
    """Return a vault scope that no other test uses."""
    return f"scope-{uuid4().hex[:12]}"
