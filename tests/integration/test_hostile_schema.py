"""Requests made from the OpenAPI document, valid and not: no 5xx, every 4xx with a stable code."""

import itertools
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from app.core.errors import UpstreamUnavailableError, all_errors
from tests.integration.service import Service, running_service
from tests.sampling import examples

CODES = {error.code for error in all_errors()}
UNREACHABLE = UpstreamUnavailableError.code
EXAMPLES = examples(35, 3)
PARTS = 4
"""The operations are dealt out to as many tests, so that none comes near the limit on a busy machine."""
OPERATIONS = 28 // PARTS
WITH_PARAMETERS = 20 // PARTS
BOUNDED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("schema"), warm=True) as running:
        yield running


# Schemathesis draws from the module `random` inside its strategies, which Hypothesis warns about.
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_generated_requests_never_break_the_service(
    service: Service, mode: GenerationMode, part: int
) -> None:
    base_url = f"http://127.0.0.1:{service.port}"
    authorization = {"Authorization": f"Bearer {service.key}"}
    schema = schemathesis.openapi.from_dict(service.http.get("/api/v1/openapi.json").json())
    assert service.http.post("/api/v1/tenants", json={"name": "playground"}).status_code in {201, 409}
    sent: dict[str, int] = {}
    for result in itertools.islice(schema.get_all_operations(), part, None, PARTS):
        operation = result.ok()
        # Our own tenant must stay open, and our own policy must not stop the rest of the test.
        fixed = {"path_parameters": {"tenant": "playground"}} if "{tenant}" in operation.path else {}
        if operation.path == "/api/v1/policies" and operation.method.lower() in {"put", "patch"}:
            fixed = {"query": {"tenant": "playground", "expected_version": "0"}}

        @BOUNDED
        @given(case=operation.as_strategy(generation_mode=mode, **fixed))
        def one(case: schemathesis.Case) -> None:
            sent[operation.label] = sent.get(operation.label, 0) + 1  # noqa: B023 - run at once
            answer = case.call(base_url=base_url, headers=authorization)
            while answer.status_code == 429:
                time.sleep(int(answer.headers["retry-after"][0]))
                answer = case.call(base_url=base_url, headers=authorization)
            # The example of a server is a name that no resolver knows here.
            assert answer.status_code < 500 or answer.json()["code"] == UNREACHABLE, answer.text[:300]
            if answer.status_code >= 400:
                assert answer.json()["code"] in CODES, answer.text[:300]

        with suppress(Unsatisfiable):  # a request without any parameter cannot be wrong
            one()
    checks = service.http.get("/readyz").json()["checks"]
    # The detector may still compile its patterns, on a machine where it starts for the first time.
    assert {name for name, holds in checks.items() if not holds} <= {"detector"}
    assert len(sent) >= (OPERATIONS if mode.is_positive else WITH_PARAMETERS)
